"""This study next to other people's published figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vnuma.analysis.result import Analysis, ArmResult, TableRow
from vnuma.analysis.verdict import Verdict
from vnuma.analysis.wording import amount, decimals, limits, signed
from vnuma.domain.study.study import Study
from vnuma.domain.workloads.metric import Replicate, in_table, none_valid
from vnuma.report.model.model import LoadedRun
from vnuma.words.plain_text import aligned, filled

WHERE_UNKNOWN = "not comparable"
ALLOWED = "a bound that ours keeps"


_KEPT = "kept"


def comparison_caution(replicate: Replicate) -> str:
    """The caution that the comparison is not a test."""
    return (
        f"A published figure is often one run. One {replicate}'s range holds the median of one more of ours "
        "in 95% of cases: outside is not evidence of a difference, inside is not evidence of agreement."
    )


Bound = Literal["at most", "at least"]


@dataclass(frozen=True)
class PublishedRow:
    """One arm at one size, or over all sizes (`size` None) if only such a ratio was published.

    `theirs` and `ours` are in `unit`; ratios are to our reference, whose own are None. None: unknown.
    `at_least`: their figure is a lower bound; `bound` is the resulting bound of their ratio.
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
    at_least: bool = False
    bound: Bound | None = None

    @property
    def where(self) -> str:
        """Where their ratio lies relative to one boot's prediction interval; empty for the reference."""
        if self.verdict is None:
            return ""
        interval, ours = self.verdict.prediction, f"one {self.replicate}'s range"
        if self.their_ratio is None or interval is None:
            return WHERE_UNKNOWN
        if self.their_ratio < interval.low:
            return ALLOWED if self.bound == "at least" else f"below {ours}"
        if self.their_ratio > interval.high:
            return ALLOWED if self.bound == "at most" else f"above {ours}"
        return ALLOWED if self.bound else f"inside {ours}"

    @property
    def their_figure(self) -> str:
        """Without its unit, as all texts here."""
        if self.theirs is None:
            return "ratio only"
        figure = amount(self.theirs, self.unit)
        return f"≥ {figure}" if self.at_least else figure

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
        if self.their_ratio is None:
            return "no reference"
        sign = {"at most": "≤ ", "at least": "≥ ", None: ""}[self.bound]
        return f"{sign}{signed(self.their_ratio)}"

    @property
    def our_difference(self) -> str:
        """From our reference, with the range of one more boot."""
        if self.verdict is None:
            return "reference"
        if self.verdict.ratio is None or self.verdict.prediction is None:
            known = self.ours is not None or self.verdict.ratio is not None
            return "no interval" if known else none_valid(self.replicate)
        places = decimals([self.verdict.prediction], self.verdict.margin)
        return f"{signed(self.verdict.ratio, places)} ({limits(self.verdict.prediction, places)})"


def published_figures(analysis: Analysis, study: Study) -> Mapping[int, Mapping[str, float]]:
    """Other people's figures of the analysis' form, in its unit: size -> arm -> figure."""
    if study.published is None:
        return {}
    in_ms = analysis.primary and analysis.measure.key == "elapsed_ms"
    own = study.published.figures.get(analysis.form, {})
    return {**(study.published.elapsed_ms if in_ms else {}), **own}


def published_exact(analysis: Analysis, study: Study) -> Mapping[int, Mapping[str, float]]:
    """Those that are not bounds: a chart draws a point for each."""
    return {
        size: {arm: x for arm, x in figures.items() if arm not in _bounds(analysis, study, size)}
        for size, figures in published_figures(analysis, study).items()
    }


def to_reference(ratios: Mapping[str, float], reference: str) -> Mapping[str, float]:
    """Published ratios relative to our reference, whichever arm theirs was: that arm's is 1."""
    base = ratios.get(reference, 1.0)
    return {arm: ratio / base for arm, ratio in ratios.items()}


