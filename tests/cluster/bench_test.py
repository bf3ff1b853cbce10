#!/usr/bin/env python3
"""dlrun bench on a real Slurm: inside one allocation points run on parts of the nodes, side by side and apart from each other."""
import json
import pathlib

import support
from cluster import wait_until
from support import DLRUN

# Each rank says where it is and when, and the first one tells a rate.
JOB = """name: rates
framework: plain
command:
- sh
- -c
- 'echo "$(hostname) $(date +%s.%N)" > "$DLRUN_RUN_DIR/began.$DLRUN_RANK"; sleep 5;
  date +%s.%N > "$DLRUN_RUN_DIR/ended.$DLRUN_RANK"; echo "rate: $DLRUN_SIZE"'
bench:
  axes: {nodes: [1, 2, 4], tasks-per-node: [1, 2]}
  rate: 'rate: (.*)'
"""


class Bench(support.Case):
    slurm = True

    def results(self, folder):
        return json.loads(self.read(f"{folder}/bench.json"))

    def run_of(self, folder, point):
        """(hosts, when the first rank began, when the last one ended)"""
        run = pathlib.Path(self.folder, folder, point["run"])
        began = [file.read_text().split() for file in run.glob("began.*")]
        ended = [float(file.read_text()) for file in run.glob("ended.*")]
        self.assertEqual(len(began), point["ranks"])
        return {host for host, _ in began}, min(float(when) for _, when in began), max(ended)

    def test_points_share_the_nodes_of_one_allocation(self):
        self.write("job.yaml", JOB)
        code, out, err = self.run_on("salloc", "-N4", "--ntasks-per-node=2", DLRUN, "bench", "--run-dir", "b", "job.yaml")
        self.assertEqual(code, 0, out + err)
        points = self.results("b")["points"]
        self.assertEqual([point["status"] for point in points], ["done"] * 6, points)
        for point in points:
            self.assertEqual(point["ranks"], point["values"]["nodes"] * point["values"]["tasks-per-node"])
            self.assertEqual(point["rate"], point["ranks"])
        runs = [self.run_of("b", point) for point in points]
        for point, (hosts, _, _) in zip(points, runs):
            self.assertEqual(len(hosts), point["values"]["nodes"])
        at_once = [(one, other) for one in runs for other in runs if one is not other and one[1] < other[1] < one[2]]
        self.assertTrue(at_once, "points that fit run at the same time")
        for one, other in at_once:
            self.assertFalse(one[0] & other[0], "points at the same time have different nodes")

    def test_a_sweep_is_a_job_per_point_and_is_collected(self):
        self.write("job.yaml", JOB.replace("nodes: [1, 2, 4]", "nodes: [1, 2, 3, 9]").replace("tasks-per-node: [1, 2]", "tasks-per-node: [2]")
                   .replace("rate: 'rate", "concurrent: 1\n  rate: 'rate"))
        words = ["submit", "--sweep", "--run-dir", "s", "--axis", "nodes=1,2,3"]
        code, out, err = self.run_on(DLRUN, *words, "--dry-run", "job.yaml")
        self.assertEqual((code, out.count("#SBATCH --nodes=")), (0, 3), err)
        self.assertFalse(pathlib.Path(self.folder, "s").exists())
        code, out, err = self.run_on(DLRUN, *words, "job.yaml")
        self.assertEqual(code, 0, err)
        jobs = out.split()
        self.assertEqual(len(jobs), 3)
        # Throttled: each waits for the one before.
        self.assertRegex(self.run_on("scontrol", "show", "job", jobs[2])[1], rf"Dependency=afterany:{jobs[1]}|JobState=(RUNNING|COMPLETED)")
        code, _, err = self.run_on(DLRUN, "bench", "--resume", "s")
        self.assertEqual(code, 64, err)
        self.assertIn("dlrun bench --collect", err)

        def collected():
            code, _, err = self.run_on(DLRUN, "bench", "--collect", "s")
            self.assertEqual(code, 0, err)
            points = self.results("s")["points"]
            return points if all(point["status"] == "done" for point in points) else None

        points = wait_until(collected, 0.5)
        self.assertEqual([point["rate"] for point in points], [2, 4, 6])
        runs = [self.run_of("s", point) for point in points]
        self.assertEqual([len(hosts) for hosts, _, _ in runs], [1, 2, 3])
        for before, after in zip(runs, runs[1:]):
            self.assertLess(before[2], after[1], "one at a time")

    def test_a_watched_sweep_stops_the_job_that_falls_behind(self):
        client = pathlib.Path(support.__file__).parents[2] / "share/python"
        self.write("p.py", f"""
import json, os, sys, time
sys.path.insert(0, {str(client)!r})
import dlrun_client
rate = float(os.environ["LR"])
with open(os.environ["DLRUN_RUN_DIR"] + "/metrics.jsonl", "w", buffering=1) as metrics, dlrun_client.connect() as dlrun:
    for epoch in range(1, 9):
        print(json.dumps({{"step": epoch, "epoch": epoch, "test_loss": 1 / rate / epoch}}), file=metrics)
        while epoch == 4 and rate < 0.1 and not dlrun.checkpoint_requested():
            time.sleep(0.1)
        if dlrun.checkpoint_requested():
            dlrun.stop_if_requested()
    dlrun.result(test_loss=1 / rate / epoch)
""")
        self.write("job.yaml", f"""
framework: plain
command: [/usr/bin/python3, {self.folder}/p.py]
bench: {{epochs: 8, stop-early: test_loss, concurrent: 1, axes: {{environment.set.LR: [0.1, 0.01]}}}}
""")
        code, out, err = self.run_on(DLRUN, "submit", "--sweep", "--run-dir", "s", "job.yaml")
        self.assertEqual((code, len(out.split())), (0, 2), err)
        self.assertIn("--watch stops trainings that fall behind", err)
        code, out, err = self.run_on(DLRUN, "bench", "--collect", "s", "--watch")
        self.assertEqual(code, 0, err)
        good, bad = self.results("s")["points"]
        self.assertEqual((good["status"], bad["status"]), ("done", "stopped-early"), err)
        self.assertRegex(bad["why"], r"^test_loss \S+ after [124] of 8 epochs is not in the better half of 2$")
        self.assertIn("stopped early", out)


if __name__ == "__main__":
    support.main()
