"""This study beside somebody else's published figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vnuma.analysis.result import Analysis, ArmResult
from vnuma.analysis.table import TableRow
from vnuma.analysis.verdict import Verdict
from vnuma.analysis.wording import amount, decimals, limits, percent, signed
from vnuma.domain.replicate import Replicate, none_valid
from vnuma.domain.study import Study

WHERE_UNKNOWN = "not comparable"


@dataclass(frozen=True)
class PublishedRow:
    """One arm at one size, or over all sizes (`size` None) where only a ratio was published.

    `theirs` and `ours` are in `unit`; ratios are to the reference, whose own are None. None: not known.
    """

    form: str
    size: int | None
    arm: str
    unit: str
    replicate: Replicate
    theirs: float | None
    ours: float | None
    their_ratio: float | None
    verdict: Verdict | None
    """Ours; None for the reference."""

    @property
    def where(self) -> str:
        """Where their ratio lies, by our interval; empty for the reference."""
        if self.verdict is None:
            return ""
        interval = self.verdict.interval
        if self.their_ratio is None or interval is None:
            return WHERE_UNKNOWN
        if self.their_ratio < interval.low:
            return "below our interval"
        return "above our interval" if self.their_ratio > interval.high else "inside our interval"

    @property
    def their_figure(self) -> str:
        """Without its unit, as all texts here."""
        return "ratio only" if self.theirs is None else amount(self.theirs, self.unit)

    @property
    def our_figure(self) -> str:
        """The median of our boots."""
        if self.size is None:
            return "all sizes"
        return none_valid(self.replicate) if self.ours is None else amount(self.ours, self.unit)

    @property
    def their_difference(self) -> str:
        """From their reference, in percent."""
        if self.verdict is None:
            return "reference"
        return "no reference" if self.their_ratio is None else f"{percent(self.their_ratio):+.1f}%"

    @property
    def our_difference(self) -> str:
        """From our reference, with its interval."""
        if self.verdict is None:
            return "reference"
        if self.verdict.ratio is None or self.verdict.interval is None:
            known = self.ours is not None or self.verdict.ratio is not None
            return "no interval" if known else none_valid(self.replicate)
        places = decimals([self.verdict.interval], self.verdict.margin)
        return f"{signed(self.verdict.ratio, places)} ({limits(self.verdict.interval, places)})"


def published_figures(analysis: Analysis, study: Study) -> Mapping[int, Mapping[str, float]]:
    """Somebody else's figures of the analysis' form, in its unit: size -> arm -> figure."""
    if study.published is None:
        return {}
    in_ms = analysis.primary and analysis.measure.key == "elapsed_ms"
    own = study.published.figures.get(analysis.form, {})
    return {**(study.published.elapsed_ms if in_ms else {}), **own}


def published_rows(analysis: Analysis, study: Study) -> list[PublishedRow]:
    """Every size and arm of the analysis' form for which there is a published figure, ratios last."""
    figures = published_figures(analysis, study)
    ratios = study.published.ratios.get(analysis.form, {}) if study.published else {}
    return [
        *(
            row
            for table, sizes in zip(analysis.table, analysis.sizes, strict=True)
            for row in _at_size(analysis, table, sizes.arms, figures.get(table.size, {}))
        ),
        *(
            PublishedRow(
                form=analysis.form,
                size=None,
                arm=arm.arm,
                unit=analysis.measure.unit,
                replicate=analysis.replicate,
                theirs=None,
                ours=None,
                their_ratio=ratios[arm.arm],
                verdict=arm.verdict,
            )
            for arm in analysis.arms
            if arm.arm in ratios
        ),
    ]


def _at_size(
    analysis: Analysis, table: TableRow, arms: tuple[ArmResult, ...], theirs: Mapping[str, float]
) -> Iterator[PublishedRow]:
    verdicts = {arm.arm: arm.verdict for arm in arms}
    base = theirs.get(table.cells[0].arm)
    for cell in table.cells:
        if cell.arm in theirs:
            yield PublishedRow(
                form=analysis.form,
                size=table.size,
                arm=cell.arm,
                unit=analysis.measure.unit,
                replicate=analysis.replicate,
                theirs=theirs[cell.arm],
                ours=cell.median,
                their_ratio=theirs[cell.arm] / base if base else None,
                verdict=verdicts.get(cell.arm),
            )
