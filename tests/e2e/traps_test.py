#!/usr/bin/env python3
"""What people type by habit or by mistake: each is answered with what is wrong and what to write."""
import os
import pathlib
import subprocess

import support

DEEP = "[" * 100000 + "]" * 100000


class DeepInput(support.Case):
    """Nothing that is read recurses as deep as its input is."""

    def refused(self, *words, code=65):
        ended, out, err = self.dlrun(*words)
        self.assertEqual((ended, out), (code, ""), err[:500])
        self.assertIn("nested deeper than 64 levels", err)
        self.assertLess(len(err), 500)

    def test_an_allocation(self):
        self.write("deep.json", DEEP)
        self.refused("plan", "--allocation", "deep.json", "--framework", "plain", "--", "true", code=66)
        self.refused("allocation", "--allocation", "deep.json", code=66)
        self.write("deep.json", '{"schema": "dlrun.allocation/1", "scheduler": ' + DEEP + "}")
        self.refused("plan", "--allocation", "deep.json", "--framework", "plain", "--", "true", code=66)

    def test_a_chain(self):
        self.write("chain.json", '{"schema": "dlrun.chain/1", "name": ' + DEEP + "}")
        self.refused("chain", "status", ".")

    def test_a_training(self):
        train = os.path.join(os.path.dirname(support.DLRUN), "dlrun-train")
        for text in (DEEP, '{"train": ' + DEEP + "}", '{"value": ' + DEEP + ', "sources": {}}'):
            config = self.write("deep.json", text)
            done = subprocess.run([train, "--check", "--config", config], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 65, done.stderr[:500])
            self.assertIn("nested deeper than 64 levels", done.stderr)


class Files(support.Case):
    def error_of(self, *words, code=65):
        ended, _, err = self.dlrun(*words)
        self.assertEqual(ended, code, err)
        return err

    def test_the_nearest_file_is_named(self):
        self.write("fashion-mnist.yaml", "command: [true]\n")
        self.assertEqual(self.error_of("fashion-mnst.yaml"),
                         "dlrun: error: cannot read fashion-mnst.yaml: No such file or directory\n  hint: did you mean 'fashion-mnist.yaml'?\n")
        self.write("hosts.txt", "localhost\n")
        self.assertIn("hint: did you mean 'hosts.txt'?", self.error_of("--hostfile", "host.txt", "--", "true", code=66))

    def test_a_device_is_not_read_until_the_memory_is_gone(self):
        self.assertIn("cannot read /dev/zero: is not a regular file", self.error_of("plan", "/dev/zero"))

    def test_what_editors_of_other_systems_write(self):
        for name, text, words in (("utf16.yaml", "command: [true]\n".encode("utf-16"), "the file is UTF-16, not UTF-8"),
                                  ("tab.yaml", b"resources:\n\tnodes: 1\ncommand: [true]\n", "tab.yaml:2:1: this line is indented with a tab")):
            pathlib.Path(self.folder, name).write_bytes(text)
            self.assertIn(words, self.error_of("plan", name))
        pathlib.Path(self.folder, "marked.yaml").write_bytes(b"\xef\xbb\xbfcommand: [true]\n")
        self.error_of("plan", "marked.yaml", code=0)
        pathlib.Path(self.folder, "hosts").write_bytes(b"\xef\xbb\xbfn1\r\nn2\r\n")
        code, out, err = self.dlrun("allocation", "--hostfile", "hosts")
        self.assertEqual(code, 0, err)
        self.assertIn("n[1-2]", out)
        pathlib.Path(self.folder, "hosts").write_bytes("n1\nn2\n".encode("utf-16"))
        self.assertIn("hosts: the file is UTF-16", self.error_of("allocation", "--hostfile", "hosts", code=66))


class RunDirectory(support.Case):
    """The reason is the system's own, and the hint is --run-dir."""

    def refused(self, *words, **options):
        code, _, err = self.dlrun(*words, "--framework", "plain", "--", "true", **options)
        self.assertEqual(code, 74, err)
        self.assertIn("--run-dir", err)
        self.assertEqual(err.count("error:"), 1, err)
        return err

    def test_on_a_read_only_file_system(self):
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", disk], check=True)
        try:
            self.assertIn(f"cannot create {disk}/run: Read-only file system", self.refused("--run-dir", "disk/run"))
            self.assertIn(f"cannot create {disk}/runs: Read-only file system", self.refused(cwd=disk))
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_on_a_disk_that_fills_up(self):
        """There is no room for a record: how the run ended is told all the same."""
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], check=True)
        try:
            code, _, err = self.dlrun("-q", "--framework", "plain", "--", "sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; sleep 1000", cwd=disk)
            self.assertEqual(code, 74, err)
            self.assertIn("No space left on device", err)
            code, out, err = self.dlrun("status", cwd=disk)
            self.assertEqual(code, 0, err)
            self.assertRegex(out, r"state +failed \(exit code 74\)\nreason .*No space left on device")
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_in_a_folder_of_somebody_else(self):
        os.chmod(self.folder, 0o755)
        self.write("file", "")
        # As root: nothing but the kernel itself refuses. Its own file systems do.
        self.assertRegex(self.refused("--run-dir", "/sys/run"), "cannot create /sys/run: (Operation not permitted|Permission denied|Read-only)")
        self.assertIn("cannot create " + self.folder + "/file: Not a directory", self.refused("--run-dir", "file/run"))

    def test_where_a_link_leads_nowhere(self):
        os.symlink("nowhere", os.path.join(self.folder, "run"))
        self.assertIn("/run is a link to nowhere, which does not exist", self.refused("--run-dir", "run"))


class Commands(support.Case):
    def test_a_command_that_is_one_text(self):
        self.write("job.yaml", "command: printf '%s,' one \"two three\"\n")
        code, out, err = self.dlrun("-q", "job.yaml", "--", "four")
        self.assertEqual((code, out), (0, "[worker 0] one,two three,four,\n"), err)

    def test_help_is_a_command(self):
        self.assertEqual(self.dlrun("help"), self.dlrun("--help"))
        self.assertEqual(self.dlrun("help", "chain"), self.dlrun("chain", "--help"))

    def test_flags_of_other_launchers(self):
        code, _, err = self.dlrun("-n", "4", "--", "hostname")
        self.assertEqual(code, 64)
        self.assertEqual(err, "dlrun: error: unknown flag '-n'\n  hint: dlrun counts ranks per node: --nodes N and --tasks-per-node N\n")


class LoginNode(support.Case):
    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.folder, "bin"))
        os.chmod(self.write("bin/sbatch", "#!/bin/sh\nexit 1\n"), 0o755)
        self.environment["PATH"] = os.path.join(self.folder, "bin") + ":" + self.environment["PATH"]

    def test_a_run_where_jobs_are_submitted_is_warned_about(self):
        self.environment["SLURM_CONF"] = os.path.join(self.folder, "slurm.conf")
        code, _, err = self.dlrun("--framework", "plain", "--", "true")
        self.assertEqual(code, 0, err)
        self.assertIn("warning: this looks like a login node (Slurm), and the job runs on it; dlrun submit JOB.yaml submits it", err)
        for flags in (("--scheduler", "local"), ("--hosts", "localhost")):
            code, _, err = self.dlrun(*flags, "--framework", "plain", "--", "true")
            self.assertEqual(code, 0, err)
            self.assertNotIn("login node", err)


if __name__ == "__main__":
    support.main()
