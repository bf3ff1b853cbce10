#!/usr/bin/env python3
"""dlrun stacks: the functions in which the ranks of a live run are, natively and in Python, and ranks that go on unharmed."""
import json
import os
import subprocess
import sys

import support

# Each waits until it may end, in a function that is to be found: at one place of it, as a FIFO is opened once somebody writes.
NATIVE = r"""
#include <errno.h>
#include <fcntl.h>
__attribute__((noinline)) int wait_for_the_others(void) { int fd; do fd = open("go", O_RDONLY); while (fd < 0 && errno == EINTR); return fd; }
int main(void) { return wait_for_the_others() < 0; }
"""
PYTHON = """\
import sys
sys.path.insert(0, {client!r})
import dlrun_client
def read_batch():
    open("go")
with dlrun_client.connect() as dlrun:
    print("it reads", flush=True)
    read_batch()
"""
# Says of the process that it is asked about what py-spy says.
PY_SPY = """\
#!/bin/sh
for last; do :; done
echo "[{\\"pid\\":$last,\\"os_thread_id\\":$last,\\"frames\\":[{\\"name\\":\\"by_py_spy\\",\\"filename\\":\\"train.py\\",\\"line\\":6}]}]"
"""


class Stacks(support.Case):
    def stacks(self, *words):
        code, out, err = self.dlrun("stacks", "run", "--json", *words)
        self.assertEqual(code, 0, out + err)
        return json.loads(out)

    def test_the_functions_of_a_live_run(self):
        subprocess.run(["gcc", "-O1", "-x", "c", "-o", os.path.join(self.folder, "native"), "-"], input=NATIVE, text=True, check=True)
        self.write("train.py", PYTHON.format(client=support.CLIENT))
        os.mkfifo(os.path.join(self.folder, "go"))
        run = self.start("--framework", "plain", "--run-dir", "run", "--tasks-per-node", "3", "--set", "launch.bind=false", "--", "bash", "-c",
                         f"if [ $DLRUN_RANK = 2 ]; then {sys.executable} train.py; else ./native; fi; exit $?")
        support.wait_until(lambda: self.exists("run/logs/0002-worker-2.log") and "it reads" in self.read("run/logs/0002-worker-2.log"),
                           "the Python rank reads")
        text = "rank 2 in read_batch; 2 ranks (0-1) in wait_for_the_others"
        found = support.wait_until(lambda: (now := self.stacks())["text"] == text and now, f"the ranks are seen: {text}")
        groups = {group["ranks"]: group for group in found["groups"]}
        names = [frame["function"] for frame in groups["0-1"]["native"]]
        self.assertEqual(names.index("main"), names.index("wait_for_the_others") + 1, names)
        self.assertEqual([frame["function"] for frame in groups["2"]["python"]], ["read_batch", "<module>"])
        self.assertIn("_PyEval_EvalFrameDefault", [frame["function"] for frame in groups["2"]["native"]])
        self.assertEqual((found["ranks"], found["read"], found["silent_hosts"]), (3, 3, []))
        # Three people at once: each has an answer.
        asking = [self.start("stacks", "run", "--json") for _ in range(3)]
        answers = [json.loads(one.communicate()[0]) for one in asking]
        self.assertEqual(len({answer["request"] for answer in answers}), 3)
        code, out, err = self.dlrun("stacks", "run")
        self.assertEqual(code, 0, err)
        self.assertIn("2 ranks (0-1) in wait_for_the_others", out)
        self.assertRegex(out, r"#0  read_batch  \(\S*train\.py:\d+\)")
        self.write("go", "")
        _, err = run.communicate()
        self.assertEqual(run.returncode, 0, err)
        self.assertEqual(self.stacks()["text"], found["text"])  # of a run that is over, what was read before

    def test_a_hung_run_has_its_stacks(self):
        self.write("py-spy", PY_SPY)
        os.chmod(os.path.join(self.folder, "py-spy"), 0o755)
        self.environment["PATH"] = f"{self.folder}:{self.environment['PATH']}"
        code, _, err = self.dlrun("--framework", "plain", "--run-dir", "run", "--no-output-limit", "1s", "--", sys.executable, "-c",
                                  "import time; time.sleep(1000)")
        self.assertEqual(code, 71)
        self.assertIn("the run hangs: rank 0 in by_py_spy", err)
        self.assertEqual(self.stacks()["reason"], "hang")

    def test_runs_without_ranks(self):
        code, _, err = self.dlrun("stacks")
        self.assertEqual((code, "the run is missing" in err), (64, True), err)
        self.plain("true")
        code, _, err = self.dlrun("stacks", "run")
        self.assertEqual((code, "is over (done), and no stacks of it were read" in err), (69, True), err)


if __name__ == "__main__":
    support.main()
