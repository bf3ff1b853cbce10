// The figures of a run at a glance, and its failures.

// "97.4 % test accuracy", as the program said it at its end.
function resultText(run) {
  const result = run.result;
  if (!result || typeof result !== "object") return null;
  const key =
    Object.keys(result).find((name) => /accuracy/.test(name)) ||
    Object.keys(result).find((name) => typeof result[name] === "number");
  return key ? {name: nice(key), text: /accuracy/.test(key) ? percentOrNumber(result[key]) : number(result[key])} : null;
}

function tiles(run) {
  const out = [];
  const add = (name, value, small) => {
    if (value !== null && value !== undefined)
      out.push(el("div", {}, el("dt", {text: name}), el("dd", {text: value}, small ? el("small", {text: small}) : null)));
  };
  const result = resultText(run),
    rate = throughputOf(run),
    loss = lossOf(run),
    step = lastStep(run);
  if (result) add(result.name, result.text, "reported by the program");
  if (loss) add(nice(loss.name), number(loss.last.value), `at step ${number(loss.last.step)}`);
  if (rate) add(nice(rate.name), number(rate.median), "median");
  if (step >= 0)
    add("Steps", number(step), run.last_progress && run.last_progress.steps ? `of ${number(run.last_progress.steps)}` : null);
  if (run.time) add("Time", duration(run.time.total), `${percent(run.time.useful / (run.time.total || 1))} useful`);
  if (run.kind === "chain") add("Links", number(run.links.length), run.time ? `${duration(run.time.queue)} in the queue` : null);
  if (run.plan) {
    const gpus = run.plan.map
      .flatMap((node) => node.ranks)
      .reduce((sum, rank) => sum + (rank[2] ? rank[2].split(",").length : 0), 0);
    add(
      "Ranks",
      number(run.plan.ranks),
      `${number(run.plan.nodes)} node${run.plan.nodes === 1 ? "" : "s"}${gpus ? `, ${number(gpus)} GPU${gpus === 1 ? "" : "s"}` : ""}`,
    );
  }
  const restarts = run.links.reduce((sum, link) => sum + Math.max(link.attempts.length - 1, 0), 0);
  if (restarts) add("Retries", number(restarts));
  return el("dl", {class: "tiles"}, out);
}

function failures(run) {
  return run.failures.map((failure) =>
    el(
      "section",
      {class: "failure"},
      el("h" + depth, {
        text: `${run.kind === "chain" ? `Link ${failure.link}, attempt` : "Attempt"} ${failure.attempt} failed: ${failure.rank === null ? "" : `${failure.role} ${failure.task_index} (rank ${failure.rank}) on `}${failure.host || "?"}`,
      }),
      el("p", {text: [failure.reason, failure.cause].filter(Boolean).join(": ")}),
      failure.last_lines.length
        ? el("pre", {tabindex: "0", "aria-label": "its last lines", text: failure.last_lines.join("\n")})
        : null,
    ),
  );
}
