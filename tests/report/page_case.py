"""A case whose pages are opened in one headless Chromium: what holds of every page is checked when it is opened, and a picture of it is
left in REPORT_PICTURES, for people to judge."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import support  # noqa: E402
from browser import Browser  # noqa: E402

PICTURES = os.environ["REPORT_PICTURES"]
HOSTILE = 'evil </script><script>document.title="broken"</script> & <b>'
# What a page may show nowhere: a value that somebody computed from what is not there.
NO_VALUES = "document.body.innerText.match(/\\b(undefined|NaN|Infinity|\\[object)/g)"
WINDOWS = (("light", 1200, False), ("dark", 1200, False), ("light", 390, True))  # (scheme, width, phone)


class PageCase(support.Case):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()

    def page(self, *words):
        """The path of the page that a command of dlrun writes."""
        code, out, err = self.dlrun(*words, "-o", "page.html")
        self.assertEqual((code, out), (0, "page.html\n"), err)
        return os.path.join(self.folder, "page.html")

    def open(self, page, name, width=1200, scheme="light", phone=False):
        self.browser.window(width, 900, scheme, phone)
        self.browser.open(page)
        self.assertEqual(self.browser.problems(), [])
        self.assertEqual(self.js("document.documentElement.dataset.ready"), "yes")
        self.assertIsNone(self.js(NO_VALUES))
        self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width, "it scrolls sideways")
        self.check_before_picture()
        self.browser.picture(os.path.join(PICTURES, f"{name}-{scheme}{'-phone' if phone else ''}.png"))

    def check_before_picture(self):
        """What a picture may change: it is of the whole page, for which the window grows."""

    def js(self, script):
        return self.browser.evaluate(script)


def main():
    os.makedirs(PICTURES, exist_ok=True)
    support.main()
