"""A rule's finding on one object, and its fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal

from vnuma.domain.vm.change import Change, change_to
from vnuma.domain.vm.setting import Settings, Value

ObjectKind = Literal["vm", "host", "cluster", "study", "vcenter"]


class Severity(StrEnum):
    """The severity of a failed rule."""

    BLOCK = "block"
    WARN = "warn"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is worst."""
        return _ORDER[self]


_ORDER = {Severity.BLOCK: 0, Severity.WARN: 1, Severity.INFO: 2}


# What an arm would otherwise set by itself.
_KEEP = {"follow_cores_per_socket": "keep", "numa_autosize": "keep"}


@dataclass(frozen=True)
class Fix:
    """What to do, as text and as settings for tools.

    `arm` has the fields of a study's arm that the fix changes. `settings` has vSphere's own names
    (`domain.vm.setting`), None: remove the key. `commands` is T-SQL, esxcli or bcdedit, ready to paste.
    """

    text: str
    arm: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, Value] = field(default_factory=dict)
    commands: str = ""
    topology: str = ""
    """The VM's own shape, for a fix that keeps it, since an arm states a whole one. Empty: unknown."""
    current: Settings = field(default_factory=dict, repr=False)
    """The VM's settings as read, which the fix changes. Empty for an arm of a study."""

    @cached_property
    def change(self) -> Change:
        """The settings that the fix changes, before and after; empty if it changes no VM."""
        return change_to(self.current, self.settings) if self.current else Change()

    @cached_property
    def ansible(self) -> dict[str, object]:
        """Variables of the role vm_topology that make exactly this change; empty if an arm cannot
        express it.
        """
        shape = self.arm.get("topology") or self.topology
        if not self.arm or not shape:
            return {}
        kept = {} if "vnuma_nodes" in self.arm else _KEEP
        return {"vm_topology_arm": {"topology": shape, **kept, **self.arm}}


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that failed on one object.

    `kind`, `name` and `key` name the object that the fix changes; `vm` and `vm_key` the VM it was seen from.
    `superseded_by` is the rule to fix first, and `matters` says why.
    """

    rule: str
    severity: Severity
    title: str
    kind: ObjectKind
    name: str
    key: str
    vm: str
    vm_key: str
    arm: str
    """The study's arm with the finding; empty outside a study."""
    observed: Mapping[str, str]
    consequence: str
    fix: Fix
    source: str
    superseded_by: str = ""
    matters: str = ""
    unconfirmed: bool = False
    assumed: str = ""
    """Which defaults it assumes, since the source does not show those settings; empty: none."""
