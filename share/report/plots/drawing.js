// What is drawn knows its width and its colours: it is drawn again when the window, the colours of the system or the medium
// change. Colours come from the style sheet, and lines differ by their dashes too.

const redraws = []; // of everything that knows its width or its colours
let printed = false;

function drawn(redraw) {
  redraws.push(redraw);
  redraw();
}
const redrawAll = () => redraws.forEach((redraw) => redraw());
function watch() {
  let width = document.documentElement.clientWidth;
  new ResizeObserver(() => {
    const now = document.documentElement.clientWidth;
    if (now !== width && !printed) {
      width = now;
      redrawAll();
    }
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
const lineStyle = (i, ideal) =>
  ideal
    ? {stroke: color("quiet"), dash: [4, 4]}
    : {
        stroke: color("c" + (i % 7)),
        dash: dashes[Math.floor(i / 7) % 4].length ? dashes[Math.floor(i / 7) % 4] : dashes[i % 4],
      };
const swatch = (i, ideal) => {
  const node = svg("svg", {class: "swatch", viewBox: "0 0 22 12", "aria-hidden": "true"});
  drawn(() =>
    node.replaceChildren(
      svg("line", {
        x1: 0,
        x2: 22,
        y1: 6,
        y2: 6,
        stroke: lineStyle(i, ideal).stroke,
        "stroke-width": 3,
        "stroke-dasharray": lineStyle(i, ideal).dash.join(" "),
      }),
    ),
  );
  return node;
};
