// Where the time went: shares, a time axis with events, a table of attempts.

// Shapes as well as colours: who cannot tell the colours still sees what is what.
const markKinds = {
  failure: {name: "failure", color: "lost", path: "M-5,-5L5,5M5,-5L-5,5"},
  retry: {name: "retry", color: "c0", path: "M-5,4L0,-5L5,4Z", filled: true},
  resume: {name: "next link", color: "c2", path: "M-4,-5L5,0L-4,5Z", filled: true},
  stop: {name: "stop", color: "c3", path: "M-4.5,-4.5H4.5V4.5H-4.5Z", filled: true},
  end: {name: "end", color: "c6", path: "M0,-6V6"},
  done: {name: "done", color: "good", path: "M-5,0L-1,4L6,-5"},
  checkpoint: {name: "checkpoint", color: "text", path: "M0,-4V4"},
};
const markNode = (kind, x, y, text) =>
  svg(
    "g",
    {transform: `translate(${x},${y})`},
    text ? svg("title", {text}) : null,
    svg("path", {
      d: markKinds[kind].path,
      fill: markKinds[kind].filled ? `var(--${markKinds[kind].color})` : "none",
      stroke: `var(--${markKinds[kind].color})`,
      "stroke-width": kind === "checkpoint" ? 1 : 2.2,
      "stroke-linejoin": "round",
    }),
  );

function spans(link) {
  // [[part, from, to]] of one link
  const out = [];
  const attempts = link.attempts.some((a) => a.time)
    ? link.attempts.filter((a) => a.began !== null && a.time)
    : [{began: link.began, time: link.time}];
  for (const attempt of attempts) {
    let at = attempt.began;
    if (at === null || !attempt.time) continue;
    for (const part of partNames) {
      const seconds = attempt.time[part];
      if (!seconds) continue;
      out.push([part, at, at + seconds]);
      at += seconds;
    }
  }
  return out;
}

