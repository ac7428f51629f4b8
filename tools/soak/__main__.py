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

from tools.soak.campaign import Campaign
from tools.soak.ground import Ground, Stuck
from tools.soak.points import Chooser, Strike, Tally
from vnuma import lab


def main() -> None:
    """Campaign after campaign until the time is over or enough points were struck, or one went wrong."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has runs in the background ignore it
    for name in ("VNUMA_HOME", "VNUMA_STORE", "VNUMA_LAB_STATE"):
        os.environ.pop(name, None)  # never strike a user's own store or lab
    began, tally = time.monotonic(), Tally()
    deadline = began + asked.minutes * 60
    chooser = Chooser(asked.seed, asked.strike, tally)
    while True:
        _campaign(chooser, asked, deadline, tally)
        left = max(deadline - time.monotonic(), 0)
        print(f"{tally.total} strikes, {tally.runs} runs completed, {left:.0f} s left", flush=True)
        if tally.total >= asked.points or tally.wrong or not left:
            break
    print(f"seed {asked.seed}, {time.monotonic() - began:.0f} s\n{tally.report()}")
    sys.exit(0 if tally.good else 1)


def _campaign(chooser: Chooser, asked: argparse.Namespace, deadline: float, tally: Tally) -> None:
    with tempfile.TemporaryDirectory(prefix="vnuma-soak-") as home, ExitStack() as after:
        ground = Ground(lab.ready_program(), Path(home), f"run {tally.runs + 1}", tally, asked.programs)
        after.callback(ground.close)
        os.environ["VNUMA_HOME"] = str(ground.home)
        campaign = Campaign(ground, asked.seed + tally.runs)
        after.callback(campaign.close)
        try:
            campaign.strike(chooser, deadline)
        except Stuck as error:
            tally.stuck.append(str(error))
        if tally.wrong and asked.keep:
            _keep(ground, asked.keep)


def _keep(ground: Ground, where: Path) -> None:
    """Keep store and logs of a failed campaign."""
    where.mkdir(parents=True, exist_ok=True)
    logs = (*ground.folder.glob("*.log"), *(ground.folder / "lab").glob("*.jsonl"))
    crashes = ground.home.glob("crashes/*")
    for file in (*logs, *ground.home.glob("vnuma.*"), *ground.home.glob("*.log"), *crashes):
        (where / file.name).write_bytes(file.read_bytes())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="how long points are struck")
    parser.add_argument("--points", type=int, default=10_000, help="or how many, whichever comes first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", action="store_true", help="strike a study of programs on a client")
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
