"""How long a cell takes before one was measured, and VMs together."""

from __future__ import annotations

import pytest

from tests.report.build import study_text
from vnuma.domain.study.order import assumed_cell_seconds, assumed_iteration_seconds, seconds_in_all
from vnuma.domain.study.study_file import parse_study


def test_vms_of_one_host_add_up_and_hosts_work_side_by_side() -> None:
    """The busiest host decides, unless neighbours are measured together."""
    vms = [("esx01", 600.0), ("esx01", 1200.0), ("esx02", 1500.0)]

    assert seconds_in_all(vms, take_turns=True) == 1800
    assert seconds_in_all(vms, take_turns=False) == 1500
    assert seconds_in_all([], take_turns=True) == 0


def test_a_cell_is_a_boot_and_its_executions_warm_ups_too() -> None:
    """Each over all sizes and forms."""

    def seconds(warmups: int, iterations: int) -> float:
        text = study_text().replace("design: {", f"design: {{warmups: {warmups}, iterations: {iterations}, ")
        return assumed_cell_seconds(parse_study(text, "study.yml"))

    each = assumed_iteration_seconds(parse_study(study_text(), "study.yml"))
    assert each > 0
    assert seconds(1, 3) - seconds(0, 1) == pytest.approx(3 * each)