def published_rows(analysis: Analysis, study: Study) -> list[PublishedRow]:
    """Every size and arm of the analysis' form with a published figure, ratios last."""
    published = study.published
    if published is None:
        return []
    figures = published_figures(analysis, study)
    at_sizes = published.size_ratios.get(analysis.form, {})
    return [
        *(
            row
            for table, sizes in zip(analysis.table, analysis.sizes, strict=True)
            for row in (
                *_at_size(analysis, study, table, sizes.arms, figures.get(table.size, {})),
                *_ratios(analysis, study, table, sizes.arms, at_sizes.get(table.size, {})),
            )
        ),
        *_ratios(analysis, study, None, analysis.arms, published.ratios.get(analysis.form, {})),
    ]


def _bounds(analysis: Analysis, study: Study, size: int) -> Sequence[str]:
    """The arms whose published figure is a lower bound."""
    return study.published.lower_bounds.get(analysis.form, {}).get(size, ()) if study.published else ()


def _at_size(
    analysis: Analysis,
    study: Study,
    table: TableRow,
    arms: Sequence[ArmResult],
    theirs: Mapping[str, float],
) -> Iterator[PublishedRow]:
    verdicts = {arm.arm: arm.verdict for arm in arms}
    bounds, reference = _bounds(analysis, study, table.size), study.reference
    base = theirs.get(reference)
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
                # A ratio of two lower bounds bounds nothing.
                their_ratio=theirs[cell.arm] / base
                if base and not (cell.arm in bounds and reference in bounds)
                else None,
                verdict=verdicts.get(cell.arm),
                at_least=cell.arm in bounds,
                bound="at least" if cell.arm in bounds else "at most" if reference in bounds else None,
            )


def _ratios(
    analysis: Analysis,
    study: Study,
    table: TableRow | None,
    arms: Sequence[ArmResult],
    ratios: Mapping[str, float],
) -> Iterator[PublishedRow]:
    """Where only ratios were published: at the table's size, or over all sizes."""
    theirs = to_reference(ratios, study.reference)
    ours = {cell.arm: cell.median for cell in table.cells} if table else {}
    for arm in arms:
        if arm.arm in theirs:
            yield PublishedRow(
                form=analysis.form,
                size=table.size if table else None,
                arm=arm.arm,
                unit=analysis.measure.unit,
                replicate=analysis.replicate,
                theirs=None,
                ours=ours.get(arm.arm),
                their_ratio=theirs[arm.arm],
                verdict=arm.verdict,
            )


def published_text(loaded: LoadedRun, analysis: Analysis, width: int) -> str:
    """One line per figure, in columns if they fit; empty without any."""
    rows = published_rows(analysis, loaded.study) if analysis.points else []
    published = loaded.study.published
    if not rows or published is None:
        return ""
    title = f"Compared with {published.title}: form {analysis.form}, {analysis.measure.unit}"
    size_word = loaded.result.design.size_word
    lines = [(size_word, "arm", "theirs", "ours", "%", "ours, %", "theirs is"), *map(_cells, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    if sum(widths) + 2 * len(widths) > width:
        body = [_line(line, width) for line in lines[1:]]
    else:
        body = aligned(lines, right=range(2, len(widths) - 1))
    return "\n".join([filled(title, width - 1, then="  "), *body])


def _cells(row: PublishedRow) -> tuple[str, ...]:
    """The cells by heading; inside, below and above refer to the range of one more boot of ours."""
    size = "all sizes" if row.size is None else in_table(row.size)
    theirs = "" if row.theirs is None else row.their_figure
    figures = (theirs, "" if row.size is None else row.our_figure)
    if row.verdict is None:
        return (size, row.arm, *figures, "ref", "ref", "")
    differences = [text.replace("%", "") for text in (row.their_difference, row.our_difference)]
    where = _KEPT if row.where == ALLOWED else row.where.removesuffix(f" one {row.replicate}'s range")
    return (size, row.arm, *figures, *differences, where)


def _line(cells: Sequence[str], width: int) -> str:
    """The narrow form: theirs, ours; difference, ours; the position of theirs."""
    size, arm, theirs, ours, difference, own, where = cells
    text = f"  {size} {arm}: {f'{theirs}, ours {ours}; ' if theirs else ''}"
    text += f"%: {difference}, ours {own}; {where}" if where else "reference"
    return filled(text, width - 1, then="    ")
