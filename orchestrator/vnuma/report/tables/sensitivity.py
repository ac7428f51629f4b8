"""The verdicts by other methods, for the page and the terminal; not used for the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vnuma.analysis.compare import Interval
from vnuma.analysis.result import Analysis
from vnuma.analysis.sensitivity import sensitivity
from vnuma.analysis.wording import limits, signed
from vnuma.domain.vm.plain_text import filled
from vnuma.domain.workloads.replicate import plural


@dataclass(frozen=True)
class SensitivityRow:
    """One arm as text."""

    names: tuple[str, ...]
    """The columns' headings, the arm's first."""
    arm: str
    rank: str
    left_out: str
    sign_flip: str
    dissent: str


def sensitivity_rows(analysis: Analysis) -> Iterator[SensitivityRow]:
    """The arms that have at least one pair."""
    names = (
        "Arm",
        "Hodges-Lehmann",
        f"Estimate, each {analysis.replicate} left out once",
        "Sign-flip p",
        "Disagrees",
    )
    few = f"fewer than 6 {plural(analysis.replicate)}"
    for arm in analysis.arms:
        if arm.contrast.boots:
            other, rank = sensitivity(arm), arm.contrast.rank
            out = other.left_out
            yield SensitivityRow(
                names,
                arm.arm,
                f"{signed(rank.ratio, 2)} ({limits(Interval(rank.low, rank.high), 2)})" if rank else few,
                limits(Interval(out.low, out.high), 2) + "%" if out else f"one {analysis.replicate} only",
                few if other.sign_flip_p is None else f"{other.sign_flip_p:.3g}",
                "; ".join(other.dissent) or "no",
            )


def sensitivity_text(analysis: Analysis, split: str, where: str, width: int) -> str:
    """A line per arm, under a title saying that none is used for the verdict, with `split` last; empty
    without pairs.
    """
    rows = list(sensitivity_rows(analysis))
    if not rows:
        return ""
    title = f"Sensitivity{where}: other methods, arm by arm and not corrected; not used for the verdict"
    said = [
        f"{row.arm}: Hodges-Lehmann {row.rank}, each {analysis.replicate} left out once {row.left_out}, "
        f"sign-flip p {row.sign_flip}" + (f"; disagrees: {row.dissent}" if row.dissent != "no" else "")
        for row in rows
    ]
    return "\n".join(filled(text, width - 1, then="  ") for text in (title, *said, split)) + "\n"