function timeline(run) {
  const links = run.links.filter((link) => link.began !== null);
  if (!links.length) return null;
  const marks = run.events.marks.filter((mark) => markKinds[mark.kind]);
  const from = Math.min(...links.map((link) => link.began)),
    to = Math.max(
      ...links.map((link) => Math.max(link.ended || link.began, ...spans(link).map((s) => s[2]))),
      ...marks.map((m) => m.t),
      from + 1,
    );
  const high = links.length > 40 ? 22 : 44,
    height = links.length * high + 34;
  const place = el("div", {class: "plot", style: {height: height + "px"}});
  const draw = () => {
    const width = widthOf(place, true),
      left = run.kind === "chain" ? 62 : 8,
      right = 10;
    const x = (t) => left + ((t - from) / (to - from)) * (width - left - right);
    const node = svg("svg", {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Time axis of ${links.length} link${links.length === 1 ? "" : "s"} from ${date(from)} to ${date(to)} UTC; the tables below have the same.`,
    });
    for (const tick of timeTicks(from, to, Math.max(2, (width - left) / 95)))
      node.append(
        svg("line", {class: "grid", x1: x(tick.at), x2: x(tick.at), y1: 0, y2: height - 24}),
        svg("text", {
          class: "tick",
          x: Math.min(Math.max(x(tick.at), tick.text.length * 3.6), width - tick.text.length * 3.6),
          y: height - 8,
          "text-anchor": "middle",
          text: tick.text,
        }),
      );
    links.forEach((link, i) => {
      const y = i * high + high * 0.5 - 2,
        thick = Math.min(high * 0.38, 15);
      if (run.kind === "chain") node.append(svg("text", {x: 0, y: y + thick * 0.8, text: `link ${link.number}`}));
      if (link.queue > 0)
        node.append(
          svg(
            "rect",
            {
              x: x(link.began - link.queue),
              y: y + thick * 0.3,
              width: x(link.began) - x(link.began - link.queue),
              height: thick * 0.4,
              fill: "var(--queue)",
            },
            svg("title", {text: `queue ${duration(link.queue)}`}),
          ),
        );
      for (const [part, begin, end] of spans(link))
        node.append(
          svg(
            "rect",
            {x: x(begin), y, width: Math.max(x(end) - x(begin), 0.5), height: thick, fill: `var(--${part})`},
            svg("title", {text: `${part} ${duration(end - begin)}`}),
          ),
        );
      for (const saved of run.events.checkpoints)
        if (saved.t >= link.began && saved.t <= (link.ended || to))
          node.append(markNode("checkpoint", x(saved.t), y + thick + 5, `checkpoint ${saved.what} at ${date(saved.t)}`));
      let last = -Infinity; // marks of one time stand beside each other
      for (const mark of marks) {
        if (mark.link !== link.number || (mark.kind === "resume" && high < 30)) continue;
        last = Math.max(Math.min(Math.max(x(mark.t), left + 6), width - right - 1), last + 12);
        node.append(markNode(mark.kind, last, y - 8, `${mark.text}, ${date(mark.t)} UTC`));
      }
    });
    place.replaceChildren(node);
  };
  later.push(() => drawn(draw));
  const present = Object.keys(markKinds).filter(
    (kind) => marks.some((mark) => mark.kind === kind) || (kind === "checkpoint" && run.events.checkpoints.length),
  );
  const legend = el(
    "ul",
    {class: "bar"},
    partNames.filter((part) => run.time && run.time[part] > 0).map((part) => el("li", {}, box(part), part)),
    present.map((kind) =>
      el(
        "li",
        {},
        svg("svg", {width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": "true"}, markNode(kind, 0, 0)),
        markKinds[kind].name,
      ),
    ),
  );
  return el(
    "figure",
    {class: "wide"},
    el("h" + (depth + 1), {text: `Time axis, ${date(from)} to ${date(to)} UTC`}),
    legend,
    place,
    el("figcaption", {
      text: "The parts of an attempt stand in the order start, useful, checkpoint, lost, idle; marks below a bar are checkpoints.",
    }),
  );
}

function eventTable(run) {
  const marks = run.events.marks;
  if (!marks.length) return el("p", {class: "quiet", text: "No events were recorded."});
  const chain = run.kind === "chain";
  const made = () =>
    table(
      "Events, times in UTC",
      [
        {name: "time"},
        ...(chain ? [{name: "link", kind: "number"}] : []),
        {name: "attempt", kind: "number"},
        {name: "kind"},
        {name: "what", kind: "text"},
      ],
      marks.map((mark) => [date(mark.t), ...(chain ? [mark.link] : []), mark.attempt, mark.kind, mark.text]),
    );
  return el(
    "div",
    {},
    folded(
      `Table: ${number(marks.length)} events${run.events.marks_left_out ? `, ${number(run.events.marks_left_out)} more are not in this page` : ""}`,
      made,
    ),
  );
}

function time(run, id) {
  if (!run.time)
    return section(depth, id + "-time", "Time", el("p", {class: "quiet", text: "Where the time went is not recorded."}));
  const chain = run.kind === "chain";
  const parts = partNames
    .filter((part) => part !== "queue" || chain)
    .map((part) => ({name: part, color: part, value: run.time[part] || 0, text: duration(run.time[part])}));
  const rows = [];
  for (const link of run.links)
    for (const attempt of link.attempts.length
      ? link.attempts
      : [{attempt: 1, time: link.time, reason: link.reason, exit_code: link.exit_code}]) {
      const own = attempt.time || (link.attempts.length === 1 ? link.time : null) || {};
      rows.push([
        ...(chain ? [`link ${link.number}`, link.job] : []),
        chain ? attempt.attempt : `attempt ${attempt.attempt}`,
        ...partNames.slice(0, 5).map((part) => duration(own[part])),
        ...(chain ? [attempt.attempt === 1 ? duration(link.queue) : unknown] : []),
        duration(own.total),
        attempt.exit_code ?? link.exit_code,
        attempt.reason ?? link.reason ?? link.end,
      ]);
    }
  const columns = [
    ...(chain ? [{name: "link"}, {name: "job"}, {name: "attempt", kind: "number"}] : [{name: "attempt"}]),
    ...partNames.slice(0, chain ? 6 : 5).map((name) => ({name, kind: "number"})),
    {name: "total", kind: "number"},
    {name: "exit code", kind: "number"},
    {name: "reason", kind: "text"},
  ];
  const foot = [
    "all",
    ...(chain ? ["", ""] : []),
    ...partNames.slice(0, chain ? 6 : 5).map((part) => duration(run.time[part])),
    duration(run.time.total),
    run.exit_code,
    "",
  ];
  const saved = run.events.checkpoints_reported;
  return section(
    depth,
    id + "-time",
    "Time",
    share("Time", parts),
    el("p", {
      class: "quiet",
      text:
        partNames
          .filter((part) => part !== "queue" || chain)
          .map((part) => `${part}: ${partTexts[part]}`)
          .join("; ") +
        `. ${saved ? `${number(saved)} checkpoint${saved === 1 ? " was" : "s were"} reported.` : "No checkpoint was reported."}`,
    }),
    timeline(run),
    rows.length > 60
      ? folded(`Table: ${rows.length} attempts`, () => table("Time of each attempt", columns, rows, foot))
      : table("Time of each attempt", columns, rows, foot),
    eventTable(run),
  );
}
