"""Turn a VM's configuration from the property collector into settings. Pure.

Typed values are normalised so that equal settings compare equal: CPU sets ascending, no affinity as (), an
unset switch as off, shares by level as a word and custom shares as a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from vnuma.domain.vm.setting import LEASE_PREFIX, TYPED, Value, ValueKind, is_evidence, is_governed

LEASE_KEY = f"{LEASE_PREFIX}run"

EXTRA_CONFIG = "config.extraConfig"

LEAVES: Mapping[str, str] = {name: f"config.{spec.path}" for name, spec in TYPED.items()}
"""Each typed setting's property path."""

# Settings that neither rules nor comparisons with a design use are left out for large estates.
_NOT_READ = {"memoryShares", "cpuShares", "rebootPowerOff"}
FOR_RULES = tuple(name for name in TYPED if name not in _NOT_READ)


def paths(settings: Iterable[str] = TYPED) -> tuple[str, ...]:
    """The property paths that `settings_of` needs for these typed settings, including extraConfig."""
    return (*(LEAVES[name] for name in settings), EXTRA_CONFIG)


def settings_of(values: Mapping[str, Any], settings: Iterable[str] = TYPED) -> dict[str, Value]:
    """These typed settings (None if the release lacks one), and governed and evidence extraConfig keys."""
    typed: dict[str, Value] = {name: _value(name, values.get(LEAVES[name])) for name in settings}
    extra = extra_config(values.get(EXTRA_CONFIG) or ())
    return typed | {key: text for key, text in sorted(extra.items()) if is_governed(key) or is_evidence(key)}


def _value(name: str, value: Any) -> Value:
    if name == "coresPerNumaNode":
        return value or None  # 0 is automatic, which `autoCoresPerNumaNode` shows
    spec = TYPED[name]
    if value is None and spec.kind is ValueKind.SWITCH and not spec.since:
        return False
    return VALUES[spec.kind](value)


def extra_config(options: Iterable[Any]) -> dict[str, str]:
    """extraConfig as text by key; an empty value means that the key is not set."""
    return {option.key: str(option.value) for option in options if str(option.value)}


def _numbers(info: Any) -> tuple[int, ...]:
    return () if info is None else tuple(sorted(int(number) for number in info.affinitySet))


def _shares(info: Any) -> Value:
    if info is None:
        return None
    level = str(info.level)
    return int(info.shares) if level == "custom" else level


VALUES: Mapping[ValueKind, Callable[[Any], Value]] = {
    ValueKind.NUMBER: lambda value: None if value is None else int(value),
    ValueKind.SWITCH: lambda value: None if value is None else bool(value),
    ValueKind.WORD: lambda value: None if value is None else str(value),
    ValueKind.CPUS: _numbers,
    ValueKind.SHARES: _shares,
}
