"""A field of an arm is declared once: every place that must know it takes it from there."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.hosts import host_of, vm_of
from vnuma.domain.arm.arm import Arm, SetsVmSettings, declared, only_in_runs
from vnuma.domain.arm.desired_settings import desired_settings
from vnuma.domain.study.study_schema import markdown
from vnuma.domain.vm.change import change_back, change_to
from vnuma.domain.vm.role import ROLE, needed_privileges
from vnuma.domain.vm.setting import DERIVED, TYPED, ValueKind, is_governed, privilege_for

NEWEST = host_of(release="8.0.3")
PLAIN = {
    name: item.settings[0]
    for name, item in declared().items()
    if isinstance(item, SetsVmSettings) and not item.computed
}


def example(field: str) -> Any:
    """A value that the field takes, other than handing the choice back."""
    for value in ("on", 4, "low", [1]):
        with suppress(ValidationError):
            Arm.model_validate({"topology": "2x8", field: value})
            return value
    raise AssertionError(f"no example for {field}")


def test_every_field_of_an_arm_but_its_name_says_what_it_becomes() -> None:
    """Without a declaration it would be accepted and not set."""
    assert set(Arm.model_fields) - set(declared()) == {"name"}
    assert set(only_in_runs()) == {"maxdop", "soft_numa", "workload"}


@pytest.mark.parametrize(
    "name", [name for name, item in declared().items() if isinstance(item, SetsVmSettings)]
)
def test_what_a_field_becomes_is_read_for_the_baseline_and_has_its_privilege(name: str) -> None:
    """A setting outside the baseline would stay changed after the run."""
    item = declared()[name]
    assert isinstance(item, SetsVmSettings)
    for setting in item.settings:
        assert setting in TYPED or is_governed(setting)
        assert setting not in DERIVED
        assert privilege_for(setting) in ROLE
        assert privilege_for(setting) in needed_privileges([setting])


@pytest.mark.parametrize(("field", "setting"), PLAIN.items())
def test_a_plain_field_is_planned_and_restored_from_its_declaration(field: str, setting: str) -> None:
    """From its value to the change, and back to a baseline that lacks it."""
    vm = replace(vm_of(), hardware_version=20)
    arm = Arm.model_validate({"topology": "2x8", field: example(field)})
    change = change_to(vm.settings, desired_settings(arm, vm, NEWEST))
    baseline = {**dict.fromkeys(TYPED), **vm.settings}
    back = change_back({**baseline, **change.desired}, baseline)

    assert change.desired[setting] is not None
    assert back.desired[setting] == baseline.get(setting)


@pytest.mark.parametrize(("field", "setting"), PLAIN.items())
def test_the_kind_of_a_setting_is_that_of_its_fields_values(field: str, setting: str) -> None:
    """A switch takes on and off, a number a number: vSphere refuses anything else."""
    value = example(field)
    if setting in TYPED:
        kind = {
            str: ValueKind.SWITCH if value == "on" else ValueKind.WORD,
            int: ValueKind.NUMBER,
            list: ValueKind.CPUS,
        }
        assert TYPED[setting].kind is kind[type(value)]


@pytest.mark.parametrize("name", declared())
def test_the_reference_says_what_each_field_becomes(name: str) -> None:
    """docs/reference/study.md has a row with it."""
    rows = [line for line in markdown().splitlines() if line.startswith(f"| `{name}` | ")]
    item = declared()[name]
    becomes = ", ".join(item.settings) if isinstance(item, SetsVmSettings) else item.what

    assert any(f" | {becomes} | " in row for row in rows)
