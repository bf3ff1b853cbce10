// Plots and tables of dlrun's pages: line plots (drawn by uPlot), heat maps, shares, time axes. Each plot is a figure with a
// heading, a readout that the keyboard moves as the mouse does, and a table of the same figures. Text reaches the document
// as text alone, never as HTML. The page's own script says what is plotted.
"use strict";

const Plots = (() => {
  const svgSpace = "http://www.w3.org/2000/svg";
  const redraws = [];  // of everything that knows its width or its colours
  let printed = false;

  function fill(node, properties, children) {
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "text") node.textContent = value;
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
      else node.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
    return node;
  }
  const el = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
  const svg = (tag, properties, ...children) => fill(document.createElementNS(svgSpace, tag), properties, children);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // Numbers as people read them. What is not known is a dash, never 0.
  const unknown = "–";
  const number = (value, digits = 4) => {
    if (value === null || value === undefined) return unknown;
    if (typeof value !== "number") return String(value);
    if (Number.isInteger(value)) return value.toLocaleString("en");
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(digits - 1);
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(digits)));
  };
  const percent = (share) => (share > 0 && share < 0.001 ? "< 0.1 %" : (100 * share).toFixed(share < 0.1 ? 1 : 0) + " %");
  const two = (value) => String(value).padStart(2, "0");
  function duration(seconds) {
    if (seconds === null || seconds === undefined) return unknown;
    if (seconds === 0) return "0 s";
    if (seconds < 1) return Math.round(seconds * 1000) + " ms";
    if (seconds < 60) return Number(seconds.toPrecision(3)) + " s";
    const whole = Math.round(seconds), minutes = Math.floor(whole / 60), hours = Math.floor(minutes / 60);
    if (hours >= 48) return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
    return hours > 0 ? `${hours} h ${two(minutes % 60)} min` : `${minutes} min ${two(whole % 60)} s`;
  }
  const date = (seconds) => (seconds === null || seconds === undefined ? unknown : new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " "));
  const clock = (seconds, step) => {
    const text = new Date(seconds * 1000).toISOString();
    return step >= 86400 ? text.slice(5, 10) : step >= 60 ? (step >= 21600 ? text.slice(5, 10) + " " : "") + text.slice(11, 16) : text.slice(11, 19);
  };

  // columns: [{name, kind: "number"|"text"}]
  function table(caption, columns, rows, foot) {
    const cells = (row, tag) => row.map((value, i) => {
      const kind = columns[i].kind;
      return el(i === 0 && tag === "td" ? "th" : tag, {scope: i === 0 ? "row" : null, class: kind === "number" ? "number" : kind, text: value === null || value === undefined ? unknown : String(value)});
    });
    const place = el("div", {class: "table"}, el("table", {}, el("caption", {text: caption}),
        el("thead", {}, el("tr", {}, columns.map((c) => el("th", {scope: "col", class: c.kind === "number" ? "number" : null, text: c.name})))),
        el("tbody", {}, rows.map((row) => el("tr", {}, cells(row, "td")))),
      foot ? el("tfoot", {}, el("tr", {}, cells(foot, "td"))) : null));
    // The keyboard scrolls what is wider than its place.
    new ResizeObserver(() => {
      const wide = place.scrollWidth > place.clientWidth + 1;
      for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", caption]]) wide ? place.setAttribute(name, value) : place.removeAttribute(name);
    }).observe(place);
    return place;
  }
  // A table that is made when it is opened: some have thousands of rows.
  function folded(summary, make) {
    const details = el("details", {}, el("summary", {text: summary}));
    details.addEventListener("toggle", () => { if (details.open && details.childElementCount === 1) details.append(make()); });
    return details;
  }

  function drawn(redraw) {
    redraws.push(redraw);
    redraw();
  }
  const redrawAll = () => redraws.forEach((redraw) => redraw());
  function watch() {
    let width = document.documentElement.clientWidth;
    new ResizeObserver(() => {
      const now = document.documentElement.clientWidth;
      if (now !== width && !printed) { width = now; redrawAll(); }
    }).observe(document.documentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
    const printing = (now) => {
      printed = now;
      document.documentElement.classList.toggle("printed", now);
      redrawAll();
    };
    addEventListener("beforeprint", () => printing(true));
    addEventListener("afterprint", () => printing(false));
  }
  // On paper a column is narrower than the window, and the layout of the page is not there yet.
  const widthOf = (node, wide) => (printed ? (wide ? 670 : 325) : Math.max(node.clientWidth, 200));

  const dashes = [[], [8, 4], [2, 3], [10, 4, 2, 4]];
  const lineStyle = (i) => ({stroke: color("c" + (i % 7)), dash: dashes[Math.floor(i / 7) % 4].length ? dashes[Math.floor(i / 7) % 4] : dashes[i % 4]});
  const swatch = (i) => {
    const node = svg("svg", {class: "swatch", viewBox: "0 0 22 12", "aria-hidden": "true"});
    drawn(() => node.replaceChildren(svg("line", {x1: 0, x2: 22, y1: 6, y2: 6, stroke: lineStyle(i).stroke, "stroke-width": 3, "stroke-dasharray": lineStyle(i).dash.join(" ")})));
    return node;
  };

  // plot: {title, caption, xName, format, wide, series: [{name, x, y, points, lowest, highest, last, median}]}
  function lines(plot) {
    const format = plot.format || number;
    const place = el("div", {class: "plot", tabindex: "0", role: "group", style: {height: "240px"},
      "aria-label": `${plot.title}: ${plot.series.map((s) => s.name).join(", ")}. Left and right move along the plot, Home and End to its ends, Escape shows all of it.`});
    const live = el("span", {class: "live", "aria-live": "polite"});
    const at = el("span", {class: "at"});
    const outputs = plot.series.map((s) => el("output", {text: format(s.last.value)}));
    let u = null, logarithmic = false, index = null;
    const shown = plot.series.map(() => true);
    const positive = plot.series.every((s) => s.lowest.value > 0);
    const steep = positive && Math.max(...plot.series.map((s) => s.highest.value)) > 50 * Math.min(...plot.series.map((s) => s.lowest.value));
    // What is drawn: the points of each series and, where they are many, the means over them.
    const drawnLines = plot.series.flatMap((s, i) => (s.mean ? [{i, x: s.x, y: s.y, faint: true}, {i, x: s.mean.x, y: s.mean.y}] : [{i, x: s.x, y: s.y}]));
    const joined = drawnLines.length === 1 ? [drawnLines[0].x, drawnLines[0].y] : uPlot.join(drawnLines.map((line) => [line.x, line.y]));
    const toRead = plot.series.map((_, i) => drawnLines.findIndex((line) => line.i === i && !line.faint) + 1);
    const near = (i, from) => {  // the closest point that this line has
      const values = joined[i];
      for (let gap = 0; gap < values.length; ++gap)
        for (const k of [from - gap, from + gap]) if (k >= 0 && k < values.length && values[k] !== null && values[k] !== undefined) return k;
      return from;
    };
    function readout(k) {
      index = k;
      at.textContent = k === null ? `at the last ${plot.xName}` : `${plot.xName} ${number(joined[0][k])}`;
      plot.series.forEach((s, i) => { outputs[i].textContent = format(k === null ? s.last.value : joined[toRead[i]][near(toRead[i], k)]); });
    }
    function draw() {
      if (u) u.destroy();
      const text = color("quiet"), line = color("line");
      const axis = {stroke: text, grid: {stroke: line, width: 1}, ticks: {stroke: line, width: 1, size: 4}, font: "12px system-ui, sans-serif"};
      u = new uPlot({
        width: widthOf(place, plot.wide), height: 240, legend: {show: false}, padding: [8, 12, 0, 0],
        cursor: {y: false, drag: {x: true, y: false}, points: {size: 7}, dataIdx: (_, i, k) => (i === 0 || k === null ? k : near(i, k))},
        scales: {x: {time: false}, y: {distr: logarithmic ? 3 : 1, range: logarithmic || !plot.fromZero ? undefined : (_, __, high) => [0, high * 1.05 || 1]}},
        axes: [{...axis, size: 30, space: 64, label: plot.xName, labelSize: 16, labelGap: 0, labelFont: axis.font, values: (_, splits) => splits.map((v) => (v === null ? "" : compact(v)))},
          {...axis, size: (_, texts) => 18 + 7 * Math.max(4, ...(texts || []).map((text) => String(text).length)), values: (_, splits) => splits.map((v) => (v === null ? "" : (plot.tick || format)(v)))}],
        series: [{}, ...drawnLines.map(({i, x, faint}) => ({spanGaps: true, width: faint ? 1 : 2, alpha: faint ? 0.3 : 1, show: shown[i], points: {show: x.length < 40, size: 5}, ...lineStyle(i), ...(faint ? {dash: []} : {})}))],
        hooks: {setCursor: [(self) => { const k = self.cursor.idx; if (self.cursor.left >= 0 && k !== null && k !== undefined) readout(k); else if (document.activeElement !== place) readout(null); }]},
      }, joined, place);
    }
    place.addEventListener("keydown", (event) => {
      const count = joined[0].length, far = event.shiftKey ? 20 : 1;
      const k = {ArrowLeft: (index === null ? count : index) - far, ArrowRight: (index === null ? -1 : index) + far, Home: 0, End: count - 1}[event.key];
      if (event.key === "Escape") { draw(); readout(null); return; }
      if (k === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      const to = Math.min(Math.max(k, 0), count - 1);
      u.setCursor({left: u.valToPos(joined[0][to], "x"), top: 40});
      readout(to);
      live.textContent = `${at.textContent}: ${plot.series.map((s, i) => `${s.name} ${outputs[i].textContent}`).join(", ")}`;
    });
    const legend = el("div", {class: "bar"}, plot.series.map((s, i) => el(plot.series.length > 1 ? "label" : "span", {},
      plot.series.length > 1 ? el("input", {type: "checkbox", checked: true, onchange: (event) => { shown[i] = event.target.checked; drawnLines.forEach((line, k) => { if (line.i === i) u.setSeries(k + 1, {show: shown[i]}); }); }}) : null,
      swatch(i), el("span", {text: s.name}), outputs[i])),
      steep ? el("button", {type: "button", "aria-pressed": "false", text: "log scale", onclick: (event) => {
        logarithmic = !logarithmic;
        event.target.setAttribute("aria-pressed", String(logarithmic));
        draw();
      }}) : null, at);
    const figure = el("figure", {class: plot.wide ? "wide" : null}, el("h" + (plot.level || 3), {text: plot.title}), legend, place, live,
      plot.caption ? el("figcaption", {text: plot.caption}) : null,
      folded(`Table: ${plot.title.toLowerCase()}`, () => el("div", {}, summaryTable(plot, format), pointTable(plot, format))));
    return {figure, draw: () => { readout(null); drawn(draw); }};
  }
  const compact = (v) => (Math.abs(v) >= 1e6 ? Number((v / 1e6).toPrecision(4)) + " M" : Math.abs(v) >= 1e4 ? Number((v / 1e3).toPrecision(4)) + " k" : number(v));
  function summaryTable(plot, format) {
    return table(`${plot.title}: figures of all points`, [{name: "series"}, ...["points", "first", "last", "lowest", `at ${plot.xName}`, "highest", `at ${plot.xName}`, "median"].map((name) => ({name, kind: "number"}))],
      plot.series.map((s) => [s.name, number(s.points), format(s.first.value), format(s.last.value), format(s.lowest.value), number(s.lowest.step), format(s.highest.value), number(s.highest.step), format(s.median)]));
  }
  // About twenty points of each series, evenly.
  function pointTable(plot, format) {
    const rows = [];
    for (const s of plot.series) {
      const count = Math.min(s.x.length, 20);
      for (let i = 0; i < count; ++i) {
        const k = count === 1 ? 0 : Math.round(i * (s.x.length - 1) / (count - 1));
        rows.push([s.name, number(s.x[k]), format(s.y[k])]);
      }
    }
    return table(`${plot.title}: some points`, [{name: "series"}, {name: plot.xName, kind: "number"}, {name: "value", kind: "number"}], rows);
  }

  // From low to high: cividis, which is made for all colour vision and prints as greys.
  const ramp = [[0, 32, 77], [35, 62, 108], [87, 93, 109], [124, 123, 120], [166, 157, 117], [209, 193, 98], [255, 234, 70]];
  function shade(share) {
    const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1), k = Math.min(Math.floor(at), ramp.length - 2);
    return `rgb(${[0, 1, 2].map((c) => Math.round(ramp[k][c] + (at - k) * (ramp[k + 1][c] - ramp[k][c]))).join(",")})`;
  }
  const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

  // map: {title, caption, cells: [[number|null]], rowName(i), columnName(i), format, table()}
  function heat(map) {
    const rows = map.cells.length, columns = map.cells[0].length;
    const height = Math.min(Math.max(rows * 12, 90), 320), left = 74, below = 22;
    const sorted = map.cells.flat().filter((v) => v !== null).sort((a, b) => a - b);
    const low = quantile(sorted, 0.02), high = Math.max(quantile(sorted, 0.98), low * 1.2 || 1);
    const canvas = el("canvas", {"aria-hidden": "true"});
    const place = el("div", {class: "plot", tabindex: "0", role: "group", style: {height: height + below + "px"}, "aria-label": `${map.title}. Arrow keys move from cell to cell.`}, canvas);
    const at = el("span", {class: "at"}), live = el("span", {class: "live", "aria-live": "polite"});
    let width = 0, row = null, column = null;
    const describe = () => (row === null ? "" : `${map.rowName(row)}, ${map.columnName(column)}: ${map.cells[row][column] === null ? "not recorded" : map.format(map.cells[row][column])}`);
    function draw() {
      width = widthOf(place, true);
      const scale = devicePixelRatio || 1, c = canvas.getContext("2d");
      canvas.width = width * scale, canvas.height = (height + below) * scale;
      canvas.style.width = width + "px", canvas.style.height = height + below + "px";
      c.scale(scale, scale);
      const w = (width - left - 8) / columns, h = height / rows;
      map.cells.forEach((line, i) => line.forEach((value, k) => {
        if (value === null) return;
        c.fillStyle = shade((value - low) / (high - low));
        c.fillRect(left + k * w, i * h, w + 0.4, h + 0.4);
      }));
      c.font = "12px system-ui, sans-serif", c.fillStyle = color("quiet"), c.textBaseline = "middle", c.textAlign = "right";
      const every = Math.ceil(rows / Math.floor(height / 16));
      for (let i = 0; i < rows; i += every) c.fillText(map.rowName(i), left - 6, Math.min(Math.max(i * h + h / 2, 7), height - 7), left - 8);
      c.textBaseline = "top";
      const ticks = Math.max(2, Math.floor((width - left) / 150));
      for (let i = 0; i < ticks; ++i) {
        const k = Math.round(i * (columns - 1) / (ticks - 1 || 1));
        c.textAlign = i === 0 ? "left" : i === ticks - 1 ? "right" : "center";
        c.fillText(map.columnName(k), left + (k + (i === 0 ? 0 : i === ticks - 1 ? 1 : 0.5)) * w, height + 6);
      }
      if (row !== null) {
        c.strokeStyle = color("c1"), c.lineWidth = 2;
        c.strokeRect(left + column * w, row * h, Math.max(w, 3), Math.max(h, 3));
      }
    }
    const to = (r, k) => { row = Math.min(Math.max(r, 0), rows - 1), column = Math.min(Math.max(k, 0), columns - 1); at.textContent = describe(); draw(); };
    place.addEventListener("keydown", (event) => {
      const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
      if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      to((row === null ? 0 : row + move[0]), (column === null ? 0 : column + move[1]));
      live.textContent = describe();
    });
    place.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect(), x = event.clientX - box.left - left, y = event.clientY - box.top;
      if (x >= 0 && y >= 0 && y < height) to(Math.floor(y / height * rows), Math.floor(x / (width - left - 8) * columns));
    });
    const scaleBar = el("span", {class: "swatch", style: {width: "9rem", background: `linear-gradient(90deg, ${ramp.map((_, i) => shade(i / (ramp.length - 1))).join(",")})`}});
    const figure = el("figure", {class: "wide"}, el("h" + (map.level || 3), {text: map.title}),
      el("div", {class: "bar"}, el("span", {text: "≤ " + map.format(low)}), scaleBar, el("span", {text: "≥ " + map.format(high)}), at), place, live,
      map.caption ? el("figcaption", {text: map.caption}) : null, map.table ? map.table() : null);
    return {figure, draw: () => drawn(draw)};
  }

  // parts: [{name, color, value, text}]; a bar of their shares with a legend that has the figures.
  function share(title, parts) {
    const whole = parts.reduce((sum, part) => sum + part.value, 0) || 1;
    return el("div", {},
      el("div", {class: "share", role: "img", "aria-label": `${title}: ${parts.map((p) => `${p.name} ${percent(p.value / whole)}`).join(", ")}`},
        parts.filter((p) => p.value > 0).map((p) => el("span", {title: `${p.name}: ${p.text}`, style: {flex: `${p.value / whole} 1 0`, background: `var(--${p.color})`}}))),
      el("ul", {class: "bar"}, parts.map((p) => el("li", {}, box(p.color), el("span", {text: `${p.name} ${p.text} (${percent(p.value / whole)})`})))));
  }
  const box = (name) => el("span", {class: "swatch", "aria-hidden": "true", style: {background: `var(--${name})`, border: "1px solid var(--line)"}});

  // Steps of a time axis that people count in.
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000];
  function timeTicks(from, to, count) {
    const step = steps.find((each) => (to - from) / each <= count) || Math.ceil((to - from) / count);
    const out = [];
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push({at: t, text: clock(t, step)});
    return out;
  }

  return {el, svg, color, number, percent, duration, date, table, folded, lines, heat, share, box, timeTicks, drawn, widthOf, watch, unknown, lineStyle};
})();
