// Line plots, drawn by uPlot: a figure with a heading, a readout that the keyboard moves as the mouse does, and a table.

// plot: {title, caption, xName, format, wide, logX, logY, series: [{name, ideal, x, y, points, lowest, highest, last, median}]}
// logX, logY: begins with logarithms, of base 2 in x. ideal: a line to compare with, not a measurement.
function lines(plot) {
  const format = plot.format || number;
  const place = el("div", {
    class: "plot",
    tabindex: "0",
    role: "group",
    style: {height: "240px"},
    "aria-label": `${plot.title}: ${plot.series.map((s) => s.name).join(", ")}. Left and right move along the plot, Home and End to its ends, Escape shows all of it.`,
  });
  const live = el("span", {class: "live", "aria-live": "polite"});
  const at = el("span", {class: "at"});
  const outputs = plot.series.map((s) => el("output", {text: format(s.last.value)}));
  let u = null,
    logarithmic = Boolean(plot.logY),
    index = null;
  const shown = plot.series.map(() => true);
  const positive = plot.series.every((s) => s.lowest.value > 0);
  const steep =
    positive && Math.max(...plot.series.map((s) => s.highest.value)) > 50 * Math.min(...plot.series.map((s) => s.lowest.value));
  // What is drawn: the points of each series and, where they are many, the means over them.
  const drawnLines = plot.series.flatMap((s, i) =>
    s.mean
      ? [
          {i, x: s.x, y: s.y, faint: true},
          {i, x: s.mean.x, y: s.mean.y},
        ]
      : [{i, x: s.x, y: s.y}],
  );
  const joined =
    drawnLines.length === 1 ? [drawnLines[0].x, drawnLines[0].y] : uPlot.join(drawnLines.map((line) => [line.x, line.y]));
  const toRead = plot.series.map((_, i) => drawnLines.findIndex((line) => line.i === i && !line.faint) + 1);
  const near = (i, from) => {
    // the closest point that this line has
    const values = joined[i];
    for (let gap = 0; gap < values.length; ++gap)
      for (const k of [from - gap, from + gap])
        if (k >= 0 && k < values.length && values[k] !== null && values[k] !== undefined) return k;
    return from;
  };
  function readout(k) {
    index = k;
    at.textContent = k === null ? `at the last ${plot.xName}` : `${plot.xName} ${number(joined[0][k])}`;
    plot.series.forEach((s, i) => {
      outputs[i].textContent = format(k === null ? s.last.value : joined[toRead[i]][near(toRead[i], k)]);
    });
  }
  function draw() {
    if (u) u.destroy();
    const text = color("quiet"),
      line = color("line");
    const axis = {
      stroke: text,
      grid: {stroke: line, width: 1},
      ticks: {stroke: line, width: 1, size: 4},
      font: "12px system-ui, sans-serif",
    };
    u = new uPlot(
      {
        width: widthOf(place, plot.wide),
        height: 240,
        legend: {show: false},
        padding: [8, 12, 0, 0],
        cursor: {
          y: false,
          drag: {x: true, y: false},
          points: {size: 7},
          dataIdx: (_, i, k) => (i === 0 || k === null ? k : near(i, k)),
        },
        scales: {
          x: plot.logX ? {time: false, distr: 3, log: 2} : {time: false},
          y: {
            distr: logarithmic ? 3 : 1,
            range: logarithmic || !plot.fromZero ? undefined : (_, __, high) => [0, high * 1.05 || 1],
          },
        },
        axes: [
          {
            ...axis,
            size: 30,
            space: 64,
            label: plot.xName,
            labelSize: 16,
            labelGap: 0,
            labelFont: axis.font,
            values: (_, splits) => splits.map((v) => (v === null ? "" : compact(v))),
          },
          {
            ...axis,
            size: (_, texts) => 18 + 7 * Math.max(4, ...(texts || []).map((text) => String(text).length)),
            values: (_, splits) => splits.map((v) => (v === null ? "" : (plot.tick || format)(v))),
          },
        ],
        series: [
          {},
          ...drawnLines.map(({i, x, faint}) => ({
            spanGaps: true,
            width: faint ? 1 : 2,
            alpha: faint ? 0.3 : 1,
            show: shown[i],
            points: {show: x.length < 40 && !plot.series[i].ideal, size: 5},
            ...lineStyle(i, plot.series[i].ideal),
            ...(faint ? {dash: []} : {}),
          })),
        ],
        hooks: {
          setCursor: [
            (self) => {
              const k = self.cursor.idx;
              if (self.cursor.left >= 0 && k !== null && k !== undefined) readout(k);
              else if (document.activeElement !== place) readout(null);
            },
          ],
        },
      },
      joined,
      place,
    );
  }
  place.addEventListener("keydown", (event) => {
    const count = joined[0].length,
      far = event.shiftKey ? 20 : 1;
    const k = {
      ArrowLeft: (index === null ? count : index) - far,
      ArrowRight: (index === null ? -1 : index) + far,
      Home: 0,
      End: count - 1,
    }[event.key];
    if (event.key === "Escape") {
      draw();
      readout(null);
      return;
    }
    if (k === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const to = Math.min(Math.max(k, 0), count - 1);
    u.setCursor({left: u.valToPos(joined[0][to], "x"), top: 40});
    readout(to);
    live.textContent = `${at.textContent}: ${plot.series.map((s, i) => `${s.name} ${outputs[i].textContent}`).join(", ")}`;
  });
  const legend = el(
    "div",
    {class: "bar"},
    plot.series.map((s, i) =>
      el(
        plot.series.length > 1 ? "label" : "span",
        {},
        plot.series.length > 1
          ? el("input", {
              type: "checkbox",
              checked: true,
              onchange: (event) => {
                shown[i] = event.target.checked;
                drawnLines.forEach((line, k) => {
                  if (line.i === i) u.setSeries(k + 1, {show: shown[i]});
                });
              },
            })
          : null,
        swatch(i, s.ideal),
        el("span", {text: s.name}),
        outputs[i],
      ),
    ),
    steep || (positive && plot.logY)
      ? el("button", {
          type: "button",
          "aria-pressed": String(logarithmic),
          text: "log scale",
          onclick: (event) => {
            logarithmic = !logarithmic;
            event.target.setAttribute("aria-pressed", String(logarithmic));
            draw();
          },
        })
      : null,
    at,
  );
  const figure = el(
    "figure",
    {class: plot.wide ? "wide" : null},
    el("h" + (plot.level || 3), {text: plot.title}),
    legend,
    place,
    live,
    plot.caption ? el("figcaption", {text: plot.caption}) : null,
    folded(`Table: ${plot.title.toLowerCase()}`, () => el("div", {}, summaryTable(plot, format), pointTable(plot, format))),
  );
  return {
    figure,
    draw: () => {
      readout(null);
      drawn(draw);
    },
  };
}
const compact = (v) =>
  Math.abs(v) >= 1e6
    ? Number((v / 1e6).toPrecision(4)) + " M"
    : Math.abs(v) >= 1e4
      ? Number((v / 1e3).toPrecision(4)) + " k"
      : number(v);
function summaryTable(plot, format) {
  return table(
    `${plot.title}: figures of all points`,
    [
      {name: "series"},
      ...["points", "first", "last", "lowest", `at ${plot.xName}`, "highest", `at ${plot.xName}`, "median"].map((name) => ({
        name,
        kind: "number",
      })),
    ],
    plot.series.map((s) => [
      s.name,
      number(s.points),
      format(s.first.value),
      format(s.last.value),
      format(s.lowest.value),
      number(s.lowest.step),
      format(s.highest.value),
      number(s.highest.step),
      format(s.median),
    ]),
  );
}
// About twenty points of each series, evenly.
function pointTable(plot, format) {
  const rows = [];
  for (const s of plot.series) {
    const count = Math.min(s.x.length, 20);
    for (let i = 0; i < count; ++i) {
      const k = count === 1 ? 0 : Math.round((i * (s.x.length - 1)) / (count - 1));
      rows.push([s.name, number(s.x[k]), format(s.y[k])]);
    }
  }
  return table(
    `${plot.title}: some points`,
    [{name: "series"}, {name: plot.xName, kind: "number"}, {name: "value", kind: "number"}],
    rows,
  );
}
