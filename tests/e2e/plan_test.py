#!/usr/bin/env python3
"""What `dlrun plan` shows, on this machine and for clusters that are not here: the same bytes for the same input, and errors
before anything runs."""
import json
import os

import support

TRAIN = """framework: builtin
train: {model: mnist-cnn, data: {format: idx, dir: /not/on/this/machine}, epochs: 1, batch: 64, optimizer: {name: sgd, lr: 0.1}}
"""


class Plan(support.Case):
    def plan(self, *arguments):
        return self.dlrun("plan", *arguments)

    def test_the_same_input_gives_the_same_bytes(self):
        asked = ["--nodes", "3", "--gpus-per-node", "4", "--framework", "pytorch", "--", "python", "train.py"]
        for flags in ([], ["--json"], ["--explain"]):
            first, second = (self.plan(*flags, *asked) for _ in range(2))
            self.assertEqual(first, second)
            self.assertEqual(first[0], 0)

    def test_scripts_are_the_same_bytes_too_new_or_written_over(self):
        def scripts(folder):
            code, _, err = self.plan("--nodes", "3", "--framework", "plain", "--scripts", folder, "--", "true")
            self.assertEqual((code, err.splitlines()[-1]), (0, f"dlrun: wrote 3 node script(s) into {folder}"))
            return {name: self.read(os.path.join(folder, name)) for name in os.listdir(os.path.join(self.folder, folder))}

        first = scripts("a/b/")
        self.assertEqual(sorted(first), ["0001-node0001.sh", "0002-node0002.sh", "0003-node0003.sh"])
        self.assertEqual(first, scripts("c"))
        self.write("c/0002-node0002.sh", "an older one, which is longer" * 1000)
        self.assertEqual(first, scripts("c"))

    def test_a_folder_that_cannot_be_written_is_named(self):
        self.write("file", "")
        code, _, err = self.plan("--framework", "plain", "--scripts", "file/scripts", "--", "true")
        self.assertEqual(code, 74)
        self.assertIn("file/scripts", err)

    def test_ranks_of_the_own_trainer_are_not_waited_for_once_one_has_failed(self):
        """They wait in a collective for the rank that is gone; the user's own grace stands."""
        self.write("job.yaml", TRAIN)
        for flags, grace in (([], 2), (["--set", "launch.grace=7s"], 7)):
            code, out, err = self.plan("--json", *flags, "job.yaml")
            self.assertEqual(code, 0, err)
            self.assertEqual(json.loads(out)["limits"]["grace_after_failure"], grace)

    def test_settings_of_the_training_are_checked_and_its_data_is_not(self):
        self.write("good.yaml", TRAIN)
        self.write("bad.yaml", TRAIN.replace("epochs", "epocs"))
        self.assertEqual(self.plan("good.yaml")[0], 0)
        self.assertNotIn("roles.", self.plan("--explain", "good.yaml")[1])
        temporary = os.path.join(self.folder, "tmp")  # in the system's, other tests' plans come and go
        os.mkdir(temporary)
        self.environment["TMPDIR"] = temporary
        code, out, err = self.plan("bad.yaml", "--json")
        self.assertEqual(code, 65)
        self.assertEqual(json.loads(out), {"schema": "dlrun.error/1", "error": {
            "kind": "input", "message": "unknown key 'epocs' in 'train'", "where": "bad.yaml:2:75", "hint": "did you mean 'epochs'?", "also": [],
            "exit_code": 65}})
        self.assertEqual(err, "dlrun: error: bad.yaml:2:75: unknown key 'epocs' in 'train'\n  hint: did you mean 'epochs'?\n")
        self.assertEqual(os.listdir(temporary), [])


if __name__ == "__main__":
    support.main()
