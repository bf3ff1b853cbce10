// Heat maps: a cell per row and column, from dark (low) to light (high).

// From low to high: cividis, which is made for all colour vision and prints as greys.
const ramp = [
  [0, 32, 77],
  [35, 62, 108],
  [87, 93, 109],
  [124, 123, 120],
  [166, 157, 117],
  [209, 193, 98],
  [255, 234, 70],
];
function shade(share) {
  const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1),
    k = Math.min(Math.floor(at), ramp.length - 2);
  return `rgb(${[0, 1, 2].map((c) => Math.round(ramp[k][c] + (at - k) * (ramp[k + 1][c] - ramp[k][c]))).join(",")})`;
}
const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

// map: {title, caption, cells: [[number|null]], rowName(i), columnName(i), format, table()}
function heat(map) {
  const rows = map.cells.length,
    columns = map.cells[0].length;
  const height = Math.min(Math.max(rows * 12, 90), 320),
    left = 74,
    below = 22;
  const sorted = map.cells
    .flat()
    .filter((v) => v !== null)
    .sort((a, b) => a - b);
  const low = quantile(sorted, 0.02),
    high = Math.max(quantile(sorted, 0.98), low * 1.2 || 1);
  const canvas = el("canvas", {"aria-hidden": "true"});
  const place = el(
    "div",
    {
      class: "plot",
      tabindex: "0",
      role: "group",
      style: {height: height + below + "px"},
      "aria-label": `${map.title}. Arrow keys move from cell to cell.`,
    },
    canvas,
  );
  const at = el("span", {class: "at"}),
    live = el("span", {class: "live", "aria-live": "polite"});
  let width = 0,
    row = null,
    column = null;
  const describe = () =>
    row === null
      ? ""
      : `${map.rowName(row)}, ${map.columnName(column)}: ${map.cells[row][column] === null ? "not recorded" : map.format(map.cells[row][column])}`;
  function draw() {
    width = widthOf(place, true);
    const scale = devicePixelRatio || 1,
      c = canvas.getContext("2d");
    ((canvas.width = width * scale), (canvas.height = (height + below) * scale));
    ((canvas.style.width = width + "px"), (canvas.style.height = height + below + "px"));
    c.scale(scale, scale);
    const w = (width - left - 8) / columns,
      h = height / rows;
    map.cells.forEach((line, i) =>
      line.forEach((value, k) => {
        if (value === null) return;
        c.fillStyle = shade((value - low) / (high - low));
        c.fillRect(left + k * w, i * h, w + 0.4, h + 0.4);
      }),
    );
    ((c.font = "12px system-ui, sans-serif"), (c.fillStyle = color("quiet")), (c.textBaseline = "middle"), (c.textAlign = "right"));
    const every = Math.ceil(rows / Math.floor(height / 16));
    for (let i = 0; i < rows; i += every)
      c.fillText(map.rowName(i), left - 6, Math.min(Math.max(i * h + h / 2, 7), height - 7), left - 8);
    c.textBaseline = "top";
    const ticks = Math.max(2, Math.floor((width - left) / 150));
    for (let i = 0; i < ticks; ++i) {
      const k = Math.round((i * (columns - 1)) / (ticks - 1 || 1));
      c.textAlign = i === 0 ? "left" : i === ticks - 1 ? "right" : "center";
      c.fillText(map.columnName(k), left + (k + (i === 0 ? 0 : i === ticks - 1 ? 1 : 0.5)) * w, height + 6);
    }
    if (row !== null) {
      ((c.strokeStyle = color("c1")), (c.lineWidth = 2));
      c.strokeRect(left + column * w, row * h, Math.max(w, 3), Math.max(h, 3));
    }
  }
  const to = (r, k) => {
    ((row = Math.min(Math.max(r, 0), rows - 1)), (column = Math.min(Math.max(k, 0), columns - 1)));
    at.textContent = describe();
    draw();
  };
  place.addEventListener("keydown", (event) => {
    const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    to(row === null ? 0 : row + move[0], column === null ? 0 : column + move[1]);
    live.textContent = describe();
  });
  place.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(),
      x = event.clientX - box.left - left,
      y = event.clientY - box.top;
    if (x >= 0 && y >= 0 && y < height) to(Math.floor((y / height) * rows), Math.floor((x / (width - left - 8)) * columns));
  });
  const scaleBar = el("span", {
    class: "swatch",
    style: {width: "9rem", background: `linear-gradient(90deg, ${ramp.map((_, i) => shade(i / (ramp.length - 1))).join(",")})`},
  });
  const figure = el(
    "figure",
    {class: "wide"},
    el("h" + (map.level || 3), {text: map.title}),
    el(
      "div",
      {class: "bar"},
      el("span", {text: "≤ " + map.format(low)}),
      scaleBar,
      el("span", {text: "≥ " + map.format(high)}),
      at,
    ),
    place,
    live,
    map.caption ? el("figcaption", {text: map.caption}) : null,
    map.table ? map.table() : null,
  );
  return {figure, draw: () => drawn(draw)};
}
