"""The kernel settings that a study may hold in a Linux guest: read, set, restored; each read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vnuma.domain.vm.change import Edit
from vnuma.engine.access.context import VmContext, holder
from vnuma.engine.audit.journal import Journal
from vnuma.engine.lease.baseline_document import baseline_of, record_baseline, refuse_altered
from vnuma.engine.lease.foreign_changes import ForeignChange
from vnuma.errors import MeasurementFailed
from vnuma.logs import guest_tools
from vnuma.store import baselines, cells, facts, leases
from vnuma.store.rows import Vm
from vnuma.workloads.shell import Shell, require

WHERE = {
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "transparent_hugepages": "/sys/kernel/mm/transparent_hugepage/enabled",
}
"""Their files: https://docs.kernel.org/admin-guide/sysctl/kernel.html and admin-guide/mm/transhuge.html."""


def key(name: str) -> str:
    """Its name in changes and audit lines."""
    return f"linux.{name}"


def read(shell: Shell, names: Iterable[str]) -> dict[str, str]:
    """Their present values, without those that the kernel lacks. Raises MeasurementFailed."""
    script = "".join(f"echo '@@ {name}'; cat {WHERE[name]} 2>/dev/null\n" for name in names)
    shown = guest_tools.sections(require(shell, f"{script}true\n", "reading the kernel's settings"))
    return {name: chosen(text) for name, text in shown.items() if text.strip()}


def chosen(text: str) -> str:
    """A setting's value: where the file lists the choices, the word in brackets."""
    return text.partition("[")[2].partition("]")[0] or text.strip()


def foreign_changes(
    before: Mapping[str, str], ours: Mapping[str, str], now: Mapping[str, str]
) -> list[ForeignChange]:
    """Settings that have neither their value from before the run nor the one that the study holds."""
    return [
        ForeignChange(key(name), value, ours.get(name), now.get(name))
        for name, value in before.items()
        if now.get(name) not in (value, ours.get(name))
    ]


def switch(shell: Shell, wanted: Mapping[str, str], before: Mapping[str, str], journal: Journal) -> None:
    """Set them. `before` are the old values for the journal.

    Raises MeasurementFailed, also for a value that reads back differently.
    """
    for name, value in wanted.items():
        with journal.change("kernel setting", [Edit(key(name), before.get(name), value)]):
            text = require(shell, f"echo {value} > {WHERE[name]} && cat {WHERE[name]}", f"setting {name}")
        if chosen(text) != value:
            raise MeasurementFailed(
                f"{journal.vm}: {name} reads back {chosen(text)}, not {value}.",
                fix=f"Check {WHERE[name]} there.",
            )


KERNEL = "kernel"
"""In the baseline where nothing boots the guest: all kernel settings, also those that no study changes."""


def take_over_unshaped(free: VmContext) -> int:
    """Lease a target without a hypervisor and commit its baseline. Returns the fencing token.

    Raises VmHeld, and NotAtBaseline as `refuse_altered`.
    """
    store, run, vm = free.store, free.run, free.vm
    refuse_altered(store, run, vm)
    with store.read() as connection:
        known = facts.facts_of_run(connection, run.id, "machine")
    seen = {fact.key: fact.value for fact in known if fact.vm_id == vm.id}
    baseline = {KERNEL: {name: seen[name] for name in WHERE if seen.get(name) is not None}}
    if vm.baseline is None:
        record_baseline(Journal(store, vm.vm_key, vm.name, run), baseline)
    with store.write() as connection:
        token = leases.take_lease(connection, vm.vm_key, run.id, holder())
        cells.interrupt_attempts(connection, vm.id, token)
        if vm.baseline is None:
            baselines.save(connection, vm.id, token, baseline)
    return token


def kernel_baseline(vm: Vm) -> dict[str, str]:
    """Kernel settings before the run, by name."""
    return dict(baseline_of(vm).get(KERNEL, {}))
