#!/usr/bin/env python3
"""Jobs of a real Grid Engine as others see them (status_support.py)."""
import gridengine_support
import support
from status_support import Seen
from support import DLRUN


class GridEngine(Seen, gridengine_support.Case):
    more, held = ', queue: all.q, extra: ["-pe two 2"]', ["--set", "resources.extra=[-pe two 2, -h]"]

    def submit(self, *words):
        return self.run_on(DLRUN, "submit", "--scheduler", "gridengine", *words)


if __name__ == "__main__":
    support.main()
