"""Leases, fencing tokens, baselines and what is still to be restored."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, text

from tests.store.build import Leased, claim, new_run, new_vm, samples
from vnuma.errors import LeaseLost, StoreError, VmHeld
from vnuma.store import attempts, cells, leases, runs
from vnuma.store import samples as sample_rows
from vnuma.store.open import Store
from vnuma.store.rows import Outcome, RestoreOutcome, RunState


def test_a_lease_names_its_holder_who_may_take_it_again(store: Store) -> None:
    """A resumed run fences off whatever of its former self still lives; a free VM has no lease."""
    leased = new_vm(store)
    with store.write() as conn:
        assert leases.get_lease(conn, "vc/2") is None
        token = leases.take_lease(conn, "vc/1", leased.run.id, "ops@ctl2")
        lease = leases.get_lease(conn, "vc/1")
    assert lease is not None
    assert (lease.run_id, lease.token, lease.holder) == (leased.run.id, leased.token + 1, "ops@ctl2")
    assert token == lease.token


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (RunState.RUNNING, r"sql16 .* ops@ctl1, run quick\.1, since 20"),
        (RunState.FAILED, r"quick\.1, which ops@ctl1 started\.\n  vnuma restore sql16"),
    ],
)
def test_another_runs_lease_is_refused_with_who_and_since_when(
    store: Store, state: RunState, said: str
) -> None:
    """Also of an ended run: its VM would become the next run's baseline as it is now."""
    leased = new_vm(store)
    with store.write() as conn:
        runs.set_run_state(conn, leased.run.id, state)
    rival = new_run(store)
    with store.write() as conn, pytest.raises(VmHeld, match=said):
        leases.take_lease(conn, "vc/1", rival.id, "eve@ctl2")


def test_an_ended_run_that_put_its_vm_back_can_be_followed(store: Store) -> None:
    """A lease that was merely not released does not block forever; the old token ends."""
    leased = new_vm(store)
    with store.write() as conn:
        cells.set_restored(conn, leased.vm.id, leased.token, RestoreOutcome.RESTORED)
        runs.set_run_state(conn, leased.run.id, RunState.FINISHED)
    rival = new_run(store)
    with store.write() as conn:
        assert leases.take_lease(conn, "vc/1", rival.id, "eve@ctl2") > leased.token
    with store.write() as conn, pytest.raises(LeaseLost):
        leases.leased_vm(conn, leased.vm.id, leased.token)


def test_a_token_never_comes_back(store: Store) -> None:
    """After a release neither the old token nor a new lease's number repeats."""
    leased = new_vm(store)
    with store.write() as conn:
        leases.release_lease(conn, "vc/1", leased.token)
        assert leases.get_lease(conn, "vc/1") is None
    with store.write() as conn, pytest.raises(LeaseLost):
        leases.leased_vm(conn, leased.vm.id, leased.token)
    with store.read() as conn, pytest.raises(LeaseLost):
        leases.require_current(conn, "vc/1", leased.token)
    with store.write() as conn:
        assert leases.take_lease(conn, "vc/1", leased.run.id, "ops@ctl1") > leased.token


def test_only_the_holder_raises_or_releases(store: Store) -> None:
    """Another run cannot raise the token, an outdated token cannot release, a free VM has none."""
    leased = new_vm(store)
    rival = new_run(store)
    with store.write() as conn, pytest.raises(VmHeld):
        leases.raise_token(conn, "vc/1", rival.id)
    with store.write() as conn, pytest.raises(LeaseLost):
        leases.release_lease(conn, "vc/1", leased.token - 1)
    with store.write() as conn, pytest.raises(LeaseLost):
        leases.raise_token(conn, "vc/2", rival.id)


