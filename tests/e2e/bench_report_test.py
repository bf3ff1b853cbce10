#!/usr/bin/env python3
"""`dlrun bench-report` as people call it: formats and where they go, exit codes, colours."""
import json
import os
import pathlib

import support


def bench(rates, repeats=1):
    points = [{"id": f"{i}", "values": {"nodes": nodes}, "repeat": k, "ranks": nodes, "status": "done", "why": None, "run": "points/0", "rate": rate + k / 10}
              for i, (nodes, rate) in enumerate(rates.items()) for k in range(repeats)]
    return {"schema": 1, "name": "flowers", "created": "2026-11-30T00:00:00Z", "dlrun": "0.1.0", "framework": "builtin", "mode": "rate", "unit": "images/s",
            "axes": [{"key": "nodes", "values": list(rates)}], "machine": {"cpu": "x", "gpu": None, "host_count": 4}, "points": points}


class BenchReport(support.Case):
    def keep(self, name, *arguments):
        os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        self.write(f"{name}/bench.json", json.dumps(bench(*arguments)))

    def test_formats_by_flag_and_by_the_name_of_the_output(self):
        self.keep("b", {1: 10.0, 2: 19.0})
        code, out, err = self.dlrun("bench-report", "b")
        self.assertEqual((code, out.splitlines()[2].split()), (0, ["1", "10", "1", "100.0", "%", "1"]), err)
        self.assertNotIn("\033", out)
        self.assertEqual(json.loads(self.dlrun("bench-report", "b", "--json")[1])["cells"][1]["efficiency"], 0.95)
        for name, beginning in (("t.csv", "nodes,ranks"), ("t.md", "**flowers"), ("t.tex", "% \\usepackage"), ("t.html", "<!doctype"), ("t.txt", "flowers")):
            code, out, err = self.dlrun("bench-report", "b", "-o", name)
            self.assertEqual((code, out), (0, name + "\n"), err)
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                self.assertTrue(file.read().startswith(beginning), name)
        code, out, _ = self.dlrun("bench-report", "b", "--color", "always", "--columns", "nodes")
        self.assertIn("\033[", out)

    def test_a_regression_is_exit_code_1(self):
        self.keep("old", {1: 10.0, 2: 19.0}, 3)
        self.keep("new", {1: 10.0, 2: 15.0}, 3)
        code, out, err = self.dlrun("bench-report", "new", "--compare", "old")
        self.assertEqual(code, 1, err)
        self.assertIn("worse", out)
        self.assertEqual(self.dlrun("bench-report", "old", "--compare", "new")[0], 0)
        self.assertEqual(self.dlrun("bench-report", "new", "--compare", "old", "-o", "c.html")[0], 1)
        page = pathlib.Path(self.folder, "c.html").read_text()
        self.assertRegex(page, "(?s)<!doctype html>.*<style>.*--back.*<th scope=.col.*>worse</td>")
        self.assertEqual(json.loads(self.dlrun("bench-report", "new", "--compare", "old", "--json")[1])["regression"], True)

    def test_a_prediction_says_what_it_assumes(self):
        self.keep("b", {1: 10.0, 2: 19.0, 4: 35.0})
        code, out, err = self.dlrun("bench-report", "b", "--predict", "8,64")
        self.assertEqual(code, 0, err)
        self.assertEqual(len([line for line in out.splitlines() if line.split()[1:2] == ["ring"]]), 2, out)
        self.assertIn("assumed: weak scaling", out)
        code, out, err = self.dlrun("bench-report", "b", "--predict", "8", "--format", "html", "-o", "-")
        self.assertEqual((code, out.count("<tr>")), (0, 2), err)
        code, out, err = self.dlrun("bench-report", "b", "--predict", "8", "--network", "hdr")
        self.assertEqual(code, 65, err)
        self.assertIn("--bytes", err)
        [one] = json.loads(self.dlrun("bench-report", "b", "--predict", "8", "--json")[1])["predictions"]
        self.assertTrue(one["efficiency"]["low"] < one["efficiency"]["mean"] < one["efficiency"]["high"], one)

    def test_the_tables_of_the_examples_are_made_of_their_figures(self):
        examples = pathlib.Path(__file__).resolve().parents[2] / "share/examples/bench"
        for results in [*examples.glob("*.json"), *examples.glob("small/*.json")]:
            for name in (results.with_suffix(".md").name, results.with_suffix(".tex").name):
                code, _, err = self.dlrun("bench-report", str(results), "-o", name)
                self.assertEqual(code, 0, err)
                self.assertEqual(pathlib.Path(self.folder, name).read_text(), (results.parent / name).read_text())

    def test_bad_input(self):
        self.write("torn.json", '{"schema": 1,')
        for arguments, code, said in (([], 64, "a bench is needed"), (["nowhere"], 65, "nowhere"), (["torn.json"], 65, "torn.json:1:"),
                                      (["torn.json", "--format", "pdf"], 64, "unknown value 'pdf'"), (["torn.json", "--margin", "-3"], 64, "out of range"),
                                      (["torn.json", "--network", "hdr"], 64, "no meaning without --predict"),
                                      (["torn.json", "--predict", "8", "--network", "hdt"], 64, "unknown network 'hdt'"), (["torn.json", "--predict", "0"], 64, "--predict")):
            with self.subTest(arguments):
                got, out, err = self.dlrun("bench-report", *arguments)
                self.assertEqual((got, out), (code, ""), err)
                self.assertIn(said, err)


if __name__ == "__main__":
    support.main()
