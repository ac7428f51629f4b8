"""Shapes beside the words of states: what colour tells, to those who do not see it. Pure."""

from __future__ import annotations

_SIGNS = {
    "✓": ("ok", "valid", "finished", "held"),
    "✗": ("FAIL", "block", "failed", "invalid", "given up", "conflict", "died", "differs"),
    "!": ("warn", "stopping", "stopped", "interrupted"),
    "-": ("info", "waived", "not evaluable", "left out"),
    "▶": ("running", "now"),
    "·": ("planned", "pending"),
    "↻": ("tried again",),
}
SIGNS = {state: sign for sign, states in _SIGNS.items() for state in states}
"""The shape of each state."""

IN_ASCII = {"✓": "+", "✗": "x", "▶": ">", "·": ".", "↻": "~"}
"""The same for a terminal that has no such letters."""
