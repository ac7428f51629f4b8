"""Write docs/reference/lab-faults.md from the kinds of fault in the lab's source.

python -m tools.lab_faults
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "lab/internal/scenario/fault.go"
PAGE = ROOT / "docs/reference/lab-faults.md"
KIND = re.compile(r'^\t\w+\s+= "(\w+)"\s+// (.*) \[([RDA])\]$', re.MULTILINE)
HEAD = """# Faults of the lab

Written by `tools/lab_faults.py` from the lab's source. [The lab](../lab.md#faults) describes how a fault is
set. R: seen for real (recordings, published cases), D: documented, A: assumed.

| kind | what happens | from |
|---|---|---|
"""


def markdown() -> str:
    """The page."""
    kinds = KIND.findall(SOURCE.read_text(encoding="utf-8"))
    return HEAD + "".join(f"| `{kind}` | {what} | {source} |\n" for kind, what, source in kinds)


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
