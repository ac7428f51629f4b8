"""What a study's accounts must be allowed to do: the privileges in vSphere, and the rights of its SQL login.

Sources: the comments of VirtualMachineConfigSpec and of each method in VMware's API reference. The privilege
for cores per socket and virtualNuma is not documented there; CPUCount is required here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from vnuma.domain.vm.server import Permissions
from vnuma.domain.vm.setting import EXTRA_CONFIG_PRIVILEGE, TYPED, privilege_for

POWER_ON = "VirtualMachine.Interact.PowerOn"
POWER_OFF = "VirtualMachine.Interact.PowerOff"


Where = Literal["datastore", "cluster", "root", "attributes"]
"""The objects on which a privilege is needed: the VM's datastores, its host's cluster, the root folder, or
the VM itself where there are custom attributes.
"""


@dataclass(frozen=True)
class Helps:
    """An optional privilege: on which object, what for, and what does not work without it."""

    privilege: str
    where: Where
    purpose: str
    without: str


def _typed() -> dict[str, str]:
    settings: dict[str, list[str]] = {}
    for spec in TYPED.values():
        settings.setdefault(spec.privilege, []).append(spec.name)
    return {privilege: ", ".join(names) for privilege, names in settings.items()}


ROLE: Mapping[str, str] = {
    **_typed(),
    EXTRA_CONFIG_PRIVILEGE: "numa.* and other extraConfig keys, the run's mark vnuma.run",
    POWER_OFF: "guest shutdown, and power-off where a study allows it",
    POWER_ON: "power-on",
}
"""The privileges needed on each VM of a study, with Read-only on its host, cluster and folders; each with
what it is for.
"""

ELSEWHERE: tuple[Helps, ...] = (
    Helps("Datastore.Browse", "datastore", "finding vmware.log", "vmware.log is not evaluated"),
    Helps("Datastore.FileManagement", "datastore", "fetching vmware.log", "vmware.log is not evaluated"),
    Helps(
        "Global.Licenses",
        "root",
        "reading the licence",
        "a free hypervisor is only noticed when it refuses a change",
    ),
    Helps(
        "Global.SetCustomField",
        "attributes",
        "the note on the VM, for people in the vSphere Client",
        "the client does not show who is using it; the mark vnuma.run does",
    ),
    Helps(
        "Host.Inventory.EditCluster",
        "cluster",
        "setting the VM's DRS override to Disabled (rule A01), done by hand",
        "somebody else must set it",
    ),
)
"""Optional privileges."""


def needed_privileges(settings: Iterable[str]) -> tuple[str, ...]:
    """What a study of these settings needs on its VM: each setting's privilege, the mark, power."""
    return tuple(
        sorted({privilege_for(name) for name in settings} | {EXTRA_CONFIG_PRIVILEGE, POWER_OFF, POWER_ON})
    )


@dataclass(frozen=True)
class LoginRight:
    """A server permission of the SQL login. `since_2022` is its name there, if SQL Server renamed it."""

    permission: str
    purpose: str
    held: Callable[[Permissions], bool]
    since_2022: str | None = None

    def named_for(self, may: Permissions) -> str:
        """The permission to grant on the server whose permissions these are."""
        newer = may.view_server_performance_state is not None
        return self.since_2022 if self.since_2022 and newer else self.permission


READS_STATE = LoginRight(
    "VIEW SERVER STATE",
    "reading the topology that SQL Server uses, and whether a boot is quiet",
    lambda may: may.reads_state,
    since_2022="VIEW SERVER PERFORMANCE STATE",
)
MAKES_DATABASE = LoginRight(
    "CREATE ANY DATABASE",
    "making the study's database, unless it exists or the script has its own",
    lambda may: may.create_any_database or may.sysadmin,
)
LOGIN: tuple[LoginRight, ...] = (READS_STATE, MAKES_DATABASE)
"""Needed by the login of `vnuma_sql`; workloads and arms that need more say so in preflight (P29)."""
