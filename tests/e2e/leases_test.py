#!/usr/bin/env python3
"""One run at a time uses a checkpoint folder, one link a chain: also where the file system has no locks."""
import glob
import json
import os
import signal

import support
from support import wait_until
from training_test import JOB, make_data

FAKE_SLURM = """\
#!/bin/bash
echo "$(basename "$0") $*" >> "{folder}/asked"
case "$(basename "$0")" in
  sbatch) cat > /dev/null; echo $((100 + $(grep -c ^sbatch "{folder}/asked"))) ;;
  squeue) echo RUNNING ;;
esac
"""


class Leases(support.Case):
    @classmethod
    def setUpClass(cls):
        cls.data = os.path.join(os.environ["E2E_SCRATCH"], f"lease-bars-{os.getpid()}")
        make_data(cls.data)

    def setUp(self):
        super().setUp()
        os.symlink(self.data, os.path.join(self.folder, "data"))
        self.job = self.write("job.yaml", JOB.format(ranks=1, epochs=100000))

    def without_locks(self):
        self.environment.update({"LD_PRELOAD": os.environ["E2E_SHIMS"], "DLRUN_TEST_SHIM": "no-flock"})

    def saved(self, run, times=1):
        name = f"{run}/events.jsonl"
        return self.exists(name) and self.read(name).count('"saved"') >= times

    def start_training(self, run):
        head = self.start("--run-dir", run, self.job)
        wait_until(lambda: self.saved(run) or head.poll() is not None, "it saves")
        self.assertIsNone(head.poll())
        return head

    def test_the_second_run_of_a_checkpoint_folder_is_refused_by_name_and_touches_nothing(self):
        self.without_locks()
        first = self.start_training("first")
        code, out, err = self.dlrun("--run-dir", "second", self.job)
        self.assertEqual(code, 74, err)
        self.assertRegex(out, r"checkpoint folder \S+/ckpt is in use by run first on \S+, process \d+: waiting 20\.0s for it to end")
        self.assertRegex(err, r"checkpoint folder \S+/ckpt is in use by run first on \S+, process \d+")
        self.assertIn("hint: wait for that run to end, or set another checkpoint.dir", err)
        self.assertIsNone(first.poll())
        before = self.read("first/events.jsonl").count('"saved"')
        wait_until(lambda: self.saved("first", before + 2) or first.poll() is not None, "the first goes on")
        first.send_signal(signal.SIGINT)
        _, err = first.communicate()
        self.assertEqual(first.returncode, 75, err)

    def test_a_run_that_was_killed_by_force_is_followed_without_a_wait(self):
        self.without_locks()
        first = self.start_training("first")
        first.kill()
        first.communicate()
        self.none_left()
        second = self.start_training("second")
        second.send_signal(signal.SIGINT)
        out, err = second.communicate()
        self.assertEqual(second.returncode, 75, err)
        self.assertIn("resuming from", out)
        self.assertNotIn("in use by", out)

    def test_an_agent_works_and_cleans_up_where_its_folder_has_no_locks(self):
        self.without_locks()
        temporary = os.path.join(self.folder, "tmp")
        os.mkdir(temporary)
        self.environment["TMPDIR"] = temporary
        code, out, err = self.plain("ls $TMPDIR; echo hi")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, "dlrun-.*\n.*hi")
        self.assertEqual(os.listdir(temporary), [])

    def test_a_job_that_the_scheduler_starts_twice_does_not_break_its_chain(self):
        tools = os.path.join(self.folder, "slurm")
        os.mkdir(tools)
        for name in ("sbatch", "squeue", "scancel", "scontrol"):
            with open(os.path.join(tools, name), "w") as file:
                file.write(FAKE_SLURM.format(folder=self.folder))
            os.chmod(file.name, 0o755)
        self.environment["PATH"] = tools + ":" + self.environment["PATH"]
        job = self.write("chain.yaml", "framework: plain\nresources: {walltime: 1h}\ncheckpoint: {dir: ckpt}\n"
                         "command: [bash, -c, 'touch started; while [ ! -e go ]; do sleep 0.02; done']\n")
        code, out, err = self.dlrun("submit", "--scheduler", "slurm", "--chain", "3", job)
        self.assertEqual(code, 0, err)
        [chain] = [os.path.dirname(path) for path in glob.glob(self.folder + "/runs/*/chain.json")]
        self.environment["SLURM_JOB_ID"] = out.strip()
        link = ["run", "--via", "local", "--scheduler", "local", "--link-of", chain, job]
        first = self.start(*link)
        wait_until(lambda: self.exists("started") or first.poll() is not None, "the first runs")
        code, _, err = self.dlrun(*link)
        self.assertEqual(code, 69, err)
        self.assertRegex(err, rf"the chain in \S+ is in use by job {out.strip()} on \S+, process {first.pid}")
        self.write("go", "")
        _, err = first.communicate()
        self.assertEqual(first.returncode, 0, err)
        ledger = json.loads(self.read(os.path.join(chain, "chain.json")))
        self.assertEqual((ledger["state"], [one["end"] for one in ledger["links"]]), ("done", ["done"]))


if __name__ == "__main__":
    support.main()
