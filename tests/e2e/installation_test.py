#!/usr/bin/env python3
"""dlrun and dlrun-agent belong together: what happens where the one stands without the other, or beside one of another build."""
import json
import os
import re
import shutil
import signal
import stat

import support
from support import DLRUN, wait_until

# Says what an agent says first, in the frames of src/protocol/message_stream.hpp, and then whatever it is asked is silent.
AGENT = """#!/usr/bin/env python3
import json, os, struct, sys
ready = json.dumps({ready}).encode()
os.write(1, struct.pack("<II", len(ready), 0) + ready)
while os.read(0, 65536): pass
"""


class Installation(support.Case):
    def setUp(self):
        super().setUp()
        os.makedirs(f"{self.folder}/here/bin")
        shutil.copy(DLRUN, f"{self.folder}/here/bin/dlrun")  # a program finds its installation from its own path
        root = os.path.dirname(os.path.dirname(DLRUN))
        os.symlink(f"{root}/share", f"{self.folder}/here/share")
        self.agent = f"{self.folder}/here/bin/dlrun-agent"

    def put_agent(self, text):
        path = self.write("here/bin/dlrun-agent", text)
        os.chmod(path, 0o755)

    def run_here(self, *words):
        return self.dlrun(*words, "--framework", "plain", "--run-dir", "run", "--", "echo", "ran", program=f"{self.folder}/here/bin/dlrun")

    def test_dlrun_that_was_copied_alone(self):
        for launcher in ("local", "mpiexec"):
            code, out, err = self.run_here("--via", launcher)
            self.assertEqual((code, out), (69, ""), err)
            shutil.rmtree(f"{self.folder}/run")
            self.assertIn(f"dlrun: error: there is no {self.agent}\n  hint: dlrun starts the dlrun-agent in its own folder", err)

    def test_an_agent_that_may_not_be_run(self):
        self.put_agent(AGENT)
        os.chmod(self.agent, stat.S_IRUSR)
        code, out, err = self.run_here()
        self.assertEqual((code, out), (69, ""), err)
        self.assertIn(f"dlrun: error: {self.agent} cannot be run\n  hint: chmod +x", err)

    def test_an_agent_of_another_version_gets_no_orders(self):
        for ready, its in (({"type": "ready", "pid": 1, "version": "0.0.7"}, "0.0.7"), ({"type": "ready", "pid": 1}, "of an unknown version")):
            self.put_agent(AGENT.format(ready=ready))
            code, out, err = self.run_here()
            self.assertEqual((code, out), (69, ""), err)
            self.assertRegex(err, f"cannot be reached by local: version mismatch: dlrun-agent {its}, dlrun [0-9]")
            self.assertIn("hint: install the same version everywhere", err)
            self.assertNotIn("could not confirm", err)
            self.assertFalse(any(event["event"] == "started" for event in self.events()))
            shutil.rmtree(f"{self.folder}/run")

    def test_an_agent_that_goes_before_the_last_one_has_come(self):
        version = self.dlrun("--version")[1].split()[1]
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(root, "src/protocol/messages.hpp")) as file:
            messages = file.read()
        protocol = int(re.search(r"kVersion = (\d+)", messages)[1])
        ready = json.dumps({"type": "ready", "pid": 1, "version": version, "protocol": protocol})
        self.put_agent(f"""#!/usr/bin/env python3
import os, struct, time
try: os.mkdir("{self.folder}/first")
except FileExistsError: time.sleep(5); os.write(1, struct.pack("<II", {len(ready)}, 0) + b'{ready}'); os.read(0, 1)
else: os.write(1, struct.pack("<II", {len(ready)}, 0) + b'{ready}')
""")
        code, out, err = self.run_here("--via", "local", "--hosts", "a,b")
        self.assertEqual((code, out), (69, ""), err)
        self.assertIn("dlrun: error: 1 of 2 nodes cannot be reached by local: ", err)
        self.assertIn("the agent exited without an error message", err)

    def test_what_is_no_agent_at_all(self):
        self.put_agent("#!/bin/sh\necho strange\n")
        code, out, err = self.run_here()
        self.assertEqual((code, out), (69, ""), err)
        self.assertIn("cannot be reached by local: the agent", err)

    def test_one_ctrl_c_is_enough_where_an_agent_never_answers(self):
        self.put_agent("#!/bin/sh\n: > asked\nexec sleep 1000\n".replace("asked", f"{self.folder}/asked"))
        process = self.start("--framework", "plain", "--run-dir", "run", "--", "echo", "ran", program=f"{self.folder}/here/bin/dlrun")
        wait_until(lambda: self.exists("asked"), "the agent runs")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 130, err)
        self.assertNotIn("stray process", err)


if __name__ == "__main__":
    support.main()
