#!/usr/bin/env python3
"""`dlrun submit` to PBS, by programs on PATH that answer as a real OpenPBS does: it takes jobs that it will never run, and says so
only later."""
import os

import support

ANSWERS = {
    "qsub": 'if [ "$1" = --version ]; then echo "pbs_version = 23.06.06"; else echo 7.srv; fi',
    "qstat": r"""printf 'Job Id: 7.srv\n    job_state = Q\n    comment = %s\n    etime = now\n' "$COMMENT" """,
    "qdel": 'echo "$*" >>"$DELETED"',
}


class SubmitToPbs(support.Case):
    def setUp(self):
        super().setUp()
        os.makedirs(os.path.join(self.folder, "bin"))
        for name, script in ANSWERS.items():
            os.chmod(self.write(f"bin/{name}", f"#!/bin/sh\n{script}\n"), 0o755)
        self.environment["PATH"] = os.path.join(self.folder, "bin") + ":/usr/bin:/bin"
        self.environment["DELETED"] = os.path.join(self.folder, "deleted")

    def submit(self, comment, *flags):
        self.environment["COMMENT"] = comment
        return self.dlrun("submit", "--scheduler", "pbs", "--nodes", "6", *flags, "--framework", "plain", "--name", "big", "--", "true")

    def test_a_job_that_can_never_run_is_withdrawn_and_leaves_nothing_behind(self):
        for flags in ([], ["--chain", "3"]):
            code, out, err = self.submit("Can Never Run: Not enough total nodes av\n\tailable", *flags)
            self.assertEqual((code, out), (66, ""), err)
            self.assertIn("pbs took job 7.srv and would never run it: Can Never Run: Not enough total nodes available", err)
            self.assertIn("hint: the job is withdrawn; ask for what the cluster has", err)
            self.assertEqual(self.read("deleted"), "7.srv\n")
            self.assertEqual(os.listdir(os.path.join(self.folder, "runs")), [])
            os.unlink(os.path.join(self.folder, "deleted"))

    def test_one_that_has_to_wait_stays(self):
        code, out, err = self.submit("Not Running: Insufficient amount of resource: ncpus")
        self.assertEqual((code, out), (0, "7.srv\n"), err)
        self.assertFalse(self.exists("deleted"))


if __name__ == "__main__":
    support.main()
