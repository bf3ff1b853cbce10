#!/usr/bin/env python3
"""The colours of dlrun's pages (share/report/page.css), light and dark: their contrast, and that people who see red, green or blue
otherwise, or not at all, tell them apart. The vision of others is simulated by the matrices of Machado, Oliveira and Fernandes (2009)."""
import itertools
import pathlib
import re
import unittest

SHEET = (pathlib.Path(__file__).resolve().parents[2] / "share/report/page.css").read_text()
SIGHT = {"usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
         "no red": ((.152286, 1.052583, -.204868), (.114503, .786281, .099216), (-.003882, -.048116, 1.051998)),
         "no green": ((.367322, .860646, -.227968), (.280085, .672501, .047413), (-.011820, .042940, .968881)),
         "no blue": ((1.255528, -.076749, -.178779), (-.078411, .930809, .147602), (.004733, .691367, .303900))}
TEXTS = ("text", "quiet", "link", "good", "bad", "wait")
LINES = tuple(f"c{i}" for i in range(7))
PARTS = ("start", "useful", "checkpoint", "lost", "idle", "queue")


def schemes():
    found = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", SHEET)]
    return dict(zip(("light", "dark"), found))


def linear(text):
    values = [int(text[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def contrast(one, other):
    low, high = sorted(sum(w * v for w, v in zip((.2126, .7152, .0722), linear(c))) for c in (one, other))
    return (high + .05) / (low + .05)


def lab(red, green, blue):
    xyz = ((.4124 * red + .3576 * green + .1805 * blue) / .9505, .2126 * red + .7152 * green + .0722 * blue, (.0193 * red + .1192 * green + .9505 * blue) / 1.089)
    x, y, z = (v ** (1 / 3) if v > .008856 else 7.787 * v + 16 / 116 for v in (max(v, 0) for v in xyz))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one, other, sight):
    seen = [lab(*(min(max(sum(w * v for w, v in zip(row, linear(c))), 0), 1) for row in sight)) for c in (one, other)]
    return sum((a - b) ** 2 for a, b in zip(*seen)) ** 0.5


class Colours(unittest.TestCase):
    def test_both_schemes_have_all_colours(self):
        self.assertEqual(set(schemes()), {"light", "dark"})
        for colours in schemes().values():
            self.assertLessEqual({"back", "panel", *TEXTS, *LINES, *PARTS}, set(colours))

    def test_contrast(self):
        for scheme, colours in schemes().items():
            for name, least in [(n, 4.5) for n in TEXTS] + [(n, 3) for n in LINES]:
                for back in ("back", "panel") if name in TEXTS else ("back",):
                    self.assertGreaterEqual(contrast(colours[name], colours[back]), least, f"{scheme}: {name} on {back}")

    def test_colours_differ_for_everybody(self):
        for (scheme, colours), (who, sight), names in itertools.product(schemes().items(), SIGHT.items(), (LINES, PARTS)):
            for one, other in itertools.combinations(names, 2):
                self.assertGreaterEqual(distance(colours[one], colours[other], sight), 10, f"{scheme}: {one} and {other}, {who}")


if __name__ == "__main__":
    unittest.main()
