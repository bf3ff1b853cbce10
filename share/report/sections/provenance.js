// Provenance: what ran, and from which sources.

// [["git.commit", ..]]
function flat(object, before = "") {
  return Object.entries(object || {}).flatMap(([key, value]) =>
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? flat(value, before + key + ".")
      : [[before + key, Array.isArray(value) ? value.join(" ") : value]],
  );
}
function provenance(run, id) {
  const rows = [
    ["directory", run.directory],
    ["id", run.id],
    ["framework", run.framework],
    ["scheduler", run.scheduler],
    ["MPI", run.mpi],
    ["began (UTC)", date(began(run))],
    ["ended (UTC)", date(ended(run))],
    ...flat(run.provenance),
    ...flat({energy: run.energy}),
  ].map(([name, value]) => [name, value === null || value === undefined ? "not recorded" : String(value)]);
  const results = flat(run.result);
  return section(
    depth,
    id + "-provenance",
    "Provenance",
    table("What ran, and from which sources", [{name: "fact"}, {name: "value", kind: "text"}], rows),
    results.length
      ? table(
          "What the program reported as its result",
          [{name: "figure"}, {name: "value", kind: "text"}],
          results.map(([name, value]) => [nice(name), number(value)]),
        )
      : null,
    folded("The job", () => el("pre", {tabindex: "0", text: JSON.stringify(run.job, null, 2)})),
    run.problems.length
      ? el(
          "div",
          {},
          el("p", {text: "What could not be read:"}),
          el(
            "ul",
            {},
            run.problems.map((text) => el("li", {text})),
          ),
        )
      : null,
  );
}
