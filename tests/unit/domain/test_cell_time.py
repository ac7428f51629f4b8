"""How long VMs take together."""

from __future__ import annotations

from vnuma.domain.study.order import seconds_in_all


def test_vms_of_one_host_add_up_and_hosts_work_side_by_side() -> None:
    """The busiest host decides, unless neighbours are measured together."""
    vms = [("esx01", 600.0), ("esx01", 1200.0), ("esx02", 1500.0)]

    assert seconds_in_all(vms, take_turns=True) == 1800
    assert seconds_in_all(vms, take_turns=False) == 1500
    assert seconds_in_all([], take_turns=True) == 0
