"""Put a VM back as its baseline says. One function, whoever asks: the end of a run, recovery, a person.

Restoring raises the lease's token first, so that every other process of the run stops at its next
write; then it waits for the VM's lock and for vSphere tasks under way, and only then acts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vnuma.domain.change import Change, change_back, differences
from vnuma.domain.facts import VmFacts
from vnuma.domain.setting import Power, Settings, Value, is_evidence
from vnuma.engine.baseline import baseline_power, baseline_settings
from vnuma.engine.connections import vcenter
from vnuma.engine.context import holder
from vnuma.engine.locking import vm_lock
from vnuma.engine.poweroff import Fence, PowerRules, shut_down
from vnuma.engine.target import Target
from vnuma.errors import AttemptFailed, NotAtBaseline, RestoreConflict
from vnuma.store import attempts, cells, leases, vms
from vnuma.store.open import Store
from vnuma.store.rows import Attempt, RestoreOutcome, Run, Vm
from vnuma.vsphere import apply, lease_mark, power, read
from vnuma.vsphere.connect import Session, connect
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.wait import settle

Choice = Literal["refuse", "theirs", "baseline"]

# ESXi rewrites these at every power-on: their change is nobody's.
_WRITTEN_BY_ESXI = frozenset({"numa.autosize.cookie", "numa.autosize.vcpu.maxpervirtualnode"})


@dataclass(frozen=True)
class ThreeWay:
    """One setting that somebody else changed: before the study, as we set it, and now."""

    setting: str
    baseline: Value
    ours: Value
    now: Value


@dataclass(frozen=True)
class Restored:
    """How a VM was put back: `equal` of `settings` read back equal, and its power state."""

    vm: str
    changed: bool
    settings: int
    equal: int
    power: Power

    @property
    def words(self) -> str:
        """For people: what was proven, not what was hoped."""
        state = "powered on" if self.power is Power.ON else "powered off"
        return f"{self.vm}: {self.equal} of {self.settings} settings read back equal, {state}"


def restore(
    store: Store,
    run: Run,
    vm: Vm,
    target: Target,
    *,
    home: Path,
    choice: Choice = "refuse",
    rules: PowerRules,
    say: Callable[[str], None] = lambda _: None,
) -> Restored:
    """Put one VM back and give up its lease. Safe to repeat.

    Raises RestoreConflict when somebody else changed the VM and `choice` is `refuse`, NotAtBaseline
    when it could not be put back; the lease is kept in both.
    """
    with store.write() as connection:
        token = leases.raise_token(connection, vm.vm_key, run.id, holder())
        cells.interrupt_attempts(connection, run.id, vm.id, token)

    def fence() -> None:
        with store.read() as connection:
            leases.check_token(connection, vm.vm_key, token)

    with vm_lock(home, vm.vm_key, vm.name, wait=True), connect(vcenter(target)) as session:
        ref = read.find_vm(session, target.vm)
        settle(session, ref, rules.task_s)
        facts = read.read_vm(session, ref)
        if vm.baseline is None:
            outcome = Restored(vm.name, False, 0, 0, facts.power)
        else:
            try:
                outcome = _put_back(store, run, vm, session, ref, facts, choice, rules, fence, say)
            except AttemptFailed as error:
                _record(store, vm, token, RestoreOutcome.FAILED, error.what)
                raise NotAtBaseline(
                    f"{vm.name} is not at its baseline: {error.what}",
                    fix=f"Put it right, then: vnuma restore {vm.name}",
                ) from error
            except RestoreConflict as error:
                _record(store, vm, token, RestoreOutcome.CONFLICT, error.what)
                raise
        mark = lease_mark.read_mark(session, ref)
        if mark.text:
            lease_mark.write_mark(session, ref, None, mark.change_version)
    with store.write() as connection:
        settled = RestoreOutcome.THEIRS if choice == "theirs" else RestoreOutcome.RESTORED
        vms.set_restored(connection, vm.id, token, settled, {"words": outcome.words})
        leases.release_lease(connection, vm.vm_key, token)
    return outcome


def plan_back(vm: Vm, target: Target) -> Change:
    """What `restore` would change now. Empty before a baseline was committed."""
    if vm.baseline is None:
        return Change()
    with connect(vcenter(target)) as session:
        facts = read.read_vm(session, read.find_vm(session, target.vm))
    return change_back(facts.settings, baseline_settings(vm))


def _put_back(
    store: Store,
    run: Run,
    vm: Vm,
    session: Session,
    ref: VmRef,
    facts: VmFacts,
    choice: Choice,
    rules: PowerRules,
    fence: Fence,
    say: Callable[[str], None],
) -> Restored:
    baseline = baseline_settings(vm)
    with store.read() as connection:
        ours = written([a for a in attempts.attempts_of_run(connection, run.id) if a.vm_id == vm.id])
    foreign = conflicts(baseline, ours, facts.settings)
    if foreign and choice == "refuse":
        raise RestoreConflict(
            conflict_words(vm.name, foreign), fix=f"vnuma restore {vm.name} --theirs | --baseline"
        )
    if choice == "theirs":
        baseline |= {item.setting: item.now for item in foreign}
    change = change_back(facts.settings, baseline)
    if change:
        facts = _apply(session, ref, facts, change, rules, fence, say)
    wrong = differences({k: v for k, v in baseline.items() if not is_evidence(k)}, facts.settings)
    checked = sum(not is_evidence(name) for name in baseline)
    if change_back(facts.settings, baseline):
        names = ", ".join(edit.setting for edit in wrong)
        raise NotAtBaseline(
            f"{vm.name} reads back different from its baseline: {names}.", fix=f"vnuma restore {vm.name}"
        )
    wanted = baseline_power(vm)
    if wanted is Power.ON and facts.power is not Power.ON:
        say(f"powering {vm.name} on")
        power.power_on(session, ref, host_moid=facts.host_moid, fence=fence, timeout_s=rules.task_s)
    elif wanted is Power.OFF and facts.power is not Power.OFF:
        shut_down(session, ref, rules, fence)
    return Restored(vm.name, bool(change), checked, checked, read.read_vm(session, ref).power)


def _apply(
    session: Session,
    ref: VmRef,
    facts: VmFacts,
    change: Change,
    rules: PowerRules,
    fence: Fence,
    say: Callable[[str], None],
) -> VmFacts:
    if change.needs_power_off and facts.power is not Power.OFF:
        say(f"shutting {facts.name} down")
        shut_down(session, ref, rules, fence)
        facts = read.read_vm(session, ref)
    say(f"putting back {len(change.edits)} settings of {facts.name}")
    return apply.reconfigure(session, ref, change, change_version=facts.change_version, fence=fence)


def written(past: list[Attempt]) -> dict[str, set[Value]]:
    """Every value that this run's attempts have written or found, by setting."""
    values: dict[str, set[Value]] = {}
    for attempt in past:
        for edit in attempt.change if isinstance(attempt.change, list) else []:
            for side in (edit["before"], edit["after"]):
                values.setdefault(edit["setting"], set()).add(tuple(side) if isinstance(side, list) else side)
    return values


