"""What a workload of ours must declare, so that nothing about it is found out by a user."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from vnuma.domain.study.study_file import parse_study
from vnuma.domain.workloads.kinds import DEFAULT, settings_class, shipped
from vnuma.domain.workloads.settings import INSTANCE_CHANGES, InstanceChange
from vnuma.engine.instance.sql_settings import SETTINGS
from vnuma.workloads.cross_join.settings import CrossJoin

CHANGES = get_args(InstanceChange)
ROOT = Path(__file__).resolve().parents[3]
OWN_TEXT = {"sql_script"}
"""Its study is the user's own: docs/workloads/sql_script.md has one."""


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


OTHERS = sorted(set(shipped()) - {DEFAULT})
"""Our workloads, without the default one, which the whole of the documents is about."""


@pytest.mark.parametrize("name", OTHERS)
def test_a_workload_has_a_page_that_a_reader_finds(name: str) -> None:
    """docs/workloads/NAME.md, in the site's navigation and in the list of workloads."""
    page = f"{name}.md"

    assert (ROOT / "docs/workloads" / page).is_file()
    assert f": workloads/{page}" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"({page})" in (ROOT / "docs/workloads/README.md").read_text(encoding="utf-8")


def studies_of(name: str) -> list[str]:
    """The files in studies/ that measure that workload."""
    return [
        path.name
        for path in (ROOT / "studies").glob("*.yml")
        if parse_study(path.read_text(encoding="utf-8"), str(path)).workload.name == name
    ]


@pytest.mark.parametrize("name", sorted(set(shipped()) - OWN_TEXT))
def test_a_workload_has_a_study_to_start_from(name: str) -> None:
    """A file in studies/ that measures it."""
    assert studies_of(name)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_workload_is_run_from_end_to_end(name: str) -> None:
    """Some test of a whole run, in the gate or long, names it or its study."""
    text = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("e2e", "machines", "support")
        for path in (ROOT / "tests" / folder).rglob("*.py")
    )

    assert any(one in text for one in (f'"{name}"', *studies_of(name)))
