#!/usr/bin/env python3
"""What strangers on the cluster can see and do: no secret of a run is in a command line, an environment or a file that others can
read; whoever calls the head without the run's token is sent away; and words go from end to end as they are."""
import json
import os
import pathlib
import re
import signal
import stat

import support
from support import DLRUN


def listens_at(pid):
    """The ports at which a process takes connections."""
    inodes = {os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    rows = [line.split() for table in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
    return [str(int(row[1].rpartition(":")[2], 16)) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]


class Security(support.Case):
    slurm = True

    def job(self, script="echo running; sleep 1000", *flags):
        process = self.start("salloc", "-Q", "-N4", DLRUN, "--run-dir", "run", "--set", "launch.grace=1s", *flags, "--framework", "plain", "--",
                             "bash", "-c", script)
        for _ in range(4):
            line = process.stdout.readline()
            if not line:
                self.fail("it ended too early: " + process.stderr.read())
        return process

    def head(self):
        return [pid for pid, (_, words) in self.cluster.processes("head").items() if words.startswith(f"{DLRUN} --run-dir")][0]

    def end(self, process):
        os.kill(self.head(), signal.SIGTERM)
        out, err = process.communicate()
        return out, err

    def test_the_token_is_nowhere_to_be_seen(self):
        process = self.job()
        token = re.compile(rb"\b[0-9a-fA-F]{64}\b")
        agents = 0
        for host in self.cluster.up():
            for pid, (uid, words) in self.cluster.processes(host).items():
                if " agent" not in words:
                    continue
                agents += 1
                self.assertIsNone(token.search(words.encode()), words)
                for entry in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    self.assertIsNone(token.search(entry), entry)
        self.assertGreaterEqual(agents, 4)
        self.assertEqual(stat.S_IMODE(os.stat(f"{self.folder}/run").st_mode), 0o700)
        for path in pathlib.Path(self.folder).rglob("*"):
            if path.is_file():
                self.assertIsNone(token.search(path.read_bytes()), path)
        out, err = self.end(process)
        self.assertIsNone(token.search((out + err).encode()), out + err)

    def test_strangers_are_sent_away_and_the_job_goes_on(self):
        process = self.job()
        ports = listens_at(self.head())
        # It need not listen any more once its agents are here; while it does, a stranger gets nothing.
        strangers = "import os, socket, sys, time\n" \
            "for port in sys.argv[1:]:\n" \
            "    for said in (b'GET / HTTP/1.0\\r\\n\\r\\n', os.urandom(100000), b'\\xff' * 64, b'', b'{'):\n" \
            "        try:\n" \
            "            with socket.create_connection(('head', int(port)), timeout=5) as s:\n" \
            "                s.sendall(said)\n" \
            "        except OSError:\n" \
            "            pass\n" \
            "print('done')\n"
        self.assertEqual(self.cluster.run("n2", ["python3", "-c", strangers, *ports], user="root").stdout, "done\n")
        self.assertIsNone(process.poll())
        _, err = self.end(process)
        self.assertEqual(process.returncode, 143, err)

    def test_words_arrive_on_every_node_as_they_are(self):
        words = ["'", '"', "$(touch pwned)", "`id`", "a\nb\n", "\\", "ä€😀", "-x", "{{x}}", "${HOME}", ";&|<>*?[", "\t", "", "x" * 100000]
        self.write("show.py", "import json, sys; print(json.dumps([w if len(w) < 1000 else len(w) for w in sys.argv[1:]]))")
        code, out, err = self.run_on("salloc", "-Q", "-N4", DLRUN, "--run-dir", "run", "--framework", "plain", "--", "python3", "show.py", *words)
        self.assertEqual(code, 0, err[:1000])
        self.assertEqual([json.loads(line.partition("] ")[2]) for line in out.splitlines()], [words[:-1] + [100000]] * 4)
        self.assertFalse(os.path.exists(f"{self.folder}/pwned"))


if __name__ == "__main__":
    support.main()
