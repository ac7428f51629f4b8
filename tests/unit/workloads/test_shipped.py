"""What a workload of ours must declare, so that nothing about it is found out by a user."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from vnuma.domain.workloads.kinds import settings_class
from vnuma.domain.workloads.settings import INSTANCE_CHANGES, InstanceChange
from vnuma.engine.instance.settings import SETTINGS
from vnuma.workloads.cross_join.settings import CrossJoin

CHANGES = get_args(InstanceChange)


def test_a_plan_has_words_for_every_change_to_the_instance() -> None:
    """It looks them up for each change that a workload declares."""
    assert set(INSTANCE_CHANGES) == set(CHANGES)


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_to_the_instance_is_restored(change: str) -> None:
    """A class of engine/instance has it in the baseline, under the same name."""
    key = re.sub("_(.)", lambda found: found[1].upper(), change)

    assert f"sql.{key}" in {setting.key for setting in SETTINGS}


def test_a_workload_in_a_folder_of_another_name_is_a_sentence() -> None:
    """It says which name is looked for, and where."""
    with pytest.raises(TypeError, match=r'vnuma\.workloads\.other\.settings .*Literal\["other"\]'):
        settings_class({"CrossJoin": CrossJoin, "Literal": object()}, "other")
