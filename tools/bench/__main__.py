"""make bench: measure everything, print it, and write it into docs/benchmarks.md."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from tools.bench import cells
from tools.bench.analysis import analysis
from tools.bench.drain import drain
from tools.bench.estate import estate, rvtools
from tools.bench.figure import Figure, line, not_evaluated, section
from tools.bench.machine import BUSY, load, machine
from tools.bench.startup import startup
from tools.page_markers import write_between
from vnuma import lab
from vnuma.errors import VnumaError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
BEGIN = "<!-- written by make bench: begin -->"
END = "<!-- written by make bench: end -->"

Part = Callable[[], Iterator[Figure]]


def main() -> None:
    """Measure and print; a complete set is written into the page."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, _end)
    os.environ.pop("VNUMA_LAB_STATE", None)  # never measure on a user's own lab
    before = load()
    words = f"load {before:.2f} per core at the start"
    if before > BUSY:
        words += ": **taken on a busy machine**, to be taken again"
    print(words)
    lab.ready_program()
    began, figures = time.monotonic(), []
    for name, part in _parts(quick=asked.quick).items():
        for figure in _measured(name, part) if asked.only in (None, name) else ():
            print(line(figure), flush=True)
            figures.append(figure)
    print(f"took {time.monotonic() - began:.0f} s")
    if not asked.quick and not asked.only:
        write_between(PAGE, BEGIN, END, section(machine(), words, figures))
        print("written into docs/benchmarks.md")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a shortened set in a minute; nothing is written"
    )
    parser.add_argument("--only", choices=list(_parts(quick=True)), help="one part; nothing is written")
    return parser.parse_args()


def _parts(*, quick: bool) -> dict[str, Part]:
    """Every part by name, in the page's order."""
    return {
        "startup": lambda: startup(3 if quick else 15),
        "drain": lambda: drain(1000, repeats=3) if quick else drain(3000, repeats=7),
        "cells": lambda: cells.overhead(10 if quick else 200),
        "memory": lambda: cells.memory_per_vm(3, 1) if quick else cells.memory_per_vm(5, 3),
        "analysis": lambda: analysis(whole=not quick),
        "estate": lambda: estate(30, 1000, 50) if quick else estate(300, 10_000, 200),
        "rvtools": lambda: rvtools(1000 if quick else 10_000),
        "stores": lambda: cells.stores(3, 1) if quick else cells.stores(10, 4),
    }


def _measured(name: str, part: Part) -> Iterator[Figure]:
    """A failing part becomes a row with its reason and does not stop the others."""
    try:
        yield from part()
    except (VnumaError, OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        yield not_evaluated(f"Part `{name}`", "", str(error).splitlines()[0])


def _end(_number: int, _frame: FrameType | None) -> None:
    """A request to end leaves every `with`, which stops what runs."""
    raise SystemExit(143)


if __name__ == "__main__":
    main()
