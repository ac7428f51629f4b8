"""All rules."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from vnuma.checks.rule import FAMILIES, Rule
from vnuma.checks.rules import (
    affinity,
    measurement,
    memory_and_limits,
    sqlserver,
    topology_host,
    topology_release,
    topology_shape,
    windows,
)
from vnuma.errors import InputError

_MODULES = (
    *(topology_shape, topology_release, topology_host, affinity, memory_and_limits, windows),
    *(sqlserver, measurement),
)


def rules_in(module: ModuleType) -> Iterator[Rule]:
    """The module's rules. Raises TypeError for one that decorates no check."""
    for value in vars(module).values():
        if isinstance(value, Rule):
            if not value.is_complete:
                raise TypeError(
                    f"Rule {value.id} in {module.__name__} decorates no check: def it below @rule"
                )
            yield value


_FAMILY_ORDER = tuple(FAMILIES)

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (rule for module in _MODULES for rule in rules_in(module)),
        key=lambda rule: (_FAMILY_ORDER.index(rule.id[0]), rule.id),
    )
)
"""All rules by family and number."""

BY_ID = {rule.id: rule for rule in RULES}


DECIDING = frozenset(("T01", "T05", "T06", "T08", "T09", "T10", "T11", "T12", "T13"))
"""Rules on whether vCPUs, memory and sockets suit the host's nodes, and the guest sees them. A VM passes only
if each of them was evaluated.
"""


def find_rule(rule_id: str) -> Rule:
    """The rule with that id, in any case. Raises InputError."""
    name = rule_id.strip().upper()
    found = BY_ID.get(name)
    if found is None:
        meant = f"{name[:1]}0{name[1:]}"
        close = f"Is {meant} meant? " if meant in BY_ID else ""
        listed = f"Rules are {RULES[0].id} to {RULES[-1].id}; list them: vnuma check --explain all"
        raise InputError(f"Rule {rule_id} does not exist.", fix=f"{close}{listed}")
    return found
