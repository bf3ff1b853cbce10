// The page of `dlrun report`: what it shows of the runs and chains in its data (dlrun.report/1), section by section. A figure
// that a run did not record is said to be absent; it is never shown as 0.
"use strict";

(() => {
  const {el, svg, table, folded, number, percent, duration, date} = Plots;
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const alone = data.runs.length === 1;
  const depth = alone ? 2 : 3;  // of the headings within a run
  const later = [];  // plots are drawn once all of them have their places, so that nothing moves
  const plots = (...made) => made.map((each) => { later.push(each.draw); return each.figure; });

  const partNames = ["start", "useful", "checkpoint", "lost", "idle", "queue"];
  const partTexts = {start: "until the first step", useful: "work that was kept", checkpoint: "training stood still for one", lost: "work behind the last checkpoint of an end that was not planned", idle: "waiting, cleaning up", queue: "between the jobs of the chain"};
  const groups = [
    {group: "loss", title: "Loss"}, {group: "accuracy", title: "Accuracy", format: (v) => percentOrNumber(v)},
    {group: "throughput", title: "Throughput", fromZero: true}, {group: "step_time", title: "Time per step", format: duration, fromZero: true, caption: "Mean from line to line of the metrics, evaluation and checkpoints included."},
    {group: "learning_rate", title: "Learning rate"},
    {group: "gpu", title: "GPU use", absent: "GPU use"}, {group: "memory", title: "Memory", absent: "memory", format: (v) => bytes(v)},
    {group: "energy", title: "Energy and power", absent: "energy"}, {group: "other", title: "Other figures"}];
  const percentOrNumber = (v) => (v >= 0 && v <= 1 ? Number((100 * v).toFixed(2)) + " %" : number(v));
  const bytes = (v) => (Math.abs(v) >= 2 ** 20 ? (Math.abs(v) >= 2 ** 30 ? Number((v / 2 ** 30).toPrecision(4)) + " GiB" : Number((v / 2 ** 20).toPrecision(4)) + " MiB") : number(v));
  const titleOf = (run) => run.name || "run";
  const seriesOf = (run, group) => run.metrics.series.filter((s) => s.group === group);
  const nice = (name) => name.replace(/_per_s$/, "/s").replaceAll("_", " ");
  const kindOf = (state) => (state === "done" ? "good" : ["failed", "no record"].includes(state) ? "bad" : "wait");
  const stateText = {"no record": "no record: it runs, or its head was killed"};

  function section(level, id, title, ...children) {
    const heading = el("h" + level, {id, text: title});
    return el("section", {"aria-labelledby": id}, heading, ...children);
  }
  const badge = (run) => el("span", {class: "state " + kindOf(run.state), text: run.state});

  // "97.4 % test accuracy", as the program said it at its end.
  function resultText(run) {
    const result = run.result;
    if (!result || typeof result !== "object") return null;
    const key = Object.keys(result).find((name) => /accuracy/.test(name)) || Object.keys(result).find((name) => typeof result[name] === "number");
    return key ? {name: nice(key), text: /accuracy/.test(key) ? percentOrNumber(result[key]) : number(result[key])} : null;
  }
  const throughputOf = (run) => seriesOf(run, "throughput")[0];
  const lossOf = (run) => seriesOf(run, "loss")[0];
  const lastStep = (run) => Math.max(...run.metrics.series.map((s) => s.last.step), run.last_progress && run.last_progress.step || -1);
  const began = (run) => (run.links[0] || {}).began;
  const ended = (run) => (run.links[run.links.length - 1] || {}).ended;

  function tiles(run) {
    const out = [];
    const add = (name, value, small) => { if (value !== null && value !== undefined) out.push(el("div", {}, el("dt", {text: name}), el("dd", {text: value}, small ? el("small", {text: small}) : null))); };
    const result = resultText(run), rate = throughputOf(run), loss = lossOf(run), step = lastStep(run);
    if (result) add(result.name, result.text, "reported by the program");
    if (loss) add(nice(loss.name), number(loss.last.value), `at step ${number(loss.last.step)}`);
    if (rate) add(nice(rate.name), number(rate.median), "median");
    if (step >= 0) add("Steps", number(step), run.last_progress && run.last_progress.steps ? `of ${number(run.last_progress.steps)}` : null);
    if (run.time) add("Time", duration(run.time.total), `${percent(run.time.useful / (run.time.total || 1))} useful`);
    if (run.kind === "chain") add("Links", number(run.links.length), run.time ? `${duration(run.time.queue)} in the queue` : null);
    if (run.plan) {
      const gpus = run.plan.map.flatMap((node) => node.ranks).reduce((sum, rank) => sum + (rank[2] ? rank[2].split(",").length : 0), 0);
      add("Ranks", number(run.plan.ranks), `${number(run.plan.nodes)} node${run.plan.nodes === 1 ? "" : "s"}${gpus ? `, ${number(gpus)} GPU${gpus === 1 ? "" : "s"}` : ""}`);
    }
    const restarts = run.links.reduce((sum, link) => sum + Math.max(link.attempts.length - 1, 0), 0);
    if (restarts) add("Retries", number(restarts));
    return el("dl", {class: "tiles"}, out);
  }

  function failures(run) {
    return run.failures.map((failure) => el("section", {class: "failure"},
      el("h" + depth, {text: `${run.kind === "chain" ? `Link ${failure.link}, attempt` : "Attempt"} ${failure.attempt} failed: ${failure.rank === null ? "" : `${failure.role} ${failure.task_index} (rank ${failure.rank}) on `}${failure.host || "?"}`}),
      el("p", {text: [failure.reason, failure.cause].filter(Boolean).join(": ")}),
      failure.last_lines.length ? el("pre", {tabindex: "0", "aria-label": "its last lines", text: failure.last_lines.join("\n")}) : null));
  }

  // One plot per group of figures; absent ones are named together.
  function training(run, id) {
    const made = [], absent = [];
    for (const group of groups) {
      const series = seriesOf(run, group.group);
      if (series.length) made.push(...plots(Plots.lines({...group, level: depth + 1, xName: "step", series: series.map((s) => ({...s, name: nice(s.name)}))})));
      else if (group.absent && !(group.group === "energy" && run.energy)) absent.push(group.absent);
    }
    const notes = [];
    if (!run.metrics.series.length) notes.push("This run wrote no metrics.jsonl, so that its loss, accuracy and throughput are not known.");
    if (absent.length) notes.push(`Not recorded: ${absent.join(", ")}.`);
    if (run.metrics.lines) notes.push(`${number(run.metrics.lines)} lines of metrics.`);
    if (run.metrics.series.some((s) => s.mean)) notes.push(`The faint lines keep the lowest and the highest point of each stretch, and the strong ones are its mean.`);
    if (run.metrics.repeated_lines) notes.push(`${number(run.metrics.repeated_lines)} lines are of steps that a later link did again, and are not shown.`);
    if (run.metrics.unread_lines) notes.push(`${number(run.metrics.unread_lines)} lines could not be read.`);
    if (run.metrics.not_shown.length) notes.push(`Too many figures; not shown: ${run.metrics.not_shown.join(", ")}.`);
    const energy = run.energy ? flat(run.energy) : [];
    return section(depth, id + "-training", "Training", el("p", {class: "quiet", text: notes.join(" ")}), el("div", {class: "plots"}, made),
      energy.length ? table("Energy", [{name: "figure"}, {name: "value", kind: "number"}], energy.map(([name, value]) => [nice(name), number(value)])) : null);
  }

  function stepTimes(run, id) {
    const times = run.step_times;
    if (!times) return section(depth, id + "-ranks", "Step times by rank", el("p", {class: "quiet", text: "Not recorded: no step times by rank are among the events of this run."}));
    const rows = times.tenths_of_milliseconds.length;
    const from = (i) => Math.floor(times.ranks * i / rows), to = (i) => Math.floor(times.ranks * (i + 1) / rows) - 1;
    const names = (i) => (from(i) === to(i) ? `rank ${from(i)}` : `${from(i)}–${to(i)}`);
    const slowest = () => table("The ranks with the longest median step", [{name: "rank", kind: "number"}, {name: "median", kind: "number"}, {name: "longest", kind: "number"}, {name: "× median", kind: "number"}],
      times.slowest.map((rank) => [number(rank.rank), duration(rank.median), duration(rank.longest), times.median > 0 ? (rank.median / times.median).toFixed(2) : null]));
    return section(depth, id + "-ranks", "Step times by rank", ...plots(Plots.heat({
      level: depth + 1, title: `Seconds per step of ${number(times.ranks)} ranks`, cells: times.tenths_of_milliseconds, rowName: names, columnName: (k) => date(times.times[k]).slice(5, 16),
      format: (v) => duration(v / 1e4), caption: rows < times.ranks ? "A row is several ranks, and shows the slowest of them." : null, table: slowest})));
  }

  // Shapes as well as colours: who cannot tell the colours still sees what is what.
  const markKinds = {
    failure: {name: "failure", color: "lost", path: "M-5,-5L5,5M5,-5L-5,5"}, retry: {name: "retry", color: "c0", path: "M-5,4L0,-5L5,4Z", filled: true},
    resume: {name: "next link", color: "c2", path: "M-4,-5L5,0L-4,5Z", filled: true}, stop: {name: "stop", color: "c3", path: "M-4.5,-4.5H4.5V4.5H-4.5Z", filled: true},
    end: {name: "end", color: "c6", path: "M0,-6V6"}, done: {name: "done", color: "good", path: "M-5,0L-1,4L6,-5"},
    checkpoint: {name: "checkpoint", color: "text", path: "M0,-4V4"}};
  const markNode = (kind, x, y, text) => svg("g", {transform: `translate(${x},${y})`}, text ? svg("title", {text}) : null,
    svg("path", {d: markKinds[kind].path, fill: markKinds[kind].filled ? `var(--${markKinds[kind].color})` : "none", stroke: `var(--${markKinds[kind].color})`, "stroke-width": kind === "checkpoint" ? 1 : 2.2, "stroke-linejoin": "round"}));

  function spans(link) {  // [[part, from, to]] of one link
    const out = [];
    const attempts = link.attempts.some((a) => a.time) ? link.attempts.filter((a) => a.began !== null && a.time) : [{began: link.began, time: link.time}];
    for (const attempt of attempts) {
      let at = attempt.began;
      if (at === null || !attempt.time) continue;
      for (const part of partNames) {
        const seconds = attempt.time[part];
        if (!seconds) continue;
        out.push([part, at, at + seconds]);
        at += seconds;
      }
    }
    return out;
  }

  function timeline(run) {
    const links = run.links.filter((link) => link.began !== null);
    if (!links.length) return null;
    const marks = run.events.marks.filter((mark) => markKinds[mark.kind]);
    const from = Math.min(...links.map((link) => link.began)), to = Math.max(...links.map((link) => Math.max(link.ended || link.began, ...spans(link).map((s) => s[2]))), ...marks.map((m) => m.t), from + 1);
    const high = links.length > 40 ? 22 : 44, height = links.length * high + 34;
    const place = el("div", {class: "plot", style: {height: height + "px"}});
    const draw = () => {
      const width = Plots.widthOf(place, true), left = run.kind === "chain" ? 62 : 8, right = 10;
      const x = (t) => left + (t - from) / (to - from) * (width - left - right);
      const node = svg("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Time axis of ${links.length} link${links.length === 1 ? "" : "s"} from ${date(from)} to ${date(to)} UTC; the tables below have the same.`});
      for (const tick of Plots.timeTicks(from, to, Math.max(2, (width - left) / 95)))
        node.append(svg("line", {class: "grid", x1: x(tick.at), x2: x(tick.at), y1: 0, y2: height - 24}), svg("text", {class: "tick", x: Math.min(Math.max(x(tick.at), tick.text.length * 3.6), width - tick.text.length * 3.6), y: height - 8, "text-anchor": "middle", text: tick.text}));
      links.forEach((link, i) => {
        const y = i * high + high * 0.5 - 2, thick = Math.min(high * 0.38, 15);
        if (run.kind === "chain") node.append(svg("text", {x: 0, y: y + thick * 0.8, text: `link ${link.number}`}));
        if (link.queue > 0) node.append(svg("rect", {x: x(link.began - link.queue), y: y + thick * 0.3, width: x(link.began) - x(link.began - link.queue), height: thick * 0.4, fill: "var(--queue)"}, svg("title", {text: `queue ${duration(link.queue)}`})));
        for (const [part, begin, end] of spans(link))
          node.append(svg("rect", {x: x(begin), y, width: Math.max(x(end) - x(begin), 0.5), height: thick, fill: `var(--${part})`}, svg("title", {text: `${part} ${duration(end - begin)}`})));
        for (const saved of run.events.checkpoints) if (saved.t >= link.began && saved.t <= (link.ended || to)) node.append(markNode("checkpoint", x(saved.t), y + thick + 5, `checkpoint ${saved.what} at ${date(saved.t)}`));
        let last = -Infinity;  // marks of one time stand beside each other
        for (const mark of marks) {
          if (mark.link !== link.number || (mark.kind === "resume" && high < 30)) continue;
          last = Math.max(Math.min(Math.max(x(mark.t), left + 6), width - right - 1), last + 12);
          node.append(markNode(mark.kind, last, y - 8, `${mark.text}, ${date(mark.t)} UTC`));
        }
      });
      place.replaceChildren(node);
    };
    later.push(() => Plots.drawn(draw));
    const present = Object.keys(markKinds).filter((kind) => marks.some((mark) => mark.kind === kind) || (kind === "checkpoint" && run.events.checkpoints.length));
    const legend = el("ul", {class: "bar"}, partNames.filter((part) => run.time && run.time[part] > 0).map((part) => el("li", {}, Plots.box(part), part)),
      present.map((kind) => el("li", {}, svg("svg", {width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": "true"}, markNode(kind, 0, 0)), markKinds[kind].name)));
    return el("figure", {class: "wide"}, el("h" + (depth + 1), {text: `Time axis, ${date(from)} to ${date(to)} UTC`}), legend, place,
      el("figcaption", {text: "The parts of an attempt stand in the order start, useful, checkpoint, lost, idle; marks below a bar are checkpoints."}));
  }

  function eventTable(run) {
    const marks = run.events.marks;
    if (!marks.length) return el("p", {class: "quiet", text: "No events were recorded."});
    const chain = run.kind === "chain";
    const made = () => table("Events, times in UTC", [{name: "time"}, ...(chain ? [{name: "link", kind: "number"}] : []), {name: "attempt", kind: "number"}, {name: "kind"}, {name: "what", kind: "text"}],
      marks.map((mark) => [date(mark.t), ...(chain ? [mark.link] : []), mark.attempt, mark.kind, mark.text]));
    return el("div", {}, folded(`Table: ${number(marks.length)} events${run.events.marks_left_out ? `, ${number(run.events.marks_left_out)} more are not in this page` : ""}`, made));
  }

  function time(run, id) {
    if (!run.time) return section(depth, id + "-time", "Time", el("p", {class: "quiet", text: "Where the time went is not recorded."}));
    const chain = run.kind === "chain";
    const parts = partNames.filter((part) => part !== "queue" || chain).map((part) => ({name: part, color: part, value: run.time[part] || 0, text: duration(run.time[part])}));
    const rows = [];
    for (const link of run.links)
      for (const attempt of link.attempts.length ? link.attempts : [{attempt: 1, time: link.time, reason: link.reason, exit_code: link.exit_code}]) {
        const own = attempt.time || (link.attempts.length === 1 ? link.time : null) || {};
        rows.push([...(chain ? [`link ${link.number}`, link.job] : []), chain ? attempt.attempt : `attempt ${attempt.attempt}`,
          ...partNames.slice(0, 5).map((part) => duration(own[part])), ...(chain ? [attempt.attempt === 1 ? duration(link.queue) : Plots.unknown] : []), duration(own.total),
          attempt.exit_code ?? link.exit_code, attempt.reason ?? link.reason ?? link.end]);
      }
    const columns = [...(chain ? [{name: "link"}, {name: "job"}, {name: "attempt", kind: "number"}] : [{name: "attempt"}]), ...partNames.slice(0, chain ? 6 : 5).map((name) => ({name, kind: "number"})), {name: "total", kind: "number"}, {name: "exit code", kind: "number"}, {name: "reason", kind: "text"}];
    const foot = ["all", ...(chain ? ["", ""] : []), ...partNames.slice(0, chain ? 6 : 5).map((part) => duration(run.time[part])), duration(run.time.total), run.exit_code, ""];
    const saved = run.events.checkpoints_reported;
    return section(depth, id + "-time", "Time", Plots.share("Time", parts),
      el("p", {class: "quiet", text: partNames.filter((part) => part !== "queue" || chain).map((part) => `${part}: ${partTexts[part]}`).join("; ") + `. ${saved ? `${number(saved)} checkpoint${saved === 1 ? " was" : "s were"} reported.` : "No checkpoint was reported."}`}),
      timeline(run), rows.length > 60 ? folded(`Table: ${rows.length} attempts`, () => table("Time of each attempt", columns, rows, foot)) : table("Time of each attempt", columns, rows, foot), eventTable(run));
  }

  const roleColor = (role) => `var(--c${role % 7})`;
  function rankTitle(plan, node, [rank, role, gpus, cores, end]) {
    return [`rank ${rank}`, plan.roles[role], `on ${node.host}`, gpus ? `GPU ${gpus}` : gpus === "" ? "no GPU" : null, cores ? `cores ${cores}` : null, end].filter(Boolean).join(", ");
  }
  // Each rank a square, each node a block: a look at thousands.
  function compactMap(plan) {
    const blocks = plan.map.map((node) => ({node, ranks: node.ranks.length ? node.ranks : [null]}));
    const at = el("span", {class: "at", text: "point at a rank to see what it is"});
    const place = el("div", {class: "plot"});
    const draw = () => {
      const width = Plots.widthOf(place, true), size = width < 600 ? 5 : 9, gap = width < 600 ? 4 : 7, most = Math.max(...blocks.map((b) => Math.min(b.ranks.length, 16)));
      const across = Math.max(1, Math.floor((width + gap) / (most * size + gap))), deep = Math.max(...blocks.map((b) => Math.ceil(b.ranks.length / 16)));
      const height = Math.ceil(blocks.length / across) * (deep * size + gap);
      const node = svg("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${number(plan.ranks)} ranks on ${number(plan.nodes)} nodes; the table below has them.`});
      const paths = plan.roles.map(() => ({good: "", bad: ""}));
      blocks.forEach((block, i) => {
        const left = (i % across) * (most * size + gap), top = Math.floor(i / across) * (deep * size + gap);
        block.at = [left, top];
        block.ranks.forEach((rank, k) => {
          const x = left + (k % 16) * size, y = top + Math.floor(k / 16) * size;
          const role = rank ? rank[1] : 0, bad = rank && rank[4] !== null;
          (paths[role] || paths[0] || (paths[0] = {good: "", bad: ""}))[bad ? "bad" : "good"] += bad ? `M${x + 1},${y + 1}l${size - 3},${size - 3}m0,${3 - size}l${3 - size},${size - 3}` : `M${x},${y}h${size - 1}v${size - 1}h${1 - size}Z`;
        });
      });
      paths.forEach((path, role) => node.append(svg("path", {d: path.good, fill: roleColor(role)}), svg("path", {d: path.bad, fill: "none", stroke: "var(--bad)", "stroke-width": 2.5})));
      node.addEventListener("pointermove", (event) => {
        const bounds = node.getBoundingClientRect(), x = event.clientX - bounds.left, y = event.clientY - bounds.top;
        const block = blocks[Math.floor(y / (deep * size + gap)) * across + Math.floor(x / (most * size + gap))];
        const rank = block && block.ranks[Math.floor((y - block.at[1]) / size) * 16 + Math.floor((x - block.at[0]) / size)];
        at.textContent = rank ? rankTitle(plan, block.node, rank) : block ? block.node.host : "";
      });
      place.replaceChildren(node);
      place.style.height = height + "px";
    };
    later.push(() => Plots.drawn(draw));
    return el("div", {}, el("div", {class: "bar"}, plan.roles.map((role, i) => el("span", {}, Plots.box("c" + (i % 7)), " " + role)), at), place);
  }
  function nodeCards(plan) {
    return el("ul", {class: "nodes"}, plan.map.map((node) => el("li", {}, el("strong", {text: node.host}), el("ul", {class: "ranks"}, node.ranks.map((rank) => el("li", {class: rank[4] === null ? null : "bad", style: {"--role": roleColor(rank[1])}, title: rankTitle(plan, node, rank)},
      `rank ${rank[0]}`, el("small", {text: [plan.roles.length > 1 ? plan.roles[rank[1]] : null, rank[2] ? `GPU ${rank[2]}` : null, rank[3] ? `core${/[-,]/.test(rank[3]) ? "s" : ""} ${rank[3]}` : null, rank[4]].filter(Boolean).join(", ")})))))));
  }
  const span = (numbers) => (numbers.length === 0 ? "" : numbers[numbers.length - 1] - numbers[0] === numbers.length - 1 && numbers.length > 1 ? `${numbers[0]}–${numbers[numbers.length - 1]}` : numbers.join(", "));
  function planMap(run, id) {
    const plan = run.plan;
    if (!plan) return section(depth, id + "-plan", "Plan", el("p", {class: "quiet", text: "There is no plan in the run directory."}));
    const rows = () => plan.map.map((node) => {
      const gpus = node.ranks.map((rank) => rank[2]), ends = node.ranks.filter((rank) => rank[4] !== null);
      return [node.host, node.count, span(node.ranks.map((rank) => rank[0])), gpus.every((g) => g === null) ? "not told" : [...new Set(gpus.filter(Boolean))].join(", ") || "none", ends.map((rank) => `${rank[0]}: ${rank[4]}`).slice(0, 4).join("; ") + (ends.length > 4 ? " …" : "")];
    });
    const made = () => table("Nodes, ranks and GPUs", [{name: "node"}, {name: "ranks", kind: "number"}, {name: "which"}, {name: "GPUs"}, {name: "ends other than exit code 0", kind: "text"}], rows());
    return section(depth, id + "-plan", "Plan",
      el("p", {text: `${number(plan.ranks)} rank${plan.ranks === 1 ? "" : "s"} on ${number(plan.nodes)} node${plan.nodes === 1 ? "" : "s"}${plan.roles.length ? `; roles: ${plan.roles.join(", ")}` : ""}.${plan.shown === "nodes" ? " There are too many ranks to show each." : ""}${plan.map.length < plan.nodes ? ` The first ${number(plan.map.length)} nodes are in this page.` : ""}`}),
      plan.shown === "nodes" || plan.ranks > 128 ? compactMap(plan) : nodeCards(plan), folded(`Table: ${number(plan.map.length)} node${plan.map.length === 1 ? "" : "s"}`, made));
  }

  // [["git.commit", ..]]
  function flat(object, before = "") {
    return Object.entries(object || {}).flatMap(([key, value]) => (value !== null && typeof value === "object" && !Array.isArray(value) ? flat(value, before + key + ".") : [[before + key, Array.isArray(value) ? value.join(" ") : value]]));
  }
  function provenance(run, id) {
    const rows = [["directory", run.directory], ["id", run.id], ["framework", run.framework], ["scheduler", run.scheduler], ["MPI", run.mpi], ["began (UTC)", date(began(run))], ["ended (UTC)", date(ended(run))], ...flat(run.provenance)]
      .map(([name, value]) => [name, value === null || value === undefined ? "not recorded" : String(value)]);
    const results = flat(run.result);
    return section(depth, id + "-provenance", "Provenance", table("What ran, and from which sources", [{name: "fact"}, {name: "value", kind: "text"}], rows),
      results.length ? table("What the program reported as its result", [{name: "figure"}, {name: "value", kind: "text"}], results.map(([name, value]) => [nice(name), number(value)])) : null,
      folded("The job", () => el("pre", {tabindex: "0", text: JSON.stringify(run.job, null, 2)})),
      run.problems.length ? el("div", {}, el("p", {text: "What could not be read:"}), el("ul", {}, run.problems.map((text) => el("li", {text})))) : null);
  }

  function comparison(runs) {
    const labels = runs.map((run, i) => (runs.filter((other) => titleOf(other) === titleOf(run)).length > 1 ? `${titleOf(run)} #${i + 1}` : titleOf(run)));
    const rows = runs.map((run, i) => {
      const result = resultText(run), rate = throughputOf(run), loss = lossOf(run);
      return [labels[i], run.state, run.plan ? number(run.plan.ranks) : null, lastStep(run) >= 0 ? number(lastStep(run)) : null, loss ? number(loss.last.value) : null, result ? `${result.text} ${result.name}` : null, rate ? number(rate.median) : null, run.time ? duration(run.time.total) : null, run.time ? percent(run.time.useful / (run.time.total || 1)) : null];
    });
    const made = [];
    for (const group of groups.slice(0, 4)) {
      const names = [...new Set(runs.flatMap((run) => seriesOf(run, group.group).map((s) => s.name)))];
      for (const name of names.slice(0, 2)) {
        const series = runs.flatMap((run, i) => seriesOf(run, group.group).filter((s) => s.name === name).map((s) => ({...s, name: labels[i]})));
        if (series.length > 1) made.push(...plots(Plots.lines({...group, title: nice(name).replace(/^./, (c) => c.toUpperCase()), xName: "step", series})));
      }
    }
    return section(2, "comparison", "Comparison", table("The runs of this page", [{name: "run"}, {name: "state"}, ...["ranks", "steps", "last loss", "result", "throughput (median)", "time", "useful"].map((name) => ({name, kind: "number"}))], rows), el("div", {class: "plots"}, made));
  }

  function runSection(run, i, alone) {
    const id = "run" + i;
    const head = [el("p", {}, badge(run), " ", stateText[run.state] || (run.reason === run.state ? "" : run.reason) || ""), el("p", {class: "quiet", text: `${run.kind === "chain" ? "Chain" : "Run"} ${run.id && run.kind !== "chain" ? run.id + " " : ""}of framework ${run.framework || "?"}, ${date(began(run))} to ${date(ended(run))} UTC, in ${run.directory}`})];
    const body = [...head, tiles(run), ...failures(run), training(run, id), stepTimes(run, id), time(run, id), planMap(run, id), provenance(run, id)];
    return alone ? el("div", {id}, body) : section(2, id, `${titleOf(run)} (${i + 1} of ${data.runs.length})`, ...body);
  }

  const sections = alone ? [["run0-training", "Training"], ["run0-ranks", "Step times by rank"], ["run0-time", "Time"], ["run0-plan", "Plan"], ["run0-provenance", "Provenance"]] : [["comparison", "Comparison"], ...data.runs.map((run, i) => ["run" + i, `${i + 1}: ${titleOf(run)}`])];
  main.replaceChildren(el("header", {}, el("h1", {text: alone ? titleOf(data.runs[0]) : `${data.runs.length} runs`}), el("nav", {"aria-label": "Sections"}, el("ul", {}, sections.map(([id, text]) => el("li", {}, el("a", {href: "#" + id, text})))))));
  if (!alone) main.append(comparison(data.runs));
  data.runs.forEach((run, i) => main.append(runSection(run, i, alone)));
  main.append(el("footer", {class: "quiet"}, el("p", {text: `Made by dlrun ${data.dlrun} at ${data.made.replace("T", " ").replace(/(\.\d+)?Z$/, "")} UTC. Times are UTC.`})));
  later.forEach((draw) => draw());
  Plots.watch();
  document.documentElement.dataset.ready = "yes";
})();
