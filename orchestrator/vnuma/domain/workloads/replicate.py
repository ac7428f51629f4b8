"""The replicate: the unit of blocks, and what n counts."""

from __future__ import annotations

from typing import Literal

Replicate = Literal["boot", "pass"]
"""A VM's power-cycle; or a pass over a machine that is not booted."""

_PLURALS = {"boot": "boots", "pass": "passes"}


def plural(replicate: Replicate) -> str:
    """`boots`, `passes`."""
    return _PLURALS[replicate]


def medians(replicate: Replicate) -> str:
    """An arm's figure: `median of boot medians`."""
    return f"median of {replicate} medians"


def none_valid(replicate: Replicate) -> str:
    """Why an arm has no figure: `no valid boot`."""
    return f"no valid {replicate}"
