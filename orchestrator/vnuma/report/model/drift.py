"""Drift over a run, as text."""

from __future__ import annotations

from vnuma.analysis.drift import Drift, Slope
from vnuma.analysis.records import NotEvaluated


def drift_words(drift: Drift | NotEvaluated) -> str:
    """Both trends as text."""
    if isinstance(drift, NotEvaluated):
        return f"Drift was not evaluated: {drift.reason}."
    between = _slope("block means moved by {} per block", drift.between_blocks, "trend over blocks")
    within = _slope(
        "figures moved by {} from cell to cell within blocks", drift.within_blocks, "trend within blocks"
    )
    return f"{between[0].upper()}{between[1:]}; {within}."


def _slope(text: str, slope: Slope | NotEvaluated, name: str) -> str:
    if isinstance(slope, NotEvaluated):
        return f"{name}: not evaluated, {slope.reason}"
    p = "p < 0.001" if slope.p < 0.001 else f"p = {slope.p:.2g}"
    state = "alarm" if slope.alarm else "no alarm"
    return f"{text.format(f'{slope.slope * 100:+.2f}%')} ({p}, {state})"
