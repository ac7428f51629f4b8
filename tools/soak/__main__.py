"""make soak: kill runs at seeded points for so many minutes, print the findings, exit 1 if there are any."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from tools.soak.lanes import Lanes, Turn
from tools.soak.points import Strike
from vnuma import lab

GRACE_S = 300
"""Time limit for a campaign to end its run after the time is over."""


def main() -> None:
    """Run campaigns in several lanes until the time is over or enough points were struck."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has runs in the background ignore it
    for name in ("VNUMA_HOME", "VNUMA_STORE", "VNUMA_LAB_STATE"):
        os.environ.pop(name, None)  # never strike a user's own store or lab
    lab.ready_program()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vnuma-soak-") as name, ExitStack() as after:
        deadline = began + asked.minutes * 60
        lanes = Lanes(Turn(asked.seed, asked.lanes, deadline, Path(name), asked.keep, tuple(asked.strike)))
        after.callback(lanes.close)
        for tally in lanes.tallies(deadline + GRACE_S):
            left = max(deadline - time.monotonic(), 0)
            print(f"{tally.total} strikes, {tally.runs} runs completed, {left:.0f} s left", flush=True)
            if tally.total >= asked.points or tally.bad:
                lanes.enough()
        found = lanes.found
    print(f"seed {asked.seed}, {time.monotonic() - began:.0f} s, {asked.lanes} lanes\n{found.report()}")
    sys.exit(0 if found.good else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="how long points are struck")
    parser.add_argument("--points", type=int, default=10_000, help="or how many, whichever comes first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--lanes", type=int, default=2, help="campaigns at a time, each with a lab of its own"
    )
    parser.add_argument("--keep", type=Path, help="folder for store and logs of a campaign that went wrong")
    parser.add_argument(
        "--strike", nargs="+", type=Strike, default=list(Strike), help=f"only these: {', '.join(Strike)}"
    )
    return parser.parse_args()


def _end(_number: int, _frame: FrameType | None) -> None:
    """A request to end leaves every `with`, which stops what runs."""
    raise SystemExit(143)


if __name__ == "__main__":
    main()
