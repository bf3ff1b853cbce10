// The page of `dlrun report`: the comparison of its runs, and the sections of each.

function comparison(runs) {
  const labels = runs.map((run, i) =>
    runs.filter((other) => titleOf(other) === titleOf(run)).length > 1 ? `${titleOf(run)} #${i + 1}` : titleOf(run),
  );
  const rows = runs.map((run, i) => {
    const result = resultText(run),
      rate = throughputOf(run),
      loss = lossOf(run);
    return [
      labels[i],
      run.state,
      run.plan ? number(run.plan.ranks) : null,
      lastStep(run) >= 0 ? number(lastStep(run)) : null,
      loss ? number(loss.last.value) : null,
      result ? `${result.text} ${result.name}` : null,
      rate ? number(rate.median) : null,
      run.time ? duration(run.time.total) : null,
      run.time ? percent(run.time.useful / (run.time.total || 1)) : null,
    ];
  });
  const made = [];
  for (const group of groups.slice(0, 4)) {
    const names = [...new Set(runs.flatMap((run) => seriesOf(run, group.group).map((s) => s.name)))];
    for (const name of names.slice(0, 2)) {
      const series = runs.flatMap((run, i) =>
        seriesOf(run, group.group)
          .filter((s) => s.name === name)
          .map((s) => ({...s, name: labels[i]})),
      );
      if (series.length > 1)
        made.push(...plots(lines({...group, title: nice(name).replace(/^./, (c) => c.toUpperCase()), xName: "step", series})));
    }
  }
  return section(
    2,
    "comparison",
    "Comparison",
    table(
      "The runs of this page",
      [
        {name: "run"},
        {name: "state"},
        ...["ranks", "steps", "last loss", "result", "throughput (median)", "time", "useful"].map((name) => ({
          name,
          kind: "number",
        })),
      ],
      rows,
    ),
    el("div", {class: "plots"}, made),
  );
}

function runSection(run, i, alone) {
  const id = "run" + i;
  const head = [
    el("p", {}, badge(run), " ", stateText[run.state] || (run.reason === run.state ? "" : run.reason) || ""),
    el("p", {
      class: "quiet",
      text: `${run.kind === "chain" ? "Chain" : "Run"} ${run.id && run.kind !== "chain" ? run.id + " " : ""}of framework ${run.framework || "?"}, ${date(began(run))} to ${date(ended(run))} UTC, in ${run.directory}`,
    }),
  ];
  const body = [
    ...head,
    tiles(run),
    ...failures(run),
    training(run, id),
    stepTimes(run, id),
    time(run, id),
    planMap(run, id),
    provenance(run, id),
  ];
  return alone ? el("div", {id}, body) : section(2, id, `${titleOf(run)} (${i + 1} of ${data.runs.length})`, ...body);
}

const sections = alone
  ? [
      ["run0-training", "Training"],
      ["run0-ranks", "Step times by rank"],
      ["run0-time", "Time"],
      ["run0-plan", "Plan"],
      ["run0-provenance", "Provenance"],
    ]
  : [["comparison", "Comparison"], ...data.runs.map((run, i) => ["run" + i, `${i + 1}: ${titleOf(run)}`])];
main.replaceChildren(
  el(
    "header",
    {},
    el("h1", {text: alone ? titleOf(data.runs[0]) : `${data.runs.length} runs`}),
    el(
      "nav",
      {"aria-label": "Sections"},
      el(
        "ul",
        {},
        sections.map(([id, text]) => el("li", {}, el("a", {href: "#" + id, text}))),
      ),
    ),
  ),
);
if (!alone) main.append(comparison(data.runs));
data.runs.forEach((run, i) => main.append(runSection(run, i, alone)));
main.append(
  el(
    "footer",
    {class: "quiet"},
    el("p", {
      text: `Made by dlrun ${data.dlrun} at ${data.made.replace("T", " ").replace(/(\.\d+)?Z$/, "")} UTC. Times are UTC.`,
    }),
  ),
);
showPage();
