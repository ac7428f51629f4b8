"""The answer of `vnuma power`, from simulated studies, as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vnuma.analysis import planning
from vnuma.analysis.planning import (
    Ending,
    Leaving,
    Needed,
    Outlook,
    Plans,
    Spread,
    allocate,
    effects_in_turn,
    leaving,
    wanted_width,
)
from vnuma.analysis.records import AnalysisDesign, design_of
from vnuma.analysis.wording import percent_up, plans_sentence
from vnuma.cli.design_lines import assumed_plans, largest_size
from vnuma.cli.options import label_of, opened_run, read_study
from vnuma.cli.screen import working
from vnuma.domain.study.order import assumed_cell_seconds, columns, effort_words
from vnuma.domain.study.study import Study
from vnuma.engine.preflight.pilot import Pilot, read_pilot
from vnuma.errors import InputError, UsageError
from vnuma.words.plain_text import counted, duration, listed
from vnuma.words.plain_text import plural as plural_of
from vnuma.words.provenance import banner
from vnuma.words.validation import percent_of, percent_text


def power_answer(study: Path, effect: str, pilot: str | None, store: str | None) -> PowerAnswer:
    """The answer about a study file. Raises UsageError for the effect, InputError for study or pilot."""
    try:
        wanted = percent_of(effect)
    except ValueError as error:
        raise UsageError(f"--effect: {error}.", fix="For example: vnuma power STUDY --effect 1%") from error
    parsed, _ = read_study(study)
    try:
        design = design_of(parsed)
        planning.layout_of(design, design.blocks)
    except ValueError as error:
        raise InputError(f"{study}: {error}.", fix="docs/reference/study.md describes `design`.") from error
    known = _pilot(pilot, parsed, store) if pilot else None
    iterations, sizes = parsed.design.iterations, len(parsed.workload.sizes)
    spreads = [*planning.assumed_spreads(iterations, sizes), *([known.spread] if known else [])]
    chosen = known.spread if known else planning.typical_spread(iterations, sizes)
    seconds = known.cell_seconds if known else assumed_cell_seconds(parsed)
    return PowerAnswer(
        parsed,
        wanted,
        known,
        seconds * len(design.columns),
        _needed(design, spreads, wanted),
        planning.outlook(design, design.blocks, chosen, wanted),
        planning.ending(design, parsed.design.precision, chosen) if parsed.design.precision else None,
        chosen,
        _plans(parsed, design, known),
        _leaving(design, spreads, known),
    )


def _leaving(design: AnalysisDesign, spreads: Sequence[Spread], pilot: Pilot | None) -> list[Leaving]:
    """For arms that leave at each spread, the measured one of a pilot too; with a pilot for any random order.

    Its upper bound asks for more blocks than are needed in most cases; a rule that looks stops at what is.
    """
    if design.stop == "decided":
        measured = [Spread(f"pilot {pilot.run} as measured", pilot.measured)] if pilot else []
        return [leaving(design, spread) for spread in (*spreads, *measured)]
    if pilot is None or design.order != "randomised":
        return []
    return [leaving(design, pilot.spread), leaving(design, Spread("as measured", pilot.measured))]


def _needed(design: AnalysisDesign, spreads: Sequence[Spread], effect: float) -> list[Needed]:
    """The blocks at each spread. Shows progress, since simulating takes seconds or, if busy, a minute."""
    found = []
    with working() as tell:
        for number, spread in enumerate(spreads, start=1):
            tell(f"Simulating studies, spread {number} of {len(spreads)}: {spread.label}")
            found.append(planning.needed(design, spread, effect))
    return found


def _plans(study: Study, design: AnalysisDesign, pilot: Pilot | None) -> Plans | None:
    """Plans from a pilot's components and costs, or from assumptions; None if the pilot lacks them."""
    if pilot is None:
        return assumed_plans(study)
    if pilot.spreads is None or pilot.costs is None:
        return None
    return allocate(design, wanted_width(design, study.design.precision), pilot.spreads, pilot.costs)


def _pilot(name: str, study: Study, url: str | None) -> Pilot:
    found = read_pilot(*opened_run(name, url), study)
    return replace(found, run=label_of(found.run, name))