def test_a_raised_token_stops_every_write_of_the_old_one(store: Store) -> None:
    """Samples, steps, topologies, outcomes, restores and claims of a fenced process are refused."""
    leased = new_vm(store, arms=2)
    attempt = claim(store, leased).id
    old = leased.token
    with store.write() as conn:
        assert leases.raise_token(conn, "vc/1", leased.run.id, "ops@ctl2") == old + 1
    writes: list[Callable[[Connection], object]] = [
        lambda conn: sample_rows.add_samples(conn, attempt, old, samples(1)),
        lambda conn: attempts.set_step(conn, attempt, old, "power_on"),
        lambda conn: attempts.save_effective(conn, attempt, old, {"nodes": 1}),
        lambda conn: attempts.finish(conn, attempt, old, Outcome.VALID),
        lambda conn: cells.set_restored(conn, leased.vm.id, old, RestoreOutcome.RESTORED),
        lambda conn: cells.mark_changing(conn, leased.vm.id, old),
        lambda conn: cells.interrupt_attempts(conn, leased.vm.id, old),
        lambda conn: cells.skip_cells(conn, leased.vm.id, old, reason="limit"),
        lambda conn: cells.claim_next(conn, leased.vm.id, old, 2, exclusive_host=True),
    ]
    for write in writes:
        with pytest.raises(LeaseLost), store.write() as conn:
            write(conn)
    with store.read() as conn:
        assert len(list(sample_rows.iter_samples(conn, leased.run.id))) == 0
        assert attempts.get_attempt(conn, attempt).outcome is None


def test_the_new_token_does_not_write_to_the_old_attempt(store: Store) -> None:
    """A take-over interrupts the attempt; the new holder never continues it."""
    leased = new_vm(store, arms=1)
    attempt = claim(store, leased).id
    with store.write() as conn:
        token = leases.raise_token(conn, "vc/1", leased.run.id)
    with store.write() as conn, pytest.raises(LeaseLost):
        sample_rows.add_samples(conn, attempt, token, samples(1))


@pytest.mark.parametrize(
    "write",
    [
        lambda conn, leased: cells.save(conn, leased.vm.id, leased.token, {"numCPUs": 2}),
        lambda conn, _: conn.execute(text("UPDATE vm SET baseline_json = '{}'")),
        lambda conn, _: conn.execute(text("UPDATE vm SET baseline_json = NULL, baseline_at = NULL")),
    ],
)
def test_a_baseline_is_written_once(store: Store, write: Callable[[Connection, Leased], object]) -> None:
    """Not even a statement of one's own changes or removes it."""
    leased = new_vm(store)
    with pytest.raises(StoreError), store.write() as conn:
        write(conn, leased)
    with store.read() as conn:
        assert leases.get_vm(conn, leased.vm.id).baseline == {"numCPUs": 16}


def test_a_vm_without_a_baseline_may_not_be_changed(store: Store) -> None:
    """No claim before there is something to restore."""
    run = new_run(store)
    with store.write() as conn:
        vm = leases.add_vm(conn, run.id, vm_key="vc/1", name="sql16", path="/DC/vm/sql16", esxi_host="esx01")
        token = leases.take_lease(conn, "vc/1", run.id, "ops@ctl1")
    with pytest.raises(StoreError), store.write() as conn:
        cells.mark_changing(conn, vm.id, token)


def test_a_vm_is_owed_a_restore_until_one_is_settled(store: Store) -> None:
    """A conflict or a failure leaves it on the list; only a settled restore takes it off."""
    leased = new_vm(store)
    for outcome, settled in [
        (RestoreOutcome.CONFLICT, False),
        (RestoreOutcome.FAILED, False),
        (RestoreOutcome.RESTORED, True),
    ]:
        with store.write() as conn:
            cells.set_restored(conn, leased.vm.id, leased.token, outcome, {"settings": 31})
            listed = [one for one in cells.unrestored(conn) if not one[0].at_baseline]
            vm = leases.get_vm(conn, leased.vm.id)
        assert (vm.restore_outcome, vm.restore_detail, vm.at_baseline) == (outcome, {"settings": 31}, settled)
        assert [(one.name, run.name) for one, run in listed] == ([] if settled else [("sql16", "quick.1")])


def test_a_claim_after_a_restore_owes_the_next_one(store: Store) -> None:
    """A run that was stopped, restored and resumed must restore its VM again."""
    leased = new_vm(store, arms=1)
    with store.write() as conn:
        cells.set_restored(conn, leased.vm.id, leased.token, RestoreOutcome.RESTORED)
    claim(store, leased)
    with store.read() as conn:
        vm = leases.get_vm(conn, leased.vm.id)
        assert not vm.at_baseline
        assert vm.restore_outcome is None
        assert [one for one, _ in cells.unrestored(conn)] == [vm]
