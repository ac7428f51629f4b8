"""A field that vSphere leaves out means its default: before a change, after it, and in a stored baseline."""

from __future__ import annotations

import pytest

from vnuma.domain.vm.change import Change, Edit, change_back, net
from vnuma.domain.vm.setting import AUTOMATIC, DERIVED, TYPED, Value
from vnuma.engine.lease.baseline import conflicts
from vnuma.vsphere.apply import unmet
from vnuma.vsphere.facts import LEAVES, settings_of

DEFAULTED = sorted(name for name, spec in TYPED.items() if spec.unset is not None)


def _other(name: str) -> Value:
    """A value that an arm might set."""
    match TYPED[name].unset:
        case bool():
            return True
        case int():
            return 1024
        case str():
            return "high"
    return (0, 1)


@pytest.mark.parametrize("name", DEFAULTED)
def test_an_absent_field_reads_as_its_default(name: str) -> None:
    """Whether vSphere leaves it out or shows the default makes no difference to a reader.

    None where the release may lack the field, and where vSphere may have chosen the number.
    """
    unknown = TYPED[name].since or name in AUTOMATIC
    assert settings_of({}, [name]) == {name: None if unknown else TYPED[name].unset}
    assert LEAVES[name].startswith("config.")


@pytest.mark.parametrize("name", DEFAULTED)
def test_a_baseline_without_the_field_is_restored_when_its_default_reads_back(name: str) -> None:
    """A baseline stored with an absent field: nothing is left to restore, and nobody else is accused."""
    unset = TYPED[name].unset
    baseline, now = {name: None}, {name: unset}

    assert not change_back(now, baseline)
    assert not change_back(baseline, now)
    assert not unmet(Change((Edit(name, _other(name), None),)), now)
    assert net([Edit(name, None, _other(name)), Edit(name, _other(name), unset)]) == ()
    assert conflicts(baseline, {name: {_other(name)}}, now) == []


@pytest.mark.parametrize("name", DEFAULTED)
def test_a_value_that_an_arm_set_is_taken_back_to_absent(name: str) -> None:
    """The arm's value differs from a baseline without the field: it is restored as ours."""
    changed = _other(name)

    assert [edit.setting for edit in change_back({name: changed}, {name: None})] == [name]
    assert conflicts({name: None}, {name: {changed}}, {name: changed}) == []


def test_every_setting_says_what_its_absence_means() -> None:
    """Only the size of a VM always has a value, and derived settings have no meaning of their own."""
    assert TYPED.keys() - DEFAULTED == {"numCPUs", "memoryMB", *DERIVED}
