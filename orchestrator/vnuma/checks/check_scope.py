"""What a check was able to find: only there does a missing finding mean that it is fixed."""

from __future__ import annotations

from functools import cached_property

from vnuma.checks.against_design import DRIFT
from vnuma.checks.result import CheckResult, Key


class Seen:
    """What one check examined, by rule and object."""

    def __init__(self, result: CheckResult) -> None:
        self._result = result

    def would_find(self, key: Key, name: str, source: str | None = None) -> bool:
        """Whether the check could have found a finding with this key on an object of this name.

        `source` is where it was found before, if known. False if the rule was not requested or not evaluated,
        if filters excluded the object, or if it or its source was not read.
        """
        rule, _, identity = key
        if rule not in self._rules or source not in (None, *self._sources):
            return False
        if (rule, identity) in self._unknown or (rule, name) in self._unknown:
            return False
        if identity in self._checked or name in self._checked:
            return True
        if {identity, name} & self._result.not_asked or name in self._unseen:
            return False
        return all(it.whole for it in self._result.sources if source in (None, it.name))

    def knows(self, identity: str, name: str) -> bool:
        """Whether an object existed: checked, excluded or not readable."""
        there = self._checked | self._result.not_asked | self._unseen
        return bool({identity, name} & there)

    @cached_property
    def _rules(self) -> set[str]:
        drift = {DRIFT} if self._result.drift else set()
        return {rule.id for rule in self._result.rules} | drift

    @cached_property
    def _sources(self) -> set[str]:
        return {source.name for source in self._result.sources}

    @cached_property
    def _unknown(self) -> set[tuple[str, str]]:
        drift = self._result.drift
        not_compared = (*drift.only_site, *drift.unmatched) if drift else ()
        return {
            (rule, name)
            for vm in self._result.vms
            for rule in vm.not_evaluated
            for name in (vm.key, vm.host, vm.cluster)
        } | {(DRIFT, one.name) for one in not_compared}

    @cached_property
    def _checked(self) -> set[str]:
        return {name for vm in self._result.vms for name in (vm.key, vm.host, vm.cluster) if name}

    @cached_property
    def _unseen(self) -> set[str]:
        return {item.name for item in self._result.unseen}
