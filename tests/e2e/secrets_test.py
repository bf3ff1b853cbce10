#!/usr/bin/env python3
"""What must not be seen is not: secrets of the job in files and messages, the agents' token anywhere, and what the user does
not want handed on."""
import glob
import json
import os
import subprocess

import support

VALUE = "hunter2-and-a-half"
JOB = f"""framework: plain
command: [bash, -c, 'test "$MY_TOKEN" = {VALUE[:7]}"{VALUE[7:]}" && test "$LICENSE" = {VALUE[:7]}"{VALUE[7:]}" && echo got them']
environment:
  set: {{MY_TOKEN: {VALUE}, LICENSE: {VALUE}, OPEN: all-may-see}}
  secrets: [LICEN*]
"""


class Secrets(support.Case):
    def test_ranks_get_secrets_and_no_file_or_message_has_them(self):
        self.write("job.yaml", JOB)
        code, out, err = self.dlrun("--run-dir", "run", "--verbose", "--json", "job.yaml")
        self.assertEqual(code, 0, err)
        self.assertIn("got them", err)
        self.assertNotIn(VALUE, out + err)
        files = [path for path in glob.glob(f"{self.folder}/run/**", recursive=True) if os.path.isfile(path)]
        self.assertGreater(len(files), 5)
        for path in files:
            with open(path, errors="replace") as file:
                self.assertNotIn(VALUE, file.read(), path)
        self.assertIn("all-may-see", self.read("run/plan.json"))

    def test_what_a_failing_rank_prints_of_them_is_in_its_own_log_alone(self):
        self.write("token", VALUE + "\n")
        script = ('echo "$MY_TOKEN $LICENSE $FROM_FILE $2"; echo "Error: $MY_TOKEN" >&2; '
                  'printf "%0395d$MY_TOKEN\\nError: %0288d$MY_TOKEN\\n" 1 2 >&2; printf "prompt $MY_TOKEN"; exit 3')
        self.write("job.yaml", f"""framework: plain
command: [bash, -c, '{script}', sh, --api-key, from-{VALUE}]
environment: {{set: {{MY_TOKEN: {VALUE}, LICENSE: lic-{VALUE}}}, secrets: [LICEN*], setup: ['export FROM_FILE_TOKEN=$(sed s/^/file-/ token)',
  'export FROM_FILE=$FROM_FILE_TOKEN']}}
""")
        code, out, _ = self.dlrun("--run-dir", "run", "--json", "job.yaml")
        self.assertEqual(code, 3)
        self.assertIn(f"file-{VALUE}", self.read("run/logs/0000-worker-0.log"))
        for text in (out, self.read("run/record.json"), self.read("run/events.jsonl")):
            for part in (VALUE, VALUE[:5], "hunter", "file-", "lic-"):
                self.assertNotIn(part, text)
        first_failure = self.record()["attempts"][0]["first_failure"]
        for line in (" ".join(["(secret, not shown)"] * 4), "Error: (secret, not shown)", "prompt (secret, not shown)"):
            self.assertIn(line, first_failure["last_lines"])  # the order of two streams is not told

    def test_what_a_failing_prolog_or_check_prints_of_them_is_hidden(self):
        self.write("job.yaml", f"""framework: plain
command: ['true']
environment: {{set: {{MY_TOKEN: {VALUE}}}, setup: ['set -x', 'export A_TOKEN=other-{VALUE}', 'echo $MY_TOKEN', 'false']}}
""")
        code, out, err = self.dlrun("--run-dir", "run", "--json", "job.yaml")
        self.assertEqual(code, 69, err)
        self.assertIn("environment.setup[3]: false", err)
        for text in (out, err, self.read("run/record.json"), self.read("run/events.jsonl")):
            self.assertNotIn(VALUE, text)

    def test_plans_do_not_show_them(self):
        self.write("job.yaml", JOB)
        for flags in (["--json"], ["--explain"], ["--explain", "--json"], []):
            code, out, err = self.dlrun("plan", *flags, "job.yaml", "--set", f"environment.set.OTHER_API_KEY={VALUE}")
            self.assertEqual(code, 0, err)
            self.assertNotIn(VALUE, out + err)
        self.assertIn("(secret, not shown)", self.dlrun("plan", "--explain", "job.yaml")[1])

    def test_values_in_commands_and_setup_lines_are_used_and_not_shown(self):
        self.write("job.yaml", f"""framework: plain
command: [bash, -c, 'test "$A_TOKEN" = "$2" && echo got them', sh, --api-token, {VALUE}, --batch=7]
environment: {{setup: ['export A_TOKEN={VALUE}; true # done']}}
""")
        code, out, err = self.dlrun("--run-dir", "run", "--verbose", "--json", "job.yaml")
        self.assertEqual(code, 0, err)
        self.assertIn("got them", err)
        self.assertNotIn(VALUE, out + err)
        for path in glob.glob(f"{self.folder}/run/*.json*"):
            with open(path) as file:
                self.assertNotIn(VALUE, file.read(), path)
        plan = json.loads(self.read("run/plan.json"))
        self.assertEqual(plan["ranks"][0]["argv"][-3:], ["--api-token", "(secret, not shown)", "--batch=7"])
        self.assertEqual(plan["prolog"]["setup"], ["export A_TOKEN=(secret, not shown); true # done"])
        for flags in (["--json"], ["--explain"], ["--explain", "--json"], []):
            code, out, err = self.dlrun("plan", *flags, "job.yaml")
            self.assertEqual(code, 0, err)
            self.assertNotIn(VALUE, out + err)

    def test_a_setup_line_that_fails_is_named_without_its_secret(self):
        code, _, err = self.dlrun("--run-dir", "run", "--set", f"environment.setup=['A_TOKEN={VALUE} false']", "--framework", "plain", "--", "true")
        self.assertEqual(code, 69)
        self.assertIn("environment.setup[0]: A_TOKEN=(secret, not shown) false", err)
        self.assertNotIn(VALUE, err)

    def test_an_error_about_one_does_not_show_it(self):
        with open(os.path.join(self.folder, "job.yaml"), "wb") as file:
            file.write(JOB.replace("all-may-see", "x").encode().replace(VALUE.encode(), b'"' + VALUE.encode() + b'\\0"', 1)
                       .replace(b"{MY_TOKEN: " + VALUE.encode(), b'{MY_TOKEN: "' + VALUE.encode() + b'\\0"'))
        code, out, err = self.dlrun("plan", "job.yaml")
        self.assertNotEqual(code, 0)
        self.assertNotIn(VALUE, out + err)

    def test_a_script_by_hand_takes_them_from_its_caller(self):
        self.write("job.yaml", JOB)
        self.dlrun("--run-dir", "run", "job.yaml")
        script = glob.glob(f"{self.folder}/run/nodes/*.sh")[0]
        done = subprocess.run(["bash", script], capture_output=True, text=True, env=self.environment, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 64)
        self.assertRegex(done.stderr, r"dlrun: \S+: LICENSE is secret, so its value is not written here: export it first")
        done = subprocess.run(["bash", script], capture_output=True, text=True, cwd=self.folder, check=False,
                              env={**self.environment, "LICENSE": VALUE, "MY_TOKEN": VALUE})
        self.assertEqual((done.returncode, done.stdout), (0, "got them\n"), done.stderr)

    def shown(self, *flags):
        self.environment.update({"APP_MODE": "fast", "APP_DEBUG": "no", "SITE_THING": "x"})
        self.runs = getattr(self, "runs", 0) + 1
        code, out, err = self.dlrun("--framework", "plain", "--run-dir", f"run{self.runs}", *flags, "--", "env")
        self.assertEqual(code, 0, err)
        return {line.partition("] ")[2].partition("=")[0] for line in out.splitlines()}

    def test_denied_variables_and_those_not_allowed_do_not_reach_ranks(self):
        self.assertLessEqual({"APP_MODE", "APP_DEBUG", "SITE_THING"}, self.shown())
        shown = self.shown("--set", "environment.deny=[APP_D*]")
        self.assertIn("APP_MODE", shown)
        self.assertNotIn("APP_DEBUG", shown)
        shown = self.shown("--set", f"environment.allow=[APP_*, {support.MARK}]", "--set", "environment.deny=[APP_D*]")
        self.assertLessEqual({"APP_MODE", "PATH", "DLRUN_RANK"}, shown)
        self.assertTrue(shown.isdisjoint({"APP_DEBUG", "SITE_THING"}))

    def test_any_words_arrive_as_they_are(self):
        words = ["'", '"', "$(touch /tmp/dlrun-pwned)", "`id`", "a\nb\n", "\\", "ä€😀", "-x", "{{x}}", "${HOME}", ";&|<>*?[", "\t", "", "x" * 100000]
        self.write("show.py", "import json, sys; print(json.dumps([w if len(w) < 1000 else len(w) for w in sys.argv[1:]]))")
        code, out, err = self.dlrun("--framework", "plain", "--run-dir", "run", "--", "python3", "show.py", *words)
        self.assertEqual(code, 0, err[:500])
        self.assertEqual(json.loads(out.partition("] ")[2]), words[:-1] + [100000])
        self.assertFalse(os.path.exists("/tmp/dlrun-pwned"))
        # And through the script by hand.
        script = glob.glob(f"{self.folder}/run/nodes/*.sh")[0]
        done = subprocess.run(["bash", script], capture_output=True, text=True, env=self.environment, cwd=self.folder, check=False)
        self.assertEqual(json.loads(done.stdout), words[:-1] + [100000])


if __name__ == "__main__":
    support.main()
