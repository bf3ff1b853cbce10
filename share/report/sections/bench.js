// The page of a bench (dlrun.bench-page/1): its plots, its table and what was found.

const bench = data.bench;
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const formats = {number: (v) => number(v), share: (v) => Number((100 * v).toFixed(1)) + " %", seconds: duration};

// What lines() asks of a series.
function seriesOf(curve) {
  const at = (k) => ({step: curve.x[k], value: curve.y[k]});
  const places = curve.y.map((_, k) => k).sort((a, b) => curve.y[a] - curve.y[b]);
  return {
    ...curve,
    ideal: curve.kind === "ideal",
    points: curve.x.length,
    first: at(0),
    last: at(curve.x.length - 1),
    lowest: at(places[0]),
    highest: at(places[places.length - 1]),
    median: median(curve.y),
  };
}
const captionOf = (plot) =>
  [
    plot.scale === "log" ? "The dashed line is as if the rate grew as the resources do." : null,
    plot.not_shown ? `${number(plot.not_shown)} more curves are in the table alone.` : null,
  ]
    .filter(Boolean)
    .join(" ") || null;
const plotOf = (plot) =>
  lines({
    title: plot.title.replace(/^./, (c) => c.toUpperCase()),
    xName: plot.x_name,
    format: formats[plot.unit],
    logX: plot.scale !== "linear",
    logY: plot.scale === "log",
    fromZero: plot.scale !== "log",
    caption: captionOf(plot),
    series: plot.series.map(seriesOf),
  });

function tiles() {
  const count = (...states) => bench.cells.filter((cell) => states.includes(cell.status)).length;
  const out = [];
  const add = (name, value, small) =>
    out.push(el("div", {}, el("dt", {text: name}), el("dd", {text: value}, small ? el("small", {text: small}) : null)));
  add("Cells", number(bench.cells.length), `${number(count("done"))} done`);
  const failed = count("failed", "out-of-memory", "timeout");
  if (failed) add("Failed", number(failed));
  const rates = bench.cells.filter((cell) => cell.rate);
  if (rates.length && bench.mode === "rate") {
    const best = rates.reduce((a, b) => (b.rate.mean > a.rate.mean ? b : a));
    add("Highest rate", number(best.rate.mean), bench.unit);
  }
  return el("dl", {class: "tiles"}, out);
}

const source = [
  bench.framework ? `framework ${bench.framework}` : null,
  bench.machine && bench.machine.gpu,
  bench.machine && bench.machine.cpu,
  bench.machine && bench.machine.host_count ? `${number(bench.machine.host_count)} nodes` : null,
].filter(Boolean);
const results = table(
  data.table.title,
  data.table.columns.map((c) => ({name: c.name, kind: c.kind === "number" ? c.kind : null})), // its texts are words
  data.table.rows.map((row) => row.map((cell) => cell.text)),
);
data.table.rows.forEach((row, i) =>
  row.forEach((cell, k) => {
    if (cell.mark) results.querySelectorAll("tbody tr")[i].children[k].classList.add(cell.mark);
  }),
);
main.replaceChildren(
  el("header", {}, el("h1", {text: bench.name || "bench"}), el("p", {class: "quiet", text: source.join(", ")})),
  tiles(),
  section(
    2,
    "plots",
    "Plots",
    data.plots.length
      ? el("div", {class: "plots"}, data.plots.flatMap((plot) => plots(plotOf(plot))))
      : el("p", {class: "quiet", text: "No axis has two numbers that were measured: the table has all."}),
  ),
  section(2, "table", "Table", results),
);
if (data.table.notes.length)
  main.append(
    section(
      2,
      "found",
      "What was found",
      el(
        "ul",
        {},
        data.table.notes.map((text) => el("li", {text})),
      ),
    ),
  );
main.append(
  el(
    "footer",
    {class: "quiet"},
    el("p", {text: `Made by dlrun ${bench.dlrun}${bench.created ? `; the bench began ${bench.created}` : ""}.`}),
  ),
);
showPage();
