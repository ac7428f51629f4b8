"""The least-privilege role of a study: which vSphere privilege each change needs. The one list of them.

Sources: the comments of VirtualMachineConfigSpec and of each method in VMware's API reference. Which
privilege cores per socket and virtualNuma need is not stated there; CPUCount is what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vnuma.domain.setting import EXTRA_CONFIG_PRIVILEGE, TYPED, privilege_for

ROLE_NAME = "vnuma"

POWER_ON = "VirtualMachine.Interact.PowerOn"
POWER_OFF = "VirtualMachine.Interact.PowerOff"


@dataclass(frozen=True)
class Need:
    """A privilege, what it is needed for, and what is missing without it where one can do without."""

    privilege: str
    purpose: str
    without: str | None = None


def _typed() -> list[Need]:
    settings: dict[str, list[str]] = {}
    for spec in TYPED.values():
        settings.setdefault(spec.privilege, []).append(spec.name)
    return [Need(privilege, ", ".join(names)) for privilege, names in settings.items()]


ROLE: tuple[Need, ...] = (
    *_typed(),
    Need(EXTRA_CONFIG_PRIVILEGE, "numa.* and other extraConfig keys, the run's mark vnuma.run"),
    Need(POWER_OFF, "guest shutdown, and power-off where a study allows it"),
    Need(POWER_ON, "power-on"),
)
"""On each VM of a study. The built-in role Read-only must reach its host, cluster and folders as well."""

ELSEWHERE: tuple[Need, ...] = (
    Need("Global.Licenses", "reading the licence", "a free hypervisor is found only when it refuses"),
    Need("Datastore.Browse", "finding vmware.log", "vmware.log is not evaluated"),
    Need("Datastore.FileManagement", "fetching vmware.log", "vmware.log is not evaluated"),
)
"""On the vCenter's root, the host or the datastore, if at all."""

_PURPOSES = {need.privilege: need.purpose for need in ROLE}


def needed_privileges(settings: Iterable[str]) -> tuple[str, ...]:
    """What a study of these settings needs on its VM: each setting's privilege, the mark, power."""
    return tuple(
        sorted({privilege_for(name) for name in settings} | {EXTRA_CONFIG_PRIVILEGE, POWER_OFF, POWER_ON})
    )


def purpose_of(privilege: str) -> str:
    """What a study needs the privilege for."""
    return _PURPOSES[privilege]


def markdown() -> str:
    """docs/vcenter-role.md."""
    return "\n".join(
        [
            _HEAD,
            "| privilege | for |",
            "|---|---|",
            *(f"| {need.privilege} | {need.purpose} |" for need in ROLE),
            "",
            "A study needs only those of the settings that its arms change, with AdvancedConfig and power.",
            "`vnuma doctor` and preflight (P00) name what is missing on a VM.",
            "",
            "## What helps",
            "",
            "| privilege | for | without it |",
            "|---|---|---|",
            *(f"| {need.privilege} | {need.purpose} | {need.without} |" for need in ELSEWHERE),
            "",
            _PLAYBOOK,
        ]
    )


_HEAD = """# The role for vCenter

What the account of `vnuma_vcenter` may do, and no more. This page is written by `tools/role_doc.py` from the
list that `vnuma doctor`, preflight and the playbook use.

On each VM under study, a role with the privileges below. Besides, the built-in role *Read-only* on the
root folder, propagating (or on the datacenter): its host, cluster, folders and neighbours are read.
"""

_PLAYBOOK = """## Making it

```sh
ansible-playbook vnuma.vnuma.vcenter_role -i INVENTORY --check --diff \\
  -e vnuma_admin_user=administrator@vsphere.local -e '{"vnuma_admin_password": {"env": "VCENTER_ADMIN"}}'
```

It makes or extends the role `vnuma`, gives it to the user of `vnuma_vcenter` on every VM of the inventory,
gives that user Read-only on the root folder if it has no permission there, and asks vCenter whether the
privileges hold (HasUserPrivilegeOnEntities). Without `--check` it does so; a second run changes nothing.
Privileges that somebody added to the role stay.
"""
