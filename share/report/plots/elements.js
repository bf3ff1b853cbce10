// Elements of the page: text reaches the document as text alone, never as HTML. Tables, which the keyboard scrolls where they are
// wider than their place.

const svgSpace = "http://www.w3.org/2000/svg";

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
const color = (name) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name)
    .trim();

// columns: [{name, kind: "number"|"text"}]
function table(caption, columns, rows, foot) {
  const cells = (row, tag) =>
    row.map((value, i) => {
      const kind = columns[i].kind;
      return el(i === 0 && tag === "td" ? "th" : tag, {
        scope: i === 0 ? "row" : null,
        class: kind === "number" ? "number" : kind,
        text: value === null || value === undefined ? unknown : String(value),
      });
    });
  const place = el(
    "div",
    {class: "table"},
    el(
      "table",
      {},
      el("caption", {text: caption}),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          columns.map((c) => el("th", {scope: "col", class: c.kind === "number" ? "number" : null, text: c.name})),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) => el("tr", {}, cells(row, "td"))),
      ),
      foot ? el("tfoot", {}, el("tr", {}, cells(foot, "td"))) : null,
    ),
  );
  // The keyboard scrolls what is wider than its place.
  new ResizeObserver(() => {
    const wide = place.scrollWidth > place.clientWidth + 1;
    for (const [name, value] of [
      ["tabindex", "0"],
      ["role", "region"],
      ["aria-label", caption],
    ])
      wide ? place.setAttribute(name, value) : place.removeAttribute(name);
  }).observe(place);
  return place;
}
// A table that is made when it is opened: some have thousands of rows.
function folded(summary, make) {
  const details = el("details", {}, el("summary", {text: summary}));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(make());
  });
  return details;
}
