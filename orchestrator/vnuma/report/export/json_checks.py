"""Checks of an analysis as they stand in the JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from vnuma.analysis.checks import AaCheck, ControlCheck
from vnuma.analysis.compare import Interval
from vnuma.analysis.drift import Drift, Slope
from vnuma.analysis.growth import Growth
from vnuma.analysis.outliers import Bimodality
from vnuma.analysis.records import NotEvaluated
from vnuma.analysis.result import Analysis


def a_a(check: AaCheck | NotEvaluated) -> dict[str, Any]:
    """The A/A check, or why there is none."""
    if isinstance(check, NotEvaluated):
        return {"state": None, "reason": check.reason}
    return {
        "state": check.state,
        "ratio": check.ratio,
        "interval_95": limits(check.interval),
        "p": check.p,
        "noise_floor": check.noise_floor,
        "reason": None,
    }


def control(check: ControlCheck | NotEvaluated) -> dict[str, Any]:
    """The positive control, or why there is none."""
    if isinstance(check, NotEvaluated):
        return {"passed": None, "reason": check.reason}
    return {"arm": check.arm, "expected": check.expected, "passed": check.passed, "reason": None}


def evidence(analysis: Analysis) -> dict[str, Any]:
    """What verdicts and warnings rest on: gate, growth, odd cells and two groups."""
    growth = analysis.growth if isinstance(analysis.growth, tuple) else ()
    return {
        "gate": [asdict(flag) for flag in analysis.gate],
        "growth": [_growth(item) for item in growth],
        "odd_cells": [asdict(cell) for cell in analysis.odd_cells],
        "two_groups": _groups(analysis.bimodality),
    }


def _growth(item: Growth) -> dict[str, Any]:
    return {
        "arm": item.arm,
        "points": item.points,
        "interval_95": None if item.low is None or item.high is None else [item.low, item.high],
        "adjusted_p": item.adjusted_p,
        "trend": item.trend,
        "withheld": None if item.withheld is None else str(item.withheld),
    }


def _groups(found: Bimodality | NotEvaluated) -> dict[str, Any]:
    if isinstance(found, NotEvaluated):
        return {"share": None, "critical": None, "flagged": None, "reason": found.reason}
    return {**asdict(found), "reason": None}


def drift(found: Drift | NotEvaluated) -> dict[str, Any]:
    """Both trends, or why they were not evaluated."""
    if isinstance(found, NotEvaluated):
        return {"between_blocks": None, "within_blocks": None, "reason": found.reason}
    return {"between_blocks": _slope(found.between_blocks), "within_blocks": _slope(found.within_blocks)}


def _slope(slope: Slope | NotEvaluated) -> dict[str, Any]:
    if isinstance(slope, NotEvaluated):
        return {"slope": None, "reason": slope.reason}
    return {"slope": slope.slope, "p": slope.p, "alarm": slope.alarm, "reason": None}


def limits(interval: Interval | None) -> list[float] | None:
    """Lower and upper limit of a ratio."""
    return None if interval is None else [interval.low, interval.high]


def or_null(value: float | NotEvaluated) -> dict[str, Any]:
    """A value, or null beside the reason."""
    if isinstance(value, NotEvaluated):
        return {"value": None, "reason": value.reason}
    return {"value": value, "reason": None}
