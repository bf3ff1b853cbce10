#!/usr/bin/env python3
"""`dlrun report` end to end: runs that dlrun did and run directories of any size as it writes them, in a real browser. Pictures of
the pages are left: light, dark, at the width of a phone, and as they are printed."""
import json
import os
import pathlib
import resource
import stat
import subprocess
import time

import made_runs
import page_case
from page_case import HOSTILE, PICTURES, WINDOWS

SHIFTS = """new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; }).observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 100);
})"""
HEADINGS = "[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))"


class Page(page_case.PageCase):
    def report(self, *runs):
        path = self.page("report", *runs)
        self.assertLess(os.path.getsize(path), 1000000)
        return path

    def data(self, *runs):
        code, out, err = self.dlrun("report", "--json", *runs)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def check_before_picture(self):
        self.assertEqual(self.js(SHIFTS), 0, "its layout jumps")

    def open(self, page, name, width=1200, scheme="light", phone=False):
        super().open(page, name, width, scheme, phone)
        levels = self.js(HEADINGS)
        self.assertEqual(levels[0], 1)
        self.assertTrue(all(b <= a + 1 for a, b in zip(levels, levels[1:])), levels)

    def test_runs_of_one_32_and_4096_ranks_light_dark_and_on_a_phone(self):
        for ranks in (1, 32, 4096):
            made_runs.make_run(os.path.join(self.folder, f"r{ranks}"), ranks, fail=ranks > 8)
            page = self.report(f"r{ranks}")
            for scheme, width, phone in WINDOWS:
                with self.subTest(ranks=ranks, scheme=scheme, width=width):
                    self.open(page, f"r{ranks}", width, scheme, phone)
            text = self.js("document.body.innerText")
            self.assertIn(f"{ranks:,} rank", text)
            self.assertEqual(self.js("document.querySelectorAll('.u-over').length"), 8)  # plots
            self.assertRegex(text, r"306 ms\s+1\.4" if ranks > 8 else r"ms\s+1\.00")
            # A mark for the one rank that did not end well.
            self.assertEqual(self.js("document.querySelectorAll('.ranks li.bad, svg path[stroke=\"var(--bad)\"]:not([d=\"\"])').length"), 1 if ranks > 8 else 0)

    def test_no_text_of_a_run_becomes_part_of_the_page(self):
        made_runs.make_run(os.path.join(self.folder, "run"), 8, name=HOSTILE, fail=True)
        page = self.report("run")
        self.open(page, "hostile")
        self.assertEqual(self.js("document.title"), f"{HOSTILE} · dlrun report")
        self.assertEqual(self.js("document.querySelector('h1').textContent"), HOSTILE)
        self.assertEqual(self.js("document.querySelectorAll('script').length"), 4)
        self.assertEqual(self.js("document.querySelectorAll('main b, main script').length"), 0)
        self.assertIn("</pre></script><b>", self.js("document.querySelector('.failure pre').textContent"))
        self.assertNotIn("not-for-everybody", pathlib.Path(page).read_text())

    def test_every_plot_has_a_table_and_the_keyboard_reads_it(self):
        made_runs.make_run(os.path.join(self.folder, "run"), 8)
        self.open(self.report("run"), "keys")
        self.assertEqual(self.js("[...document.querySelectorAll('figure')].filter((f) => !f.querySelector('details, table, svg[aria-label]')).length"), 0)
        self.js("document.querySelector('figure .plot').focus()")
        self.browser.key("Home")
        first = self.js("document.querySelector('figure .at').textContent")
        self.browser.key("ArrowRight")
        second = self.js("document.querySelector('figure .at').textContent")
        self.assertEqual((first, second), ("step 50", "step 100"))
        self.assertRegex(self.js("document.querySelector('figure .live').textContent"), r"^step 100: loss \d")
        reached = set()
        self.js("document.activeElement.blur()")
        for _ in range(60):
            self.browser.key("Tab")
            reached.add(self.js("document.activeElement.tagName + ' ' + document.activeElement.className"))
        self.assertLessEqual({"A skip", "A ", "DIV plot", "SUMMARY "}, reached)
        self.js("document.querySelector('figure details').open = true")
        page_case.support.wait_until(lambda: self.js("document.querySelectorAll('figure details[open] tbody tr').length") == 1 + 20, "the table has its rows")

    def test_it_can_be_printed(self):
        made_runs.make_chain(os.path.join(self.folder, "chain"), 3, 300)
        page = self.report("chain")
        self.browser.window(1200, 900, "dark")  # on paper it is light all the same
        self.browser.open(page)
        pdf = os.path.join(PICTURES, "chain.pdf")
        self.browser.print(pdf)
        text = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True).stdout
        for part in ("imagenet", "Loss", "Time axis", "link 3", "4703", "Provenance"):
            self.assertIn(part, text)
        image = subprocess.run(["pdftoppm", "-r", "10", "-gray", pdf], capture_output=True, check=True).stdout
        header, _, pixels = image.partition(b"255\n")
        self.assertTrue(header.startswith(b"P5"))
        self.assertGreater(sum(pixel > 200 for pixel in pixels) / len(pixels), 0.7, "paper is not dark")

    def test_ten_links_and_a_million_lines_in_one_small_page(self):
        lines = 100000
        made_runs.make_chain(os.path.join(self.folder, "chain"), 10, lines)
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        page = self.report("chain")
        took, then = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = then.ru_utime + then.ru_stime - used.ru_utime - used.ru_stime
        print(f"report of 10 links and {10 * lines} lines of metrics: {took:.2f} s, {cpu:.2f} s of them on a core, {os.path.getsize(page)} bytes (to reach: 3 s, 1000000 bytes)")
        self.open(page, "chain10")
        [run] = self.data("chain")["runs"]
        self.assertEqual(run["metrics"]["lines"], 10 * lines)
        self.assertEqual(run["metrics"]["repeated_lines"], 9 * lines // 10)
        self.assertEqual(len(run["links"]), 10)
        loss = next(series for series in run["metrics"]["series"] if series["name"] == "loss")
        self.assertEqual(loss["x"], sorted(loss["x"]))
        self.assertIn(loss["highest"]["value"], loss["y"])  # no plot loses an extreme
        self.assertIn(loss["lowest"]["value"], loss["y"])
        self.assertEqual(run["time"]["queue"], sum(900 * number for number in range(1, 10)))
        self.assertEqual([mark["kind"] for mark in run["events"]["marks"] if mark["link"] == 4], ["resume", "failure", "end", "retry", "stop", "end"])

    def test_several_runs_are_compared(self):
        for name, rate in (("one", 0.2), ("two", 0.3)):
            made_runs.make_run(os.path.join(self.folder, name), 8, name=name, steps_seconds=rate)
        self.open(self.report("one", "two"), "comparison")
        self.assertEqual(self.js("document.querySelector('h1').textContent"), "2 runs")
        self.assertEqual(self.js("document.querySelectorAll('#comparison ~ .table tbody tr').length"), 2)
        self.assertEqual(self.js("[...document.querySelectorAll('#comparison ~ .plots figure:first-child label')].map((l) => l.textContent.split(/[0-9]/)[0])"), ["one", "two"])

    def test_a_run_of_dlrun_that_was_tried_again(self):
        script = 'sleep 0.2; if [ "$DLRUN_ATTEMPT$DLRUN_RANK" = 11 ]; then echo "bad </script> luck" >&2; exit 3; fi'
        code, _, err = self.plain(script, "--tasks-per-node", "2", "--retries", "1")
        self.assertEqual(code, 0, err)
        self.open(self.report("run"), "retry")
        text = self.js("document.body.innerText")
        for part in ("Attempt 1 failed: worker 1 (rank 1)", "bad </script> luck", "attempt 2", "wrote no metrics.jsonl", "Not recorded"):
            self.assertIn(part, text)

    def test_a_run_that_was_killed_and_metrics_of_a_program_of_its_own(self):
        made_runs.make_run(os.path.join(self.folder, "run"), 8, extra=False)
        os.remove(os.path.join(self.folder, "run/record.json"))
        with open(os.path.join(self.folder, "run/metrics.jsonl"), "a") as file:
            file.write('{"step": 10100, "bleu": 31.5, "note": "best"}\n{"step": 10150, "los')
        [run] = self.data("run")["runs"]
        self.assertEqual((run["state"], run["exit_code"]), ("no record", None))
        self.assertIn("bleu", [series["name"] for series in run["metrics"]["series"]])
        self.open(self.report("run"), "killed")
        text = self.js("document.body.innerText")
        self.assertIn("Not recorded: GPU use, memory, energy.", text)
        self.assertIn("or its head was killed", text)

    def test_a_fifo_is_written_to_and_a_link_followed(self):
        os.makedirs(os.path.join(self.folder, "run"))
        self.write("run/plan.json", "{}")
        fifo, target, link = (os.path.join(self.folder, name) for name in ("fifo", "target.html", "link.html"))
        os.mkfifo(fifo)
        reader = subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE)
        code, _, err = self.dlrun("report", "run", "-o", "fifo")
        self.assertEqual(code, 0, err)
        self.assertTrue(reader.communicate()[0].startswith(b"<!"))
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode))
        self.write("target.html", "old")
        os.symlink("target.html", link)
        code, _, err = self.dlrun("report", "run", "-o", "link.html")
        self.assertEqual(code, 0, err)
        self.assertTrue(os.path.islink(link))
        with open(target, encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("<!"))

    def test_bad_input(self):
        for arguments, code, said in (([], 64, "there is no run below"), (["nowhere"], 64, "there is no run 'nowhere' below"), (["--no-such-flag", "x"], 64, "--no-such-flag")):
            with self.subTest(arguments):
                got, out, err = self.dlrun("report", *arguments)
                self.assertEqual((got, out), (code, ""), err)
                self.assertIn(said, err)
        os.makedirs(os.path.join(self.folder, "empty"))
        self.write("empty/plan.json", "{")
        code, _, err = self.dlrun("report", "empty")
        self.assertEqual(code, 0, err)
        self.assertIn("plan.json", err)  # what could not be read is said


if __name__ == "__main__":
    page_case.main()
