#!/usr/bin/env python3
"""The page of `dlrun bench-report` in a real browser: log-log plots with the ideal line, light, dark, on a phone and on paper."""
import json
import os
import subprocess

import page_case
from page_case import HOSTILE, PICTURES, WINDOWS

# Inception v3 with parameter servers on Piz Daint (Bugliarello, "Distributed TensorFlow: A performance evaluation", 2017).
DAINT = {1: (138.23, 137.03), 2: (264.57, 260.84), 4: (523.38, 516.71), 8: (1018.18, 911.84), 16: (2001.00, 1772.34), 32: (3840.35, 3425.55),
         64: (7118.31, 6348.74), 128: (9219.70, 9055.64)}


def bench(name="inception"):
    points = [{"id": str(i), "values": {"nodes": nodes, "data": data}, "repeat": 0, "ranks": nodes, "status": "done", "why": None,
               "run": f"points/{i}", "rate": rate}
              for i, (nodes, rates) in enumerate(DAINT.items()) for data, rate in zip(("synthetic", "real"), rates)]
    points.append({"id": "x", "values": {"nodes": 256, "data": "real"}, "repeat": 0, "ranks": None, "status": "failed", "why": HOSTILE, "run": None, "rate": None})
    return {"schema": 1, "name": name, "created": "2017-08-01T00:00:00Z", "dlrun": "0.1.0", "framework": "tensorflow-ps", "mode": "rate", "unit": "images/s",
            "axes": [{"key": "nodes", "values": [*DAINT, 256]}, {"key": "data", "values": ["synthetic", "real"]}],
            "machine": {"cpu": "Xeon E5-2690 v3", "gpu": "Tesla P100", "host_count": 128}, "points": points}


class BenchPage(page_case.PageCase):
    def bench_page(self, name="inception"):
        self.write("bench.json", json.dumps(bench(name)))
        return self.page("bench-report", ".")

    def test_scaling_with_the_ideal_line_light_dark_on_a_phone_and_on_paper(self):
        page = self.bench_page()
        for scheme, width, phone in WINDOWS:
            with self.subTest(scheme=scheme, width=width):
                self.open(page, "bench", width, scheme, phone)
        self.assertEqual(self.js("document.querySelectorAll('.u-over').length"), 2)  # rate and efficiency
        labels = self.js("[...document.querySelector('figure').querySelectorAll('label')].map((l) => l.textContent)")
        self.assertEqual(len(labels), 3)
        self.assertTrue(labels[2].startswith("ideal of the first"), labels)
        self.assertEqual(self.js("document.querySelector('figure button').getAttribute('aria-pressed')"), "true")
        self.assertEqual(self.js("document.querySelectorAll('#table ~ .table tbody tr').length"), 17)
        self.assertEqual(self.js("document.querySelectorAll('td.failed').length"), 1)
        self.assertIn("52.1 %", self.js("document.body.innerText"))
        self.js("document.querySelector('figure .plot').focus()")
        self.browser.key("End")
        self.assertEqual(self.js("document.querySelector('figure .at').textContent"), "nodes 128")
        self.browser.window(1200, 900, "dark")
        self.browser.open(page)
        pdf = os.path.join(PICTURES, "bench.pdf")
        self.browser.print(pdf)
        text = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True).stdout
        for part in ("inception", "Images/s by nodes", "Efficiency by nodes", "9220", "What was found"):
            self.assertIn(part, text)

    def test_no_text_of_a_bench_becomes_part_of_the_page(self):
        self.open(self.bench_page(HOSTILE), "bench-hostile")
        self.assertEqual(self.js("document.title"), f"{HOSTILE} · dlrun bench")
        self.assertEqual(self.js("document.querySelector('h1').textContent"), HOSTILE)
        self.assertEqual(self.js("document.querySelectorAll('main b, main script').length"), 0)


if __name__ == "__main__":
    page_case.main()
