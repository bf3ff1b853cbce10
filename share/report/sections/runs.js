// What all sections ask of a run of the page (dlrun.report/1).

const alone = data.runs.length === 1;
const depth = alone ? 2 : 3; // of the headings within a run

const partNames = ["start", "useful", "checkpoint", "lost", "idle", "queue"];
const partTexts = {
  start: "until the first step",
  useful: "work that was kept",
  checkpoint: "training stood still for one",
  lost: "work behind the last checkpoint of an end that was not planned",
  idle: "waiting, cleaning up",
  queue: "between the jobs of the chain",
};
const groups = [
  {group: "loss", title: "Loss"},
  {group: "accuracy", title: "Accuracy", format: (v) => percentOrNumber(v)},
  {group: "throughput", title: "Throughput", fromZero: true},
  {
    group: "step_time",
    title: "Time per step",
    format: duration,
    fromZero: true,
    caption: "Mean from line to line of the metrics, evaluation and checkpoints included.",
  },
  {group: "learning_rate", title: "Learning rate"},
  {group: "gpu", title: "GPU use", absent: "GPU use"},
  {group: "memory", title: "Memory", absent: "memory", format: (v) => bytes(v)},
  {group: "energy", title: "Energy and power", absent: "energy"},
  {group: "other", title: "Other figures"},
];
const percentOrNumber = (v) => (v >= 0 && v <= 1 ? Number((100 * v).toFixed(2)) + " %" : number(v));
const bytes = (v) =>
  Math.abs(v) >= 2 ** 20
    ? Math.abs(v) >= 2 ** 30
      ? Number((v / 2 ** 30).toPrecision(4)) + " GiB"
      : Number((v / 2 ** 20).toPrecision(4)) + " MiB"
    : number(v);
const titleOf = (run) => run.name || "run";
const seriesOf = (run, group) => run.metrics.series.filter((s) => s.group === group);
const nice = (name) => name.replace(/_per_s$/, "/s").replaceAll("_", " ");
const kindOf = (state) => (state === "done" ? "good" : ["failed", "no record"].includes(state) ? "bad" : "wait");
const stateText = {"no record": "no record: it runs, or its head was killed"};

const badge = (run) => el("span", {class: "state " + kindOf(run.state), text: run.state});

const throughputOf = (run) => seriesOf(run, "throughput")[0];
const lossOf = (run) => seriesOf(run, "loss")[0];
const lastStep = (run) =>
  Math.max(...run.metrics.series.map((s) => s.last.step), (run.last_progress && run.last_progress.step) || -1);
const began = (run) => (run.links[0] || {}).began;
const ended = (run) => (run.links[run.links.length - 1] || {}).ended;
