"""make soak: kill runs at seeded points for so many minutes, print what was found, exit 1 if it was bad."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from types import FrameType

from tools.soak.bare import BareRun
from tools.soak.ground import Ground, Stuck
from tools.soak.points import Chooser, Tally
from tools.soak.supervised import SupervisedRun
from vnuma import lab

Kind = type[BareRun] | type[SupervisedRun]
"""Each with the part of the time that one campaign of it takes at most: both come to theirs twice."""


def main() -> None:
    """Campaign after campaign until time is over or enough points were struck."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, _end)
    for name in ("VNUMA_HOME", "VNUMA_STORE", "VNUMA_LAB_STATE"):
        os.environ.pop(name, None)  # a store or lab of the user's own is not ours to strike
    lab.ready_program()
    tally = Tally()
    kinds: tuple[Kind, ...] = (BareRun, SupervisedRun)
    choosers = {kind: Chooser(asked.seed, kind.VICTIMS, tally) for kind in kinds}
    began = time.monotonic()
    deadline = began + asked.minutes * 60
    for number, kind in enumerate(cycle(kinds), 1):
        turn = min(deadline, time.monotonic() + asked.minutes * 60 * kind.SHARE)
        _campaign(kind, number, tally, choosers[kind], turn, asked)
        left = deadline - time.monotonic()
        print(f"campaign {number}: {tally.total} kills so far, {max(left, 0):.0f} s left", flush=True)
        if left <= 0 or tally.total >= asked.points or not tally.good:
            break
    print(f"seed {asked.seed}, {time.monotonic() - began:.0f} s\n{tally.report()}")
    sys.exit(0 if tally.good else 1)


def _campaign(
    kind: Kind,
    number: int,
    tally: Tally,
    chooser: Chooser,
    deadline: float,
    asked: argparse.Namespace,
) -> None:
    with tempfile.TemporaryDirectory(prefix="vnuma-soak-") as name, ExitStack() as after:
        folder = Path(name)
        ground = Ground(lab.ready_program(), folder, f"campaign {number}", kind.VMS, tally)
        after.callback(ground.lab.stop)
        os.environ["VNUMA_HOME"] = name
        campaign = kind(ground, asked.seed + number)
        after.callback(campaign.close)
        try:
            campaign.strike(chooser, deadline)
        except Stuck as error:
            tally.stuck.append(str(error))
        if not tally.good and asked.keep:
            _keep(folder, asked.keep)


def _keep(folder: Path, where: Path) -> None:
    """Store and logs of a campaign that went wrong."""
    where.mkdir(parents=True, exist_ok=True)
    for file in (*folder.glob("*.log"), *folder.glob("vnuma.*"), *(folder / "lab").glob("*.jsonl")):
        (where / file.name).write_bytes(file.read_bytes())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="how long points are struck")
    parser.add_argument("--points", type=int, default=10_000, help="or how many, whichever comes first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for store and logs of a campaign that went wrong")
    return parser.parse_args()


def _end(_number: int, _frame: FrameType | None) -> None:
    """A request to end goes through every `with`, which stops what runs."""
    raise SystemExit(143)


if __name__ == "__main__":
    main()
