"""How to reach a VM or machine, as the inventory says; for a VM, also its vCenter and SQL Server.

Secrets are references here; `vnuma.engine.access.secrets` resolves them.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, ClassVar

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from vnuma.engine.access.secrets import Secret
from vnuma.engine.access.server_settings import SqlTarget, VCenterTarget
from vnuma.errors import InputError
from vnuma.words.validation import Strict, message

MACHINE_KEY = "linux/"
"""Prefix of the store's keys for machines; a VM's key begins with its vCenter."""


class TargetKind(Enum):
    """The kinds of target. Code that differs by kind has one table by TargetKind instead of branches."""

    VM = "a VM"
    MACHINE = "a Linux machine"

    @classmethod
    def of(cls, key: str) -> TargetKind:
        """The kind of target that a store's key identifies."""
        return cls.MACHINE if key.startswith(MACHINE_KEY) else cls.VM


class Target(Strict, ABC):
    """A VM or machine of an inventory: the interface that all kinds share."""

    kind: ClassVar[TargetKind]
    name: str
    node: str | None = None
    """Its site (vnuma_node); None: the controller reaches it."""

    @property
    def vcenters(self) -> tuple[VCenterTarget, ...]:
        """The vCenter that manages it, if any."""
        return ()

    @property
    def sql_servers(self) -> tuple[SqlTarget, ...]:
        """The SQL Server inside, if any."""
        return ()

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The secrets that vnuma logs in with, without those of Ansible's own connection."""
        passwords = [server.password for server in self.sql_servers if server.password]
        return (*(server.secret for server in self.vcenters), *passwords)

    @abstractmethod
    def variables(self) -> dict[str, Any] | None:
        """Its inventory variables, resolved; None where only Ansible's own connection reaches it."""

    @abstractmethod
    def as_vm(self) -> VmTarget:
        """This target as a VM. Raises InputError for a machine outside vCenter."""

    @abstractmethod
    def as_machine(self, workload: str) -> MachineTarget:
        """This target as a machine for `workload`. Raises InputError for a VM."""


class VmTarget(Target):
    """One VM of an inventory."""

    kind = TargetKind.VM
    vm: str
    vcenter: VCenterTarget
    sql: SqlTarget
    test_clone: bool = Field(default=False)
    require_tag: str | None = None
    """The vSphere tag that the VM must have before it may be changed, as `CATEGORY:NAME`."""

    @field_validator("require_tag")
    @classmethod
    def _is_a_tag(cls, given: str | None) -> str | None:
        if not given:  # roles pass an empty string
            return None
        if not is_tag(given):
            raise ValueError(f"'{given}' is not a valid vSphere tag: CATEGORY:NAME")
        return given

    @property
    def vcenters(self) -> tuple[VCenterTarget, ...]:
        return (self.vcenter,)

    @property
    def sql_servers(self) -> tuple[SqlTarget, ...]:
        return (self.sql,)

    def variables(self) -> dict[str, Any]:
        document = self.model_dump(mode="json", exclude_none=True)
        return {f"vnuma_{name}": value for name, value in document.items() if name != "name"}

    def as_vm(self) -> VmTarget:
        return self

    def as_machine(self, workload: str) -> MachineTarget:
        raise InputError(
            f"{self.name} is a VM in a vCenter. {workload} measures a Linux machine as it is; vnuma "
            "does not shape VMs with a Linux guest.",
            fix="Measure its guest in its present shape: add an inventory host without vnuma_vcenter and "
            "vnuma_sql, reached by SSH.",
        )


def is_tag(text: str) -> bool:
    """Whether the text names a vSphere tag as CATEGORY:NAME."""
    category, _, name = text.partition(":")
    return bool(category.strip() and name.strip())


