"""A workload whose figure is not a time: calls a second, where more is better."""

from __future__ import annotations

from typing import ClassVar, Literal

from tests.report.build import STUDY
from vnuma.domain.workloads import kinds
from vnuma.domain.workloads.metric import Metric
from vnuma.domain.workloads.settings import WorkloadSettings


class Calls(WorkloadSettings):
    """A workload as a package might bring it."""

    size_word: ClassVar[str] = "connections"
    figures: ClassVar[tuple[Metric, ...]] = (Metric("spins", "per call", "lower", "figures"),)

    name: Literal["calls"] = "calls"
    sizes: tuple[int, ...] = (500, 1000)
    forms: tuple[str, ...] = ("seek",)

    def metric(self, form: str) -> Metric:
        """Throughput in every form."""
        del form
        return Metric("throughput", "calls/s", "higher")


def calls_text(name: str = "calls", blocks: int = 6) -> str:
    """A study of that workload, with published figures and ratios."""
    text = STUDY.format(
        name=name, vms="sql16", blocks=blocks, sizes="500, 1000", forms="seek", order="randomised", a_a="true"
    )
    head, _, _ = text.partition("published:")
    published = """\
published:
  title: Somebody 2020
  figures: {seek: {500: {1x16: 4900, 16x1: 5000}, 1000: {1x16: 40000, 16x1: 10000}}}
  ratios: {seek: {1x16: 1.0, 4x4: 1.017, 8x2: 0.5}}
  size_ratios: {seek: {500: {1x16: 2.0, 2x8: 2.004}}}
  lower_bounds: {seek: {1000: [1x16]}}
"""
    return head.replace("workload: {", "workload: {name: calls, ") + published


def dict_of_kinds() -> dict[str, object]:
    """The product's table of workloads, to which the test adds one."""
    known = kinds.shipped()
    assert isinstance(known, dict)
    return known