@dataclass(frozen=True)
class PowerAnswer:
    """The answer, as text and as JSON."""

    study: Study
    effect: float
    pilot: Pilot | None
    block_seconds: float
    needed: list[Needed]
    outlook: Outlook | None
    ending: Ending | None
    chosen: Spread
    plans: Plans | None
    leaving: list[Leaving]

    def text(self, path: Path) -> str:
        lines = [banner(self.pilot.simulated)] if self.pilot and self.pilot.simulated else []
        lines += [self._heading(), *self._table(), ""]
        if self.study.design.stop != "decided":
            ends = [*self._outlook(), *self._ending_by_precision(), *self._ending_by_time()]
            lines += [*ends, *([""] if ends and self.leaving else [])]
        if self.leaving:
            lines += self._leaving()
        if not self.pilot and (largest := largest_size(self.study)):
            lines += ["", *largest]
        if self.plans:
            lines += ["", plans_sentence(self.plans, self.study.replicate)]
        if self.pilot:
            lines += ["", *self._pilot(self.pilot)]
        else:
            lines += [
                "",
                f"Spreads are assumed, and 0.5% between the iterations of a {self.study.replicate}. After 3 "
                f"or more blocks of a run: vnuma power {path} --pilot RUN",
            ]
        return "\n".join(lines)

    @property
    def _each(self) -> str:
        """The replicate, in the plural."""
        return plural_of(self.study.replicate)

    @property
    def _compared(self) -> int:
        """The arms that are compared with the reference."""
        return len(self.study.arms) - 1 + bool(self.study.control_arm)

    def _heading(self) -> str:
        control = self.study.control_arm
        compared = counted(self._compared, "comparison")
        known = f" with {control}, the positive control" if control else ""
        twice = f", {self.study.reference} twice in each block (A/A)" if self.study.design.a_a else ""
        from_where = "in the pilot" if self.pilot else "assumed"
        one = f"{duration(self.block_seconds / self._columns)} a {self.study.replicate} ({from_where})"
        night = "nights as allowed_hours" if self.study.allowed_hours else "nights of 10 h"
        said = f"{compared}{known}{twice}; {one}; {night}; the rule simulated, 4,000 studies, +-0.8 points"
        title = f"A fixed number of blocks (design.blocks), if {self._each} vary by"
        return f"{said}\n\n{title}"

    def _table(self) -> list[str]:
        found = f"{percent_text(self.effect)} is found"
        return [
            f"  {item.spread.label} (a cell {item.spread.cell_sd * 100:.2f}%): "
            + (
                f"{found}, and equivalence shown, by {self._effort(item.to_detect)}"
                if item.to_detect == item.for_equivalence
                else f"{found} by {self._effort(item.to_detect)}, equivalence shown by "
                f"{self._effort(item.for_equivalence)}"
            )
            for item in self.needed
        ]

    def _effort(self, blocks: int | None) -> str:
        """As in "9 blocks (54 boots, 23 h 20 min, 3 nights)"."""
        if blocks is None:
            return "over 200 blocks"
        boots = effort_words(self.study, blocks * self._columns, blocks * self.block_seconds)
        return f"{counted(blocks, 'block')} ({boots})"

    def _outlook(self) -> list[str]:
        blocks = self.study.design.most_blocks
        run = counted(blocks, "block")
        if self.study.design.order == "fixed":
            return [f"{run} in fixed order: no verdict, whatever their number. The table is of random order."]
        if self.outlook is None:
            return [f"{run}: a verdict needs 6 blocks."]
        seen, margin = self.outlook, percent_text(self.study.design.equivalence)
        small = seen.detectable < self.study.design.equivalence
        may_end = self.study.design.precision or self._blocks_in_time < blocks
        run = f"If all {run} run" if may_end else f"With {run}"
        spread = f"as in {self.chosen.label}" if self.pilot else f"by {self.chosen.label}"
        takes = duration(blocks * self.block_seconds)
        in_all = f" in one arm, in all {self._compared} arms in {seen.power_all * 100:.0f}%"
        return [
            f"{run}, {takes}, {'and' if may_end else 'if'} {self._each} vary {spread}:",
            f"  effects of {percent_up(seen.detectable)} or more are found in 80% of studies or more;",
            *([f"  those well within {margin} are called equivalent, and detectable;"] if small else []),
            f"  smaller ones are likely undecided, or equivalent where well within {margin};",
            f"  {percent_text(self.effect)} is found in {seen.power * 100:.0f}% of studies"
            f"{in_all if self._compared > 1 else ''};",
            f"  no effect is called equivalent within {margin} in {seen.equivalent * 100:.0f}% of studies.",
        ]

    def _leaving(self) -> list[str]:
        """Boots until every arm has left, at each spread."""
        blocks, one_boot = self.study.design.most_blocks, self.block_seconds / self._columns
        asked = self.study.design.stop == "decided"
        head = "Arms leave when they are decided" if asked else "With design.stop: decided arms leave"
        band = percent_text(self.study.design.equivalence)
        said = [
            f"{head}, at most {self._effort(blocks)}. Where they are slower by {self._slower()} the "
            f"equivalence band of {band} (400 studies, +-4 points), and {self._each} vary by"
        ]
        for one in self.leaving:
            likely = effort_words(self.study, round(one.likely_boots), one.likely_boots * one_boot)
            most = effort_words(self.study, one.most_boots, one.most_boots * one_boot)
            enough = f"max_blocks {one.advised_blocks or 'over 48'} likely decides all"
            said.append(
                f"  {one.spread.label}: likely {likely}; in 9 of 10 studies at most {most}; all arms are "
                f"decided in {one.decided * 100:.0f}%; {enough}; "
                f"{one.fewest_boots:.0f} boots if all are slower by three times the band"
            )
        if any(one.advised_blocks is None for one in self.leaving):
            said.append(
                f"Where over 48 blocks are needed, {band} cannot be decided on such a host: "
                "widen design.equivalence."
            )
        return [*said, *(self._ending_by_time() if asked else [])]

    def _slower(self) -> str:
        """The effects that are simulated, as in "0, half, once and three times"."""
        words = {0.0: "0", 0.5: "half", 1.0: "once", 3.0: "three times"}
        return listed([words[bands] for bands in sorted({*effects_in_turn(self._compared)})])

    @property
    def _columns(self) -> int:
        """Boots of a block in which every arm runs."""
        return len(columns(self.study))

    @property
    def _blocks_in_time(self) -> float:
        """The blocks that `max_hours` likely permits; the first one always runs."""
        hours = self.study.design.max_hours
        return math.inf if hours is None else max(1, math.floor(hours * 3600 / self.block_seconds))

    def _ending_by_time(self) -> list[str]:
        blocks, design = self._blocks_in_time, self.study.design
        if blocks >= design.most_blocks:
            return []
        leaves = design.stop == "decided"
        whole = " of all arms, or more where some leave" if leaves else ""
        word = "equivalent" if leaves else "a verdict"
        verdict = f"; {word} needs 6" if blocks < 6 else ""
        return [
            f"max_hours {design.max_hours:g} likely ends it after {counted(int(blocks), 'block')}{whole}"
            f"{verdict}"
        ]

    def _ending_by_precision(self) -> list[str]:
        if self.ending is None:
            return []
        wanted = percent_text(self.study.design.precision or 0.0)
        return [
            f"precision {wanted} likely ends it after {self.ending.mean_blocks:.1f} blocks on average, "
            f"{duration(self.ending.mean_blocks * self.block_seconds)};",
            f"  9 of 10 studies end by block {self.ending.most_blocks}, "
            f"{self.ending.capped * 100:.0f}% run to the last block",
        ]

    def _pilot(self, pilot: Pilot) -> list[str]:
        lines = [
            f"Pilot    {pilot.run}, {counted(pilot.blocks, 'block')}: a cell's SD was "
            f"{pilot.measured * 100:.2f}% ({pilot.df} degrees of freedom);",
            f"         planned with its upper bound (95%), {pilot.upper * 100:.2f}%: likely, not certain.",
            "         So few cells do not show rare slow boots or outliers; if you expect any, plan more.",
        ]
        if pilot.differs:
            names = ", ".join(pilot.differs)
            lines.append(f"         It differs from the study in {names}: its spread may not apply.")
        return lines

    def document(self) -> dict[str, Any]:
        return {
            "schema": "vnuma/power/1",
            "simulated": bool(self.pilot and self.pilot.simulated),
            "study": self.study.name,
            "effect": self.effect,
            "equivalence": self.study.design.equivalence,
            "block_seconds": self.block_seconds,
            "needed": [
                {
                    "spread": item.spread.label,
                    "cell_sd": item.spread.cell_sd,
                    "blocks_to_detect": item.to_detect,
                    "blocks_for_equivalence": item.for_equivalence,
                    "reason": None if item.to_detect else "more than 200 blocks",
                }
                for item in self.needed
            ],
            "planned": asdict(self.outlook) if self.outlook else None,
            "precision": asdict(self.ending) if self.ending else None,
            "decided": [asdict(one) for one in self.leaving],
            "allocation": asdict(self.plans) if self.plans else None,
            "pilot": asdict(self.pilot) if self.pilot else None,
        }
