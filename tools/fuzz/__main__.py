"""Fuzz readers for a while.

python -m tools.fuzz --seconds 600 --seed 1 [study snapshot ... archive]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tools.fuzz import answers, archives, files
from tools.fuzz.tried import Attempt, Failed

INPUTS: dict[str, Attempt] = {
    **{"study": files.study, "snapshot": files.inventory, "waivers": files.waiver_file},
    **{"earlier_check": files.earlier_check},
    **{"workbook": files.workbook, "design": files.design, "table": files.table, "password": files.password},
    **{"site": files.site, "audit": files.audit, "log": files.log, "timing": files.timing},
    **{"archive": archives.archive, "answer": answers.answer},
}


def main() -> int:
    """Fuzz every input that is named, or all; 1 at the first failure of each, which is printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="for each kind of input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("inputs", nargs="*", choices=[*INPUTS, []], default=[])
    given = parser.parse_args()
    failures = [_fuzz(name, given.seconds, given.seed) for name in given.inputs or INPUTS]
    return max(failures)


def _fuzz(name: str, seconds: float, seed: int) -> int:
    until, tried = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            try:
                INPUTS[name](random.Random(f"{name} {seed} {tried}"), Path(folder))
            except Failed as failure:
                sys.stdout.write(f"{name}, seed {seed}, input {tried}:\n{str(failure)[:2000]!r}\n")
                traceback.print_exception(failure.__cause__, file=sys.stdout)
                return 1
            tried += 1
    print(f"{name}: {tried:,} inputs in {seconds:g} s, seed {seed}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
