"""How to reach a target, as the inventory says: its vCenter and its SQL Server, if it has them.

Secrets are references here; `vnuma.engine.access.secrets` resolves them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError, field_validator
from pydantic_core import ErrorDetails

from vnuma.engine.access.secrets import Secret
from vnuma.engine.access.server_settings import SqlTarget, VCenterTarget
from vnuma.errors import InputError
from vnuma.words.validation import Strict, message

UNSHAPED = "linux/"
"""Prefix of the store's keys for targets without a hypervisor; a VM's key begins with its vCenter."""


class Target(Strict):
    """A host of an inventory, in two parts: the hypervisor that shapes it, and its guest.

    Without `vcenter` nothing shapes it. Its guest is reached at SQL Server (`sql`), and by Ansible's own
    connection.
    """

    name: str
    vm: str = ""
    """Name or path of the VM in vCenter."""
    vcenter: VCenterTarget | None = None
    sql: SqlTarget | None = None
    test_clone: bool = False
    require_tag: str | None = None
    """The vSphere tag that the VM must have before it may be changed, as `CATEGORY:NAME`."""
    node: str | None = None
    """Its site (vnuma_node); None: the controller reaches it."""

    @field_validator("require_tag")
    @classmethod
    def _is_a_tag(cls, given: str | None) -> str | None:
        if not given:  # roles pass an empty string
            return None
        if not is_tag(given):
            raise ValueError(f"'{given}' is not a valid vSphere tag: CATEGORY:NAME")
        return given

    @field_validator("vcenter", "sql", mode="before")
    @classmethod
    def _is_stated(cls, given: object) -> object:
        return given or None  # roles pass an empty mapping

    @property
    def hypervisor(self) -> VCenterTarget:
        """The vCenter that shapes it. Raises InputError where none does."""
        if self.vcenter is None:
            raise InputError(
                f"{self.name} has no vCenter: it cannot be shaped.",
                fix="Give it vnuma_vcenter in the inventory.",
            )
        return self.vcenter

    @property
    def server(self) -> SqlTarget:
        """The SQL Server in its guest. Raises InputError where there is none."""
        if self.sql is None:
            raise InputError(f"{self.name} has no SQL Server.", fix="Give it vnuma_sql in the inventory.")
        return self.sql

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The secrets that vnuma logs in with, without those of Ansible's own connection."""
        found = (self.vcenter and self.vcenter.secret, self.sql and self.sql.password)
        return tuple(secret for secret in found if secret)

    def variables(self) -> dict[str, Any]:
        """Its inventory variables, resolved."""
        document = self.model_dump(mode="json", exclude_none=True)
        return {f"vnuma_{name}": value for name, value in document.items() if name != "name" and value != ""}


def is_shaped(key: str) -> bool:
    """Whether the target that a store's key identifies has a hypervisor."""
    return not key.startswith(UNSHAPED)


def is_tag(text: str) -> bool:
    """Whether the text names a vSphere tag as CATEGORY:NAME."""
    category, _, name = text.partition(":")
    return bool(category.strip() and name.strip())


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
    known = sections.get(item["loc"][0], Target).model_fields
    close = difflib.get_close_matches(str(item["loc"][-1]), known, n=1)
    return (
        f"unknown field. Did you mean {close[0]}?" if close else f"unknown field (known: {', '.join(known)})."
    )


def target_from(name: str, variables: Mapping[str, object], where: str) -> Target:
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
        return Target.model_validate(fields)
    except ValidationError as error:
        lines = []
        for item in error.errors():
            path = ".".join(f"vnuma_{step}" if i == 0 else str(step) for i, step in enumerate(item["loc"]))
            lines.append(f"{where}: host {name}: {path}: {_what(item)}")
        raise InputError("\n".join(lines), fix="inventories/example shows every variable.") from None