class MachineTarget(Target):
    """A Linux machine of an inventory, measured without reshaping, over Ansible's own connection."""

    kind = TargetKind.MACHINE

    def variables(self) -> None:
        """See `Target`."""

    def as_vm(self) -> VmTarget:
        raise InputError(
            f"{self.name} is a machine without a vCenter: it cannot be shaped, and has no SQL Server "
            "to measure.",
            fix="Give it vnuma_vcenter and vnuma_sql in the inventory.",
        )

    def as_machine(self, workload: str) -> MachineTarget:
        del workload
        return self


def target_of_task(document: Mapping[str, Any]) -> Target:
    """The target in a task's document; without a vCenter it is a machine. Raises ValidationError."""
    if document.get("vcenter", {}) != {}:
        return VmTarget.model_validate(document)
    return MachineTarget.model_validate({"name": document.get("name")})


_OF_HOSTS = (
    *("vnuma_vm", "vnuma_vcenter", "vnuma_sql", "vnuma_test_clone", "vnuma_require_tag"),
    *("vnuma_notify", "vnuma_node"),
)
_OF_PLAYS = (
    *("vnuma_study", "vnuma_run", "vnuma_hosts", "vnuma_max_cells", "vnuma_on_conflict"),
    *("vnuma_script", "vnuma_dataset_state", "vnuma_role", "vnuma_role_principal"),
    *("vnuma_admin_user", "vnuma_admin_password"),
)
"""Variables that the roles and playbooks take, which a group of the same inventory may set."""

_OF_AWX = "vnuma_awx_"
"""Prefix of the variables of the AWX objects."""

_ALIKE = 0.8
"""Similarity (difflib's ratio) from which a variable counts as a misspelling of one of ours."""


def refuse_unknown(name: str, variables: Iterable[str], where: str) -> None:
    """Raise InputError for an unknown vnuma variable: one that is misspelt, or that a version removed.

    Ignored silently, it could be a safety setting that somebody relies on.
    """
    known = (*_OF_HOSTS, *_OF_PLAYS)
    for variable in sorted(set(variables) - set(known)):
        if not variable.startswith("vnuma_") or variable.startswith(_OF_AWX):
            continue
        close = difflib.get_close_matches(variable, _OF_HOSTS, n=1, cutoff=_ALIKE)
        raise InputError(
            f"{where}: host {name}: unknown variable {variable}."
            + (f" Did you mean {close[0]}?" if close else ""),
            fix="Remove or rename it (docs/upgrade.md lists what was removed); "
            "names of your own must not begin with vnuma_.",
        )


def _what(item: ErrorDetails) -> str:
    """What is wrong with a field; for an unknown field also the most similar valid one."""
    if item["type"] != "extra_forbidden":
        return f"{message(item)}."
    sections: dict[object, type[Strict]] = {"vcenter": VCenterTarget, "sql": SqlTarget}
    known = sections.get(item["loc"][0], VmTarget).model_fields
    close = difflib.get_close_matches(str(item["loc"][-1]), known, n=1)
    return (
        f"unknown field. Did you mean {close[0]}?" if close else f"unknown field (known: {', '.join(known)})."
    )


def target_from(name: str, variables: Mapping[str, object], where: str) -> VmTarget:
    """Build a target from inventory variables vnuma_vcenter, vnuma_sql and vnuma_vm.

    Raises InputError with the host, the variable and the problem.
    """
    fields = {
        "name": name,
        "vm": variables.get("vnuma_vm", name),
        "vcenter": variables.get("vnuma_vcenter", {}),
        "sql": variables.get("vnuma_sql", {}),
        "test_clone": variables.get("vnuma_test_clone", False),
        "require_tag": variables.get("vnuma_require_tag"),
        "node": variables.get("vnuma_node"),
    }
    try:
        return VmTarget.model_validate(fields)
    except ValidationError as error:
        lines = []
        for item in error.errors():
            path = ".".join(f"vnuma_{step}" if i == 0 else str(step) for i, step in enumerate(item["loc"]))
            lines.append(f"{where}: host {name}: {path}: {_what(item)}")
        raise InputError("\n".join(lines), fix="inventories/example shows every variable.") from None
