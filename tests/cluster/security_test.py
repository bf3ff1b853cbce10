#!/usr/bin/env python3
"""What strangers on the cluster can see and do: no secret of a run is in a command line, an environment or a file that others can
read; whoever calls the head without the run's token is sent away; and words go from end to end as they are."""
import json
import os
import pathlib
import re
import shutil
import signal
import stat

import support
from cluster import wait_until
from namespaces import ROOM
from support import DLRUN, parent_of


def target_of(link):
    try:
        return os.readlink(link)
    except OSError:
        return ""  # closed meanwhile


def listens_at(pid):
    """The ports at which a process takes connections; none of one that is gone, as a child of the head's before its exec may be."""
    proc = pathlib.Path(f"/proc/{pid}")
    try:
        inodes = {target_of(link) for link in (proc / "fd").iterdir()}
        rows = [line.split() for table in ("tcp", "tcp6") for line in (proc / "net" / table).read_text().splitlines()[1:]]
    except OSError:
        return set()
    return {str(int(row[1].rpartition(":")[2], 16)) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}


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

    def tearDown(self):
        for pid in self.heads():  # of a test that failed
            os.kill(pid, signal.SIGTERM)
        super().tearDown()

    def heads(self):
        """Without children of theirs that look like them until their exec: srun has ports of its own a moment later."""
        alike = [pid for pid, (_, words) in self.cluster.processes("head").items() if words.startswith(f"{DLRUN} --run-dir")]
        return [pid for pid in alike if parent_of(pid) not in alike]

    def head(self):
        return self.heads()[0]

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
                if not words.startswith(f"{DLRUN}-agent"):
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

    # Calls the head's port in every way that is not an agent's, and says what it got beyond the greeting. The last one knows
    # all of the handshake (src/protocol/handshake.hpp) but the token, and says that it is n4.
    STRANGER = """
import json, os, socket, sys
def answers(said, after_greeting):
    with socket.create_connection(('head', int(sys.argv[1])), timeout=60) as s:
        heard = s.makefile('rb')
        greeting = heard.readline() if after_greeting else b''
        got = b''
        try:
            s.sendall(said)
            if not said: s.shutdown(socket.SHUT_WR)
            greeting = greeting or heard.readline()
            while chunk := heard.read1(): got += chunk
        except ConnectionError:
            pass
        assert not after_greeting or greeting.startswith(b'dlrun-agent-1 '), greeting
        return got
card = {'names': ['n4'], 'addresses': [sys.argv[2]], 'task': 3}
forged = json.dumps({'card': card, 'challenge': '0' * 64, 'proof': '0' * 64}, separators=(',', ':')).encode() + b'\\n'
answers(b'', True)
for said in (b'GET / HTTP/1.0\\r\\n\\r\\n', os.urandom(100000), b'\\xff' * 64 + b'\\n', b'', b'{}\\n'):
    assert answers(said, False) == b'', said[:20]
    assert answers(said, True) == b'', said[:20]
assert answers(forged, True) == b'', 'a forged agent was let in'
print('sent away')
"""

    def strangers_answer(self):
        """What became of strangers at each port of the head's that is dlrun's own. salloc hands its socket on, and answers there when
        it likes."""
        ports = set()
        for head in self.heads():
            ports |= listens_at(head) - listens_at(parent_of(head))
        strangers = [self.cluster.run("n2", ["python3", "-c", self.STRANGER, port, self.cluster.addresses["n4"]], user="root")
                     for port in sorted(ports)]
        return [stranger.stdout.strip() or stranger.stderr for stranger in strangers]

    def test_strangers_are_sent_away_while_the_head_waits_for_an_agent(self):
        """n4's own agent is held up until the strangers have had their turn: its place is free for whoever is let in."""
        real, late = f"{ROOM}/late/real", f"{ROOM}/late/bin"
        shutil.copytree(os.path.dirname(os.path.dirname(DLRUN)) + "/bin", real, ignore=lambda folder, names: set(names) - {"dlrun-agent"})
        os.makedirs(late)
        pathlib.Path(f"{late}/dlrun-agent").write_text(f'#!/bin/bash\nuntil [[ -e {self.folder}/go ]]; do sleep 0.1; done\nexec {real}/dlrun-agent "$@"\n')
        os.chmod(f"{late}/dlrun-agent", 0o755)
        self.cluster.run("n4", ["mount", "--bind", late, os.path.dirname(DLRUN)], user="root")
        try:
            process = self.start("salloc", "-Q", "-N4", DLRUN, "--run-dir", "run", "--framework", "plain", "--", "sh", "-c", "echo here $(hostname)")
            answers = wait_until(lambda: process.poll() is not None or self.strangers_answer())
            self.assertIsNone(process.poll(), process.poll() is not None and process.communicate())
            self.assertEqual(answers, ["sent away"])
            self.write("go", "")
            out, err = process.communicate()
        finally:
            self.cluster.run("n4", ["umount", os.path.dirname(DLRUN)], user="root")
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(sorted(out.splitlines()), [f"[worker {i} n{i + 1}] here n{i + 1}" for i in range(4)])

    def test_strangers_are_sent_away_from_a_running_job(self):
        process = self.job()
        self.assertEqual(self.strangers_answer(), ["sent away"])
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
