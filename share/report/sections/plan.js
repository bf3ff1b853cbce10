// The map of the plan: nodes, ranks, roles, GPUs, and which ranks did not end well.

const roleColor = (role) => `var(--c${role % 7})`;
function rankTitle(plan, node, [rank, role, gpus, cores, end]) {
  return [
    `rank ${rank}`,
    plan.roles[role],
    `on ${node.host}`,
    gpus ? `GPU ${gpus}` : gpus === "" ? "no GPU" : null,
    cores ? `cores ${cores}` : null,
    end,
  ]
    .filter(Boolean)
    .join(", ");
}
// Each rank a square, each node a block: a look at thousands.
function compactMap(plan) {
  const blocks = plan.map.map((node) => ({node, ranks: node.ranks.length ? node.ranks : [null]}));
  const at = el("span", {class: "at", text: "point at a rank to see what it is"});
  const place = el("div", {class: "plot"});
  const draw = () => {
    const width = widthOf(place, true),
      size = width < 600 ? 5 : 9,
      gap = width < 600 ? 4 : 7,
      most = Math.max(...blocks.map((b) => Math.min(b.ranks.length, 16)));
    const across = Math.max(1, Math.floor((width + gap) / (most * size + gap))),
      deep = Math.max(...blocks.map((b) => Math.ceil(b.ranks.length / 16)));
    const height = Math.ceil(blocks.length / across) * (deep * size + gap);
    const node = svg("svg", {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `${number(plan.ranks)} ranks on ${number(plan.nodes)} nodes; the table below has them.`,
    });
    const paths = plan.roles.map(() => ({good: "", bad: ""}));
    blocks.forEach((block, i) => {
      const left = (i % across) * (most * size + gap),
        top = Math.floor(i / across) * (deep * size + gap);
      block.at = [left, top];
      block.ranks.forEach((rank, k) => {
        const x = left + (k % 16) * size,
          y = top + Math.floor(k / 16) * size;
        const role = rank ? rank[1] : 0,
          bad = rank && rank[4] !== null;
        (paths[role] || paths[0] || (paths[0] = {good: "", bad: ""}))[bad ? "bad" : "good"] += bad
          ? `M${x + 1},${y + 1}l${size - 3},${size - 3}m0,${3 - size}l${3 - size},${size - 3}`
          : `M${x},${y}h${size - 1}v${size - 1}h${1 - size}Z`;
      });
    });
    paths.forEach((path, role) =>
      node.append(
        svg("path", {d: path.good, fill: roleColor(role)}),
        svg("path", {d: path.bad, fill: "none", stroke: "var(--bad)", "stroke-width": 2.5}),
      ),
    );
    node.addEventListener("pointermove", (event) => {
      const bounds = node.getBoundingClientRect(),
        x = event.clientX - bounds.left,
        y = event.clientY - bounds.top;
      const block = blocks[Math.floor(y / (deep * size + gap)) * across + Math.floor(x / (most * size + gap))];
      const rank = block && block.ranks[Math.floor((y - block.at[1]) / size) * 16 + Math.floor((x - block.at[0]) / size)];
      at.textContent = rank ? rankTitle(plan, block.node, rank) : block ? block.node.host : "";
    });
    place.replaceChildren(node);
    place.style.height = height + "px";
  };
  later.push(() => drawn(draw));
  return el(
    "div",
    {},
    el(
      "div",
      {class: "bar"},
      plan.roles.map((role, i) => el("span", {}, box("c" + (i % 7)), " " + role)),
      at,
    ),
    place,
  );
}
function nodeCards(plan) {
  return el(
    "ul",
    {class: "nodes"},
    plan.map.map((node) =>
      el(
        "li",
        {},
        el("strong", {text: node.host}),
        el(
          "ul",
          {class: "ranks"},
          node.ranks.map((rank) =>
            el(
              "li",
              {class: rank[4] === null ? null : "bad", style: {"--role": roleColor(rank[1])}, title: rankTitle(plan, node, rank)},
              `rank ${rank[0]}`,
              el("small", {
                text: [
                  plan.roles.length > 1 ? plan.roles[rank[1]] : null,
                  rank[2] ? `GPU ${rank[2]}` : null,
                  rank[3] ? `core${/[-,]/.test(rank[3]) ? "s" : ""} ${rank[3]}` : null,
                  rank[4],
                ]
                  .filter(Boolean)
                  .join(", "),
              }),
            ),
          ),
        ),
      ),
    ),
  );
}
const span = (numbers) =>
  numbers.length === 0
    ? ""
    : numbers[numbers.length - 1] - numbers[0] === numbers.length - 1 && numbers.length > 1
      ? `${numbers[0]}–${numbers[numbers.length - 1]}`
      : numbers.join(", ");
function planMap(run, id) {
  const plan = run.plan;
  if (!plan) return section(depth, id + "-plan", "Plan", el("p", {class: "quiet", text: "There is no plan in the run directory."}));
  const rows = () =>
    plan.map.map((node) => {
      const gpus = node.ranks.map((rank) => rank[2]),
        ends = node.ranks.filter((rank) => rank[4] !== null);
      return [
        node.host,
        node.count,
        span(node.ranks.map((rank) => rank[0])),
        gpus.every((g) => g === null) ? "not told" : [...new Set(gpus.filter(Boolean))].join(", ") || "none",
        ends
          .map((rank) => `${rank[0]}: ${rank[4]}`)
          .slice(0, 4)
          .join("; ") + (ends.length > 4 ? " …" : ""),
      ];
    });
  const made = () =>
    table(
      "Nodes, ranks and GPUs",
      [
        {name: "node"},
        {name: "ranks", kind: "number"},
        {name: "which"},
        {name: "GPUs"},
        {name: "ends other than exit code 0", kind: "text"},
      ],
      rows(),
    );
  return section(
    depth,
    id + "-plan",
    "Plan",
    el("p", {
      text: `${number(plan.ranks)} rank${plan.ranks === 1 ? "" : "s"} on ${number(plan.nodes)} node${plan.nodes === 1 ? "" : "s"}${plan.roles.length ? `; roles: ${plan.roles.join(", ")}` : ""}.${plan.shown === "nodes" ? " There are too many ranks to show each." : ""}${plan.map.length < plan.nodes ? ` The first ${number(plan.map.length)} nodes are in this page.` : ""}`,
    }),
    plan.shown === "nodes" || plan.ranks > 128 ? compactMap(plan) : nodeCards(plan),
    folded(`Table: ${number(plan.map.length)} node${plan.map.length === 1 ? "" : "s"}`, made),
  );
}
