// Curves over the steps, and step times by rank. A figure that was not recorded is said to be absent; it is never shown as 0.

// One plot per group of figures; absent ones are named together.
function training(run, id) {
  const made = [],
    absent = [];
  for (const group of groups) {
    const series = seriesOf(run, group.group);
    if (series.length)
      made.push(
        ...plots(lines({...group, level: depth + 1, xName: "step", series: series.map((s) => ({...s, name: nice(s.name)}))})),
      );
    else if (group.absent && !(group.group === "energy" && run.energy)) absent.push(group.absent);
  }
  const notes = [];
  if (!run.metrics.series.length)
    notes.push("This run wrote no metrics.jsonl, so that its loss, accuracy and throughput are not known.");
  if (absent.length) notes.push(`Not recorded: ${absent.join(", ")}.`);
  if (run.metrics.lines) notes.push(`${number(run.metrics.lines)} lines of metrics.`);
  if (run.metrics.series.some((s) => s.mean))
    notes.push(`The faint lines keep the lowest and the highest point of each stretch, and the strong ones are its mean.`);
  if (run.metrics.repeated_lines)
    notes.push(`${number(run.metrics.repeated_lines)} lines are of steps that a later link did again, and are not shown.`);
  if (run.metrics.unread_lines) notes.push(`${number(run.metrics.unread_lines)} lines could not be read.`);
  if (run.metrics.not_shown.length) notes.push(`Too many figures; not shown: ${run.metrics.not_shown.join(", ")}.`);
  const energy = run.energy ? flat(run.energy) : [];
  return section(
    depth,
    id + "-training",
    "Training",
    el("p", {class: "quiet", text: notes.join(" ")}),
    el("div", {class: "plots"}, made),
    energy.length
      ? table(
          "Energy",
          [{name: "figure"}, {name: "value", kind: "number"}],
          energy.map(([name, value]) => [nice(name), number(value)]),
        )
      : null,
  );
}

function stepTimes(run, id) {
  const times = run.step_times;
  if (!times)
    return section(
      depth,
      id + "-ranks",
      "Step times by rank",
      el("p", {class: "quiet", text: "Not recorded: no step times by rank are among the events of this run."}),
    );
  const rows = times.tenths_of_milliseconds.length;
  const from = (i) => Math.floor((times.ranks * i) / rows),
    to = (i) => Math.floor((times.ranks * (i + 1)) / rows) - 1;
  const names = (i) => (from(i) === to(i) ? `rank ${from(i)}` : `${from(i)}–${to(i)}`);
  const slowest = () =>
    table(
      "The ranks with the longest median step",
      [
        {name: "rank", kind: "number"},
        {name: "median", kind: "number"},
        {name: "longest", kind: "number"},
        {name: "× median", kind: "number"},
      ],
      times.slowest.map((rank) => [
        number(rank.rank),
        duration(rank.median),
        duration(rank.longest),
        times.median > 0 ? (rank.median / times.median).toFixed(2) : null,
      ]),
    );
  return section(
    depth,
    id + "-ranks",
    "Step times by rank",
    ...plots(
      heat({
        level: depth + 1,
        title: `Seconds per step of ${number(times.ranks)} ranks`,
        cells: times.tenths_of_milliseconds,
        rowName: names,
        columnName: (k) => date(times.times[k]).slice(5, 16),
        format: (v) => duration(v / 1e4),
        caption: rows < times.ranks ? "A row is several ranks, and shows the slowest of them." : null,
        table: slowest,
      }),
    ),
  );
}
