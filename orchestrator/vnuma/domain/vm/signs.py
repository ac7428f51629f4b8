"""Symbols next to states, for people who cannot rely on their colours. Pure."""

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
"""The symbol of each state."""

IN_ASCII = {"✓": "+", "✗": "x", "▶": ">", "·": ".", "↻": "~"}
"""The same for a terminal limited to ASCII."""
