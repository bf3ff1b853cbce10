#!/usr/bin/env python3
"""Jobs of a real Slurm as others see them (status_support.py)."""
import support
from status_support import Seen
from support import DLRUN


class Slurm(Seen, support.Case):
    slurm = True
    more, held = ", queue: main", ["--set", "resources.extra=[--begin=now+1000]"]

    def submit(self, *words):
        return self.run_on(DLRUN, "submit", *words)


if __name__ == "__main__":
    support.main()
