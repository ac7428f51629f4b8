"""The design of a study: how many boots, in which order, when it ends, and what is run in each boot."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vnuma.words.percent import Percent
from vnuma.words.validation import Strict

CONTROL_SUFFIX = " (remote)"

Covariate = Literal["none", "place"]
Order = Literal["randomised", "latin_square", "williams", "fixed"]


class Design(Strict):
    """How many boots, in which order, and what is run in each."""

    blocks: int = Field(default=8, ge=1, le=200, description="Passes over all arms; a verdict needs 6.")
    stop: Literal["blocks", "decided"] = Field(
        default="blocks",
        description=(
            "`decided` instead of `blocks`: an arm leaves after the block in which its verdict is certain "
            "(looks from block 4, equivalent from block 6), and the study ends when every arm has left. "
            "Intervals hold at all looks together, so a run that was stopped keeps its verdicts. For "
            "`randomised` order."
        ),
    )
    seed: int = Field(default=1, ge=0, description="Seed of the order; the same seed gives the same order.")
    order: Order = Field(
        default="randomised",
        description=(
            "`randomised` shuffles each block. `latin_square` puts every arm equally often in every "
            "place of a block. `williams` also makes every arm follow every other equally often. "
            "`fixed` runs the arms as written: drift then looks like an effect, so there is no verdict."
        ),
    )
    covariate: Covariate = Field(
        default="none",
        description=(
            "`place` removes a steady drift within blocks from the comparison: the place in the block "
            "is a linear covariate. Declared beforehand, never chosen after looking. For `randomised` "
            "order (squares account for the place by themselves)."
        ),
    )
    a_a: bool = Field(
        default=True,
        description="Run the reference arm twice in each block, to measure the instrument's own error.",
    )
    neighbours: Literal["take_turns", "together"] = Field(
        default="take_turns",
        description=(
            "The study's VMs on one ESXi host: `take_turns` measures one at a time; `together` "
            "measures them at once, so that they load each other. VMs on different hosts always run in "
            "parallel."
        ),
    )
    control: Literal["none", "remote"] = Field(
        default="none",
        description=(
            "`remote` adds a positive control to each block: the reference arm, its tables made on one "
            "vNUMA node and read from another, by SQL Server's process affinity. It needs two vNUMA "
            "nodes on two physical nodes. If the control is not detected, nothing is called equivalent."
        ),
    )
    sentinel: bool = Field(
        default=True,
        description="Also run a short reference query on each boot: an alarm if the host itself drifts.",
    )
    warmups: int = Field(default=1, ge=0, le=20, description="Untimed first iterations; stored separately.")
    iterations: int = Field(default=3, ge=1, le=50, description="Timed iterations per boot, size and form.")
    equivalence: Percent = Field(
        default=0.01,
        json_schema_extra={"default": "1%"},  # as in a file
        description=(
            "Arms within this distance of the reference, on either side, are equivalent. Declared beforehand."
        ),
    )
    precision: Percent | None = Field(
        default=None,
        description=(
            "Instead of `blocks`: stop after the block in which the half-width of every 95% interval "
            "is at most this (checked from block 6, with at most 3 columns from block 8). Never based "
            "on significance."
        ),
    )
    max_blocks: int = Field(
        default=24,
        ge=1,
        le=200,
        description="With `stop: decided` or `precision`: the largest number of blocks.",
    )
    max_hours: float | None = Field(
        default=None,
        gt=0,
        description="No block starts that would probably end after this many hours of work on a VM.",
    )

    @property
    def may_end_early(self) -> bool:
        """Whether a rule about its intervals ends it, so that fewer blocks than planned will probably run."""
        return self.stop == "decided" or self.precision is not None

    @property
    def most_blocks(self) -> int:
        """Blocks that are planned."""
        return self.max_blocks if self.may_end_early else self.blocks
