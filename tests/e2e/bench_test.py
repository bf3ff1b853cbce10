#!/usr/bin/env python3
"""dlrun bench: points as runs of their own, cells that fail, what the program tells, resuming after a kill, Ctrl-C."""
import json
import os
import pathlib
import signal
import sys

import support
from support import wait_until

MNIST = """framework: builtin
train:
  model: mnist-cnn
  data: {format: synthetic, samples: 256}
  batch: 8
bench: {warmup: 1, steps: 3, axes: {tasks-per-node: [1, 2], batch: [4, 8]}}
"""
# Says a rate, fails, hangs or takes all memory, as its variable tells.
PROGRAM = """
import os, sys, time
what = os.environ["WHAT"]
open(os.environ["DLRUN_RUN_DIR"] + "/began", "w").close()
if what == "fails":
    sys.exit("ValueError: no such thing")
if what == "hangs":
    time.sleep(600)
if what == "endless":
    while True:
        print("rate: 7", flush=True)
        time.sleep(0.1)
if what == "memory":
    raise MemoryError("cannot allocate memory")
for rate in (1, 100, 300):
    print(f"rate: {rate} img/s", flush=True)
"""


class Bench(support.Case):
    def bench(self, *words, code=0):
        """What it said."""
        got, out, err = self.dlrun("bench", *words)
        self.assertEqual(got, code, out + err)
        return err

    def results(self, folder="b"):
        return json.loads((pathlib.Path(self.folder) / folder / "bench.json").read_text())

    def program(self):
        self.write("p.py", PROGRAM)
        return ["--", sys.executable, "p.py"]

    def test_real_data_against_synthetic_ones(self):
        self.write("mnist.yaml", MNIST.replace("{format: synthetic, samples: 256}", "{format: idx, dir: /usr/share/datasets/fashion-mnist}")
                   .replace("{warmup", "{synthetic: {shape: [1, 28, 28], classes: 10, samples: 256}, warmup"))
        self.bench("--run-dir", "b", "--axis", "tasks-per-node=1", "--axis", "batch=8", "--axis", "data=synthetic,real", "mnist.yaml")
        points = self.results()["points"]
        self.assertEqual([point["status"] for point in points], ["done"] * 2, points)
        self.assertEqual([json.loads(self.read(f"b/{point['run']}/spec.json"))["train"]["data"]["format"] for point in points], ["synthetic", "idx"])
        code, out, err = self.dlrun("bench-report", "b", "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual([cell["io_overhead"] is None for cell in json.loads(out)["cells"]], [True, False])

    def test_each_point_of_a_grid_is_a_run_with_its_values(self):
        self.write("mnist.yaml", MNIST)
        self.bench("--run-dir", "b", "mnist.yaml")
        bench = self.results()
        self.assertEqual([point["values"] for point in bench["points"]],
                         [{"tasks-per-node": t, "batch": b} for t in (1, 2) for b in (4, 8)])
        for point in bench["points"]:
            self.assertEqual(point["status"], "done", point)
            self.assertGreater(point["rate"], 0)
            self.assertEqual(point["step_seconds"]["n"], 3)
            self.assertGreater(point["bytes_per_step"], 1e5)
            run = pathlib.Path(self.folder, "b", point["run"])
            plan = json.loads((run / "plan.json").read_text())
            self.assertEqual(len(plan["ranks"]), point["values"]["tasks-per-node"])
            self.assertEqual(point["ranks"], len(plan["ranks"]))
            spec = json.loads((run / "spec.json").read_text())
            self.assertEqual(spec["train"]["batch"], point["values"]["batch"])
        self.assertEqual(bench["unit"], "images/s")
        code, out, err = self.dlrun("bench", "--resume", "b", "--columns", "batch", "-o", "table.md")
        self.assertEqual((code, out), (0, "table.md\n"), err)
        table = pathlib.Path(self.folder, "table.md").read_text()
        self.assertRegex(table, r"\| tasks-per-node \| batch=4 \| batch=8 \|")
        code, out, err = self.dlrun("bench", "--resume", "b")
        self.assertRegex(out, r"tasks-per-node +batch +images/s +speed-up +efficiency")
        self.assertEqual(len(out.splitlines()), 2 + 4 + 1, out)  # and the best batch
        self.assertEqual(bench["machine"]["host_count"], 1)
        self.assertTrue(bench["machine"]["cpu"])

    def test_points_that_fail_hang_or_lack_memory_are_cells(self):
        said = self.bench("--run-dir", "b", "--axis", "environment.set.WHAT=fails,hangs,memory,fine", "--limit", "30s",
                          "--set", "launch.grace=1s", "--rate", "rate: ([0-9.]+)", "--warmup", "1", "--unit", "img/s",
                          *self.program())
        points = {point["values"]["environment.set.WHAT"]: point for point in self.results()["points"]}
        self.assertEqual({what: point["status"] for what, point in points.items()},
                         {"fails": "failed", "hangs": "timeout", "memory": "out-of-memory", "fine": "done"})
        self.assertEqual(points["fine"]["rate"], 200)
        self.assertIn("ValueError: no such thing", points["fails"]["why"])
        self.assertIn("0004 environment.set.WHAT=fine: 200 img/s", said)
        self.assertIn("1 of 4 points measured, 1 failed, 1 out-of-memory, 1 timeout", said)

    def test_a_benchmark_that_is_killed_goes_on_without_repeating_what_is_done(self):
        head = self.start("bench", "--run-dir", "b", "--axis", "environment.set.WHAT=fine,hangs", "--rate",
                          "rate: ([0-9.]+)", *self.program())
        began = pathlib.Path(self.folder, "b/points/0002/run/began")
        wait_until(began.exists, "the second point runs")
        head.kill()
        head.wait()
        wait_until(lambda: not self.marked(), "no process is left")
        self.assertEqual([point["status"] for point in self.results()["points"]], ["done", "running"])
        first = os.stat(os.path.join(self.folder, "b/points/0001/run/record.json")).st_mtime_ns
        self.write("p.py", PROGRAM.replace('"hangs"', '"no more"'))
        self.bench("--resume", "b")
        self.assertEqual([point["status"] for point in self.results()["points"]], ["done", "done"])
        self.assertEqual(self.results()["points"][1]["run"], "points/0002/run-2")
        self.assertEqual(first, os.stat(os.path.join(self.folder, "b/points/0001/run/record.json")).st_mtime_ns)

    def test_two_commands_do_not_measure_one_benchmark(self):
        counted = f"echo x >>{self.folder}/count; sleep 1; echo rate: 7"
        words = ("bench", "--run-dir", "b", "--axis", "environment.set.N=1,2", "--rate", "rate: ([0-9]+)", "--", "bash", "-c", counted)
        both = [self.start(*words) for _ in range(2)]
        ends = [(*one.communicate(), one.returncode) for one in both]
        self.assertEqual(sorted(code for _, _, code in ends), [0, 64], ends)
        self.assertEqual([point["status"] for point in self.results()["points"]], ["done"] * 2)
        self.assertEqual(self.read("count"), "x\n" * 2, "each point was measured once")

    def test_ctrl_c_ends_the_runs_and_keeps_the_results(self):
        head = self.start("bench", "--run-dir", "b", "--axis", "environment.set.WHAT=fine,hangs,more", "--rate",
                          "rate: ([0-9.]+)", *self.program())
        wait_until(pathlib.Path(self.folder, "b/points/0002/run/began").exists, "the second point runs")
        head.send_signal(signal.SIGINT)
        _, said = head.communicate()
        self.assertEqual(head.returncode, 130, said)
        self.assertIn("to continue: dlrun bench --resume", said)
        self.assertEqual([point["status"] for point in self.results()["points"]], ["done", "pending", "pending"])
        self.assertEqual(self.marked(), {})

    def test_a_program_without_an_end_is_stopped_and_was_measured(self):
        self.bench("--run-dir", "b", "--axis", "environment.set.WHAT=endless", "--time", "10s", "--rate", "rate: ([0-9.]+)",
                   *self.program())
        point = self.results()["points"][0]
        self.assertEqual((point["status"], point["rate"]), ("done", 7))

    def test_trainings_give_their_final_metrics(self):
        self.write("mnist.yaml", MNIST.replace("bench: {warmup: 1, steps: 3, axes: {tasks-per-node: [1, 2], batch: [4, 8]}}",
                                               "checkpoint: {dir: ckpt}"))
        self.bench("--run-dir", "b", "--epochs", "1", "--axis", "train.optimizer.lr=0.1,0.01", "mnist.yaml")
        for point in self.results()["points"]:
            self.assertEqual(point["status"], "done", point)
            self.assertTrue(any("accuracy" in name for name in point["metrics"]), point)
            self.assertTrue(os.path.isdir(os.path.join(self.folder, "b/points", point["id"], "checkpoints")))
        self.assertEqual(self.results()["mode"], "metrics")

    def test_a_training_that_falls_behind_is_stopped_early(self):
        # As the builtin trainer tells its epochs.
        self.write("p.py", "import json, os, sys, time\nsys.path.insert(0, sys.argv[1])\nimport dlrun_client\nrate = float(os.environ['LR'])\n"
                   "with open(os.environ['DLRUN_RUN_DIR'] + '/metrics.jsonl', 'w', buffering=1) as metrics, dlrun_client.connect() as dlrun:\n"
                   "    for epoch in range(1, 9):\n"
                   "        print(json.dumps({'step': epoch, 'epoch': epoch, 'test_loss': 1 / rate / epoch}), file=metrics)\n"
                   "        while epoch == 4 and rate < 0.1 and not dlrun.checkpoint_requested():\n            time.sleep(0.1)\n"
                   "        dlrun.checkpoint_requested() and dlrun.stop_if_requested()\n"
                   "    dlrun.result(test_loss=1 / rate / epoch)\n")
        err = self.bench("--run-dir", "b", "--epochs", "8", "--stop-early", "test_loss", "--concurrent", "1", "--axis", "environment.set.LR=0.1,0.01",
                         "--", sys.executable, "p.py", support.CLIENT)
        good, bad = self.results()["points"]
        self.assertEqual((good["status"], bad["status"]), ("done", "stopped-early"), err)
        self.assertRegex(bad["why"], r"^test_loss \S+ after [124] of 8 epochs is not in the better half of 2$")
        self.assertLess(bad["metrics"]["epoch"], 8)
        self.assertIn("stopped-early", err)
        self.assertRegex(self.dlrun("bench-report", "b")[1], r"stopped early")

    def test_a_tuning_finds_the_best_threads_and_later_ranks_have_them(self):
        self.environment["XDG_STATE_HOME"] = os.path.join(self.folder, "state")
        self.environment.pop("OMP_NUM_THREADS", None)
        # The rate that a rank tells is as if one thread were best.
        self.write("p.py", "import os\nprint('rate:', 100 - int(os.environ['OMP_NUM_THREADS']))\n")
        program = ["--rate", "rate: ([0-9.]+)", "--", sys.executable, "p.py"]
        code, out, err = self.dlrun("bench", "--tune", "threads", "--axis", "threads=1,2,3", "--run-dir", "b", *program)
        self.assertEqual(code, 0, err)
        self.assertEqual(out, 'environment:\n  set:\n    OMP_NUM_THREADS: "1"\n')
        self.assertRegex(err, r"threads=1 .*: 99 1/s .*<- best")
        self.assertEqual([point["repeat"] for point in self.results()["points"]], [0, 0, 0, 1, 1])
        self.assertIn("remembered: 1 threads for a rank with", err)
        told = self.plain('echo "threads $OMP_NUM_THREADS"')
        self.assertIn("threads 1", told[1])
        cores = len(os.sched_getaffinity(0))
        shown = f"threads    1 of {cores} cores, as dlrun bench --tune threads measured" in self.dlrun(
            "plan", "--framework", "plain", "--", "true")[1]
        self.assertEqual(shown, cores > 1)
        self.assertIn("is a tuning", self.bench("--resume", "b", code=64))

    def test_any_key_is_tuned_where_its_candidates_are_given(self):
        self.write("p.py", "import os\nprint('rate:', os.environ['DLRUN_SIZE'])\n")
        program = ["--rate", "rate: ([0-9.]+)", "--", sys.executable, "p.py"]
        code, out, err = self.dlrun("bench", "--tune", "tasks-per-node", "--axis", "tasks-per-node=1,2", *program)
        self.assertEqual((code, out), (0, "resources:\n  tasks-per-node: 2\n"), err)
        for what, said in (("tasks-per-node", "needs candidates"), ("tasks-per-nod", "did you mean 'tasks-per-node'?"), ("data", "--axis data=real,synthetic")):
            code, out, err = self.dlrun("bench", "--tune", what, *program)
            self.assertEqual((code, out), (64, ""), err)
            self.assertIn(said, err)

    def test_a_folder_that_has_no_benchmark_is_said_to_have_none(self):
        for flag in ("--resume", "--collect"):
            self.assertIn("nowhere is not the folder of a benchmark: it has no bench.json", self.bench(flag, "nowhere", code=64))

    def test_threads_of_a_short_program_are_an_answer_even_if_its_processors_were_not_told(self):
        self.environment["XDG_STATE_HOME"] = os.path.join(self.folder, "state")
        code, out, err = self.dlrun("bench", "--tune", "threads", "--axis", "threads=1,2", "--run-dir", "b", "--rate", "rate (.*)", "--",
                                    "sh", "-c", "echo rate $OMP_NUM_THREADS")
        self.assertEqual((code, out), (0, 'environment:\n  set:\n    OMP_NUM_THREADS: "2"\n'), err)
        self.assertRegex(err, "warning: not remembered, since no run lasted long enough|remembered: 2 threads")

    def test_the_tables_of_several_job_files_come_by_one_command_also_where_one_cannot_be_measured(self):
        tables = pathlib.Path(__file__).parents[2] / "share/examples/bench/tables.sh"
        for path, rate in (("bad.yaml", "none"), ("good.yaml", "rate 5"), ("other-good.yaml", "rate 6")):
            self.write(path, f"command: [sh, -c, 'echo {rate}; test {rate[-1]} != e']\nbench: {{axes: {{tasks-per-node: [1]}}, rate: 'rate (.*)'}}\n")
        os.makedirs(os.path.join(self.folder, "other"))
        os.rename(f"{self.folder}/other-good.yaml", f"{self.folder}/other/good.yaml")
        self.environment["DLRUN"] = support.DLRUN

        def make(*jobs):
            done = self.start("results", *jobs, program=str(tables))
            return done.communicate()[1], done.returncode
        err, code = make("bad.yaml", "good.yaml")
        self.assertEqual(code, 1, err)
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "results"))), [f"good.{end}" for end in ("html", "json", "md", "tex")] + ["runs"])
        err, code = make("good.yaml")
        self.assertEqual((code, err), (0, ""))
        err, code = make("good.yaml", "other/good.yaml")
        self.assertEqual((code, err), (64, "tables.sh: several job files would be one table: good\n"))

    def test_what_can_never_run_is_refused_before_anything_runs(self):
        self.write("mnist.yaml", MNIST)
        for words, expected, code in (
                (["--axis", "batsh=1"], "--axis batsh: unknown axis 'batsh'\n  hint: did you mean 'batch'?", 64),
                (["--axis", "resources.nodez=1"], "unknown key 'nodez' in 'resources'", 64),
                (["--axis", "train.optimizer.lrr=1"], "unknown key 'lrr' in 'train.optimizer'", 65),
                (["--axis", "nodes=1,2"], "4 of 8 points do not fit into the allocation", 66),
                (["--axis", "batch=4", "--compare", "nowhere"], "nowhere", 65),
                (["--tune", "batch", "--axis", "batch=4,8", "--axis", "threads=1,2"],
                 "--tune batch tries the values of one axis, and --axis threads is another", 64),
                (["--tune", "batch", "-o", "x.html"], "--tune prints the lines that set the best value", 64),
                (["--axis", "batch=4", "--axis", "train.batch=8"], "'batch' and 'train.batch' both set train.batch", 64),
                (["--axis", "batch=4,4"], "the axis 'batch' has the value 4 twice", 64),
                (["--axis", "threads=2,0"], "the axis 'threads': 0 is out of range", 64),
                (["--axis", "nodes="], "the axis 'nodes' has no values", 64),
                (["--axis", "a.b=" + ",".join("0" * 1000), "--axis", "c.d=" + ",".join("0" * 1000),
                  "--repeats", "250"], "bench has 1000000000 points", 64)):
            with self.subTest(words[1][:20]):
                self.assertIn(expected, self.bench("--run-dir", "b", *words, "mnist.yaml", code=code))
                self.assertFalse(os.path.exists(os.path.join(self.folder, "b")))


if __name__ == "__main__":
    support.main()
