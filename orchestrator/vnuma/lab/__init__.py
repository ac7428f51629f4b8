"""The embedded lab, which simulates vCenter, ESXi, guest and SQL Server (docs/lab.md).

Its Go sources ship with vnuma; `build` compiles them, `up`, `status` and `down` manage one running lab per
state folder.
"""

from __future__ import annotations

from vnuma.lab import faults
from vnuma.lab.process import LabMachine, LabState, LabVm, down, status, up
from vnuma.lab.program import Go, build, find_built, find_go, ready_program, sources_digest

__all__ = [
    "Go",
    "LabMachine",
    "LabState",
    "LabVm",
    "build",
    "down",
    "faults",
    "find_built",
    "find_go",
    "ready_program",
    "sources_digest",
    "status",
    "up",
]
