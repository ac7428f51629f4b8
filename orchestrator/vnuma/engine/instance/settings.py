"""The list of all SQL Server settings that a run may change: one class each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vnuma.domain.study.study import Study
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.instance.instance_setting import InstanceSetting
from vnuma.engine.instance.process_affinity import PROCESS_AFFINITY
from vnuma.engine.instance.resource_pool import RESOURCE_POOL
from vnuma.engine.instance.soft_numa import SOFT_NUMA
from vnuma.engine.instance.tcp_ports import TCP_PORTS
from vnuma.engine.lease.baseline_document import GuestReader
from vnuma.engine.lease.take_over import changed_sql_server
from vnuma.errors import LoginRefused, PreflightBlocked, SqlUnreachable
from vnuma.sqlserver.client.connect import connect
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm

SETTINGS: tuple[InstanceSetting[Any], ...] = (SOFT_NUMA, PROCESS_AFFINITY, RESOURCE_POOL, TCP_PORTS)


@dataclass(frozen=True)
class Baselined:
    """A setting and its value before the run."""

    setting: InstanceSetting[Any]
    value: bool | str


def guest_of(study: Study, target: Target) -> GuestReader:
    """Where the baseline of the settings that the study changes inside the guest is read.

    A boot resets what a study sets through a shell, so none of that is read.
    """
    if "sql_server" not in study.workload.needs:
        return GuestReader(target.name, dict)
    return GuestReader(sql_server(target).where, lambda: read_baseline(study, target))


def read_baseline(study: Study, target: Target) -> dict[str, object]:
    """Present values, by key, of the settings that the study changes.

    Raises PreflightBlocked where one cannot be read, since it could not be restored either.
    """
    changed = [setting for setting in SETTINGS if setting.is_changed_by(study)]
    if not changed:
        return {}
    try:
        with connect(sql_server(target)) as connection:
            return {setting.key: setting.read_baseline(connection, target.name) for setting in changed}
    except (SqlUnreachable, LoginRefused) as error:
        words = ", ".join(setting.words for setting in changed)
        raise PreflightBlocked(
            f"The study changes settings of SQL Server, so their values must be known first ({words}): "
            f"{error.what}",
            fix="Start the VM and SQL Server before the run.",
        ) from error


def to_restore(store: Store, run: Run, vm: Vm) -> tuple[Baselined, ...]:
    """The settings that the run restores on this VM; none if its audit log shows that it changed none."""
    if not changed_sql_server(store, run, vm):
        return ()
    before = ((setting, setting.baseline_of(vm)) for setting in SETTINGS)
    return tuple(Baselined(setting, value) for setting, value in before if value is not None)
