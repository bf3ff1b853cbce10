#!/usr/bin/python3
"""gpu_scaling as a whole, with programs that print at once what the real ones print; and that nothing that was started outlives a
run that hangs or fails."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import scaling_processes  # noqa: E402 pylint: disable=wrong-import-position
import scaling_runs  # noqa: E402 pylint: disable=wrong-import-position
from scaling_plan import PARTS, Point, plan  # noqa: E402 pylint: disable=wrong-import-position

SUM = '{"bytes": 65536, "issued_gb_per_second": %s, "captured_gb_per_second": %s}'
LOSE_A_RANK = """  %s=$((n - 1)) sleep 1000 &
  until grep -qz "%s=$((n - 1))" "/proc/$!/environ"; do :; done
"""
FAKES = {  # programs that print what the real ones print, and at once
    "build/bin/dlrun": """#!/bin/bash
run=$3 n=$(sed -n 's/.*gpus-per-node: \\([0-9]*\\).*/\\1/p' "$4") batch=$(sed -n 's/^ *batch: //p' "$4")
mkdir -p "$run"
grep -q 'steps: 1000000' "$4" && {
""" + LOSE_A_RANK % ("DLRUN_RANK", "DLRUN_RANK") + """  victim=$!
}
printf '{"step": 1, "time": %s}\\n{"step": 50, "time": 0}\\n' "$(date +%s.%N)" > "$run/metrics.jsonl"
[ -z "$victim" ] || {
  wait "$victim"
  echo "dlrun: error: worker $((n - 1)) (rank $((n - 1))) on here: killed by SIGKILL (9)"
  exit 137
}
printf '{"result": {"images_per_s_median_step": %s, "input": {"images_per_s_repeated_batch": %s}}}' $((batch * n)) $((batch * n)) \\
  > "$run/record.json"
""",
    "build/bin/dlrun-gpu-bench": f"#!/bin/sh\n[ $PMI_RANK != 0 ] || echo '{SUM % (3, 9)}'\n",
    "bin/nvidia-smi": "#!/bin/sh\ncase $* in *name*) echo 'Fake, 1.0'; echo 'Fake, 1.0' ;; *) echo 100; echo 100 ;; esac\n",
    "bin/nvcc": f"""#!/bin/sh
while [ "$1" != -o ]; do shift; done
cat > "$2" <<'END'
#!/bin/sh
echo '{SUM % (4, 1)}'
END
chmod +x "$2"
""",
    "bin/python": f"""#!/bin/bash
case $* in
  *torch.distributed.run*)
    n=2
    {LOSE_A_RANK % ("RANK", "RANK")}
    echo '{{"first_step_at": 1}}'; wait; exit 1 ;;
  *sum*) [ "$RANK" != 0 ] || echo '{SUM % (2, 10)}' ;;
  *compile*) exit 1 ;;
  *) [ "${{RANK:-0}}" != 0 ] || {{
    echo "{{a warning}}"; echo "{{\\"first_step_at\\": $(date +%s.%N)}}"
    echo '{{"images_per_second": 50, "torch": "2", "device": "Fake", "memory_bytes": 1}}'; }} ;;
esac
""",
}


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-scaling-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def group(self, *scripts, limit=60.0):
        return scaling_processes.Group([(["sh", "-c", script], {}) for script in scripts], self.folder / "run", limit)

    def assert_failed(self, group, pattern):
        with self.assertRaisesRegex(scaling_processes.Failed, pattern):
            with group:
                group.wait()
        self.assertEqual(group.alive(), {})

    def test_what_hangs_is_ended_with_all_that_it_started(self):
        self.assert_failed(self.group("setsid sleep 1000 & echo begun; sleep 1000", limit=5.0), "did not end within.*\n.*begun")

    def test_a_rank_that_fails_ends_the_others_and_is_heard(self):
        self.assert_failed(self.group("sleep 1000", "echo no memory; exit 3"), "(?s)exit codes .*3.*no memory")

    def test_a_program_that_is_not_there_is_named(self):
        group = scaling_processes.Group([(["/nowhere/dlrun"], {})], self.folder / "run", 60)
        with self.assertRaisesRegex(scaling_processes.Failed, "/nowhere/dlrun"):
            with group:
                pass

    def test_multicast_is_off_in_every_process(self):
        with self.group("echo $NCCL_NVLS_ENABLE $EXTRA") as group:
            group.wait()
        self.assertEqual(group.output(), "0\n")

    def test_a_killed_rank_is_timed_named_and_nothing_is_left(self):
        (self.folder / "job.yaml").write_text("resources: {gpus-per-node: 2}\nbatch: 64\nsteps: 1000000\n")
        script = self.folder / "dlrun"
        script.write_text(FAKES["build/bin/dlrun"])
        group = scaling_processes.Group([(["bash", script, "--quiet", "--run-dir", "run", self.folder / "job.yaml"], {})],
                                        self.folder / "run", 60)
        seen = scaling_runs.Runs("/build/bin", "python3", "cpu", self.folder).kill(Point("kill", "dlrun", 2, batch=64), group)
        self.assertEqual((seen["code"], seen["left"], seen["named"]), (137, 0, True))
        self.assertLessEqual(seen["returned_s"], seen["gone_s"])


class WholeCall(unittest.TestCase):
    def test_every_point_becomes_figures_and_a_failing_peer_is_reported(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-scaling-test-"))
        self.addCleanup(shutil.rmtree, folder)
        for name, text in FAKES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        done = subprocess.run([sys.executable, HERE / "gpu_scaling", "--build", folder / "build", "--python", folder / "bin/python",
                               "--json", folder / "figures.json"], text=True, capture_output=True, check=False,
                              env={**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"})
        content = json.loads((folder / "figures.json").read_text())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual({entry["point"].split(",")[0] for entry in content["failed"]},
                         {"train resnet50 256 compile", "train resnet50 64 compile", "train inception-v3 64 compile"}, done.stderr)
        self.assertEqual(len(content["measured"]) + len(content["failed"]) + len(content["dropped"]), len(plan(PARTS, [1, 2])))
        rows = {figure["name"]: figure for figure in content["figures"]}
        self.assertEqual(rows["ResNet-50, 256 per GPU, 2 GPUs of 2 x 1, eager"]["ours"], 100)
        self.assertEqual(rows["Inception v3, 64 per GPU, 2 GPUs, eager"]["ratio"], 128 / 50)
        self.assertEqual(rows["sum of 64 KiB, 2 GPUs, NCCL's best"]["peer"], 10)
        self.assertEqual(rows["kill -9 of 1 of 2 ranks: it is named"]["ours"], 1)
        self.assertIsNotNone(rows["kill -9 of 1 of 2 ranks to the launcher's return, torchrun"]["peer"])
        self.assertIsNotNone(rows["command to first step, 2 GPUs"]["peer"])
        self.assertIn("FAILED train resnet50 256 compile", done.stdout)


if __name__ == "__main__":
    unittest.main()
