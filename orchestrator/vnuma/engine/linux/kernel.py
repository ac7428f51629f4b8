"""Kernel settings that a study of a machine may hold: read, set, and put back, each read back."""

from __future__ import annotations

from collections.abc import Mapping

from vnuma.domain.change import Edit
from vnuma.domain.machine import MachineFacts
from vnuma.engine.audit import Journal
from vnuma.errors import MeasurementFailed
from vnuma.workloads.shell import Shell, require

_WHERE = {
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "transparent_hugepages": "/sys/kernel/mm/transparent_hugepage/enabled",
}
_VALUES = {"on": "1", "off": "0"}


def key(name: str) -> str:
    """What changes and audit lines call it."""
    return f"linux.{name}"


def shown(machine: MachineFacts) -> dict[str, str]:
    """Their values now; those that the kernel does not have are left out."""
    now = {
        "numa_balancing": machine.numa_balancing,
        "transparent_hugepages": machine.transparent_hugepages,
    }
    return {name: value for name, value in now.items() if value is not None}


def switch(shell: Shell, wanted: Mapping[str, str], before: Mapping[str, str], journal: Journal) -> None:
    """Set them, told by their names; `before` is what the journal says of each. Raises MeasurementFailed.

    A value that reads back differently is a failure.
    """
    for name, word in wanted.items():
        value = _VALUES.get(word, word)
        with journal.change("kernel setting", [Edit(key(name), before.get(name), value)]):
            text = require(shell, f"echo {value} > {_WHERE[name]} && cat {_WHERE[name]}", f"setting {name}")
        read = text.partition("[")[2].partition("]")[0] or text.strip()
        if read != value:
            raise MeasurementFailed(
                f"{journal.vm}: {name} reads back {read}, not {value}.", fix=f"Look at {_WHERE[name]} there."
            )
