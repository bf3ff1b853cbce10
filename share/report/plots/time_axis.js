// Shares of a whole as one bar, and the ticks of a time axis.

// parts: [{name, color, value, text}]; a bar of their shares with a legend that has the figures.
function share(title, parts) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  return el(
    "div",
    {},
    el(
      "div",
      {
        class: "share",
        role: "img",
        "aria-label": `${title}: ${parts.map((p) => `${p.name} ${percent(p.value / whole)}`).join(", ")}`,
      },
      parts
        .filter((p) => p.value > 0)
        .map((p) =>
          el("span", {title: `${p.name}: ${p.text}`, style: {flex: `${p.value / whole} 1 0`, background: `var(--${p.color})`}}),
        ),
    ),
    el(
      "ul",
      {class: "bar"},
      parts.map((p) => el("li", {}, box(p.color), el("span", {text: `${p.name} ${p.text} (${percent(p.value / whole)})`}))),
    ),
  );
}
const box = (name) =>
  el("span", {class: "swatch", "aria-hidden": "true", style: {background: `var(--${name})`, border: "1px solid var(--line)"}});

// Steps of a time axis that people count in.
const steps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000,
];
function timeTicks(from, to, count) {
  const step = steps.find((each) => (to - from) / each <= count) || Math.ceil((to - from) / count);
  const out = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push({at: t, text: clock(t, step)});
  return out;
}