def conflicts(baseline: Settings, ours: Mapping[str, set[Value]], now: Settings) -> list[ThreeWay]:
    """Settings whose present value is neither the baseline's nor one that this run has written."""
    found = []
    for edit in change_back(now, baseline):
        name = edit.setting
        values = ours.get(name, set())
        if name.lower() in _WRITTEN_BY_ESXI or any(
            not change_back({name: value}, {name: edit.before}) for value in values
        ):
            continue
        if name == "memoryReservation" and "memoryReservationLockedToMax" in ours:
            continue  # vSphere moves the reservation with the lock
        found.append(ThreeWay(name, edit.after, max(values, key=str, default=None), edit.before))
    return found


def conflict_words(vm: str, foreign: list[ThreeWay]) -> str:
    """The three-way difference as a table for people."""
    rows = [("setting", "baseline", "we set", "now")]
    rows += [(item.setting, _text(item.baseline), _text(item.ours), _text(item.now)) for item in foreign]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    table = "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
    return f"{vm} was changed by somebody else since the study began. Nothing was changed now.\n{table}"


def _text(value: Value) -> str:
    if value is None or value == ():
        return "none"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _record(store: Store, vm: Vm, token: int, outcome: RestoreOutcome, words: str) -> None:
    with store.write() as connection:
        vms.set_restored(connection, vm.id, token, outcome, {"words": words})
