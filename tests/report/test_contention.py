"""Whether the host had time for the VM: from vSphere's counters, or a reason."""

from __future__ import annotations

import pytest

from tests.report.build import Story, build, study_text
from vnuma.report.model.model import load_run
from vnuma.report.model.trust import Contention, contention
from vnuma.store import attempts, cells, facts, leases
from vnuma.store.open import Store
from vnuma.store.rows import Claim, RunState


def counted(store: Store, *boots: object) -> Contention | str:
    """What a run says whose next boots counted that."""
    story = Story(
        text=study_text(blocks=1, sizes="500", forms="client"), stop_after=0, state=RunState.RUNNING
    )
    run = build(store, story)
    with store.write() as conn:
        (vm,) = leases.vms_of_run(conn, run.id)
        lease = leases.get_lease(conn, vm.vm_key)
        assert lease
        for boot in boots:
            claim = cells.claim_next(conn, vm.id, lease.token, 3, exclusive_host=False)
            assert isinstance(claim, Claim)
            facts.add_attempt_facts(conn, claim.id, lease.token, {"counters": {"vm": boot}})
            cells.interrupt_attempts(conn, vm.id, lease.token)
        assert attempts.lines_of_run(conn, run.id) or not boots
    return contention(load_run(store, run.name), vm)


def series(highest: float) -> dict[str, object]:
    """One counter of a boot, in ms of 20 s over 16 vCPUs."""
    return {"unit": "ms", "interval_s": 20, "samples": 3, "mean": highest / 2, "highest": highest}


def test_the_worst_twenty_seconds_of_any_boot_count(store: Store) -> None:
    """320 s of vCPU time in 20 s: 32,000 ms of ready are 10%, beyond the usual 5%."""
    quiet = {"cpu.ready.summation": series(320), "cpu.costop.summation": series(0)}
    busy = {"cpu.ready.summation": series(32_000), "cpu.costop.summation": series(3_200)}

    found = counted(store, quiet, busy)

    assert isinstance(found, Contention)
    assert found.boots == 2
    assert found.ready == pytest.approx(0.1)
    assert found.co_stop == pytest.approx(0.01)
    assert found.contended
    assert found.words.startswith("CPU ready at most 10.0% of a vCPU's time, co-stop at most 1.0%")


def test_a_counter_that_is_not_there_is_not_zero(store: Store) -> None:
    """Co-stop "not known"; a boot without any sample gives its reason."""
    found = counted(store, {"cpu.ready.summation": series(320)})

    assert isinstance(found, Contention)
    assert not found.contended
    assert "co-stop not known" in found.words


@pytest.mark.parametrize(
    ("boots", "reason"),
    [
        (({"not_evaluated": "no sample: too short"},), "no sample: too short"),
        ((), "vSphere's counters were not read"),
    ],
)
def test_without_samples_the_reason_is_reported(store: Store, boots: tuple[object, ...], reason: str) -> None:
    """Neither "quiet" nor "busy"."""
    assert counted(store, *boots) == reason
