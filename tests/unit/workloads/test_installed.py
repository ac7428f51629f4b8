"""Workloads by name: ours, and those of installed packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.installed_package import MODULE, install
from tests.support.studies import GOOD
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.workloads.kinds import shipped
from vnuma.errors import InputError, MeasurementFailed
from vnuma.workloads.call_volume.settings import CallVolume
from vnuma.workloads.interface import Reading, require_declared, workload_named

STUDY = f"{GOOD}workload: {{name: tellers}}\n"


@pytest.fixture
def installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A separate package with a workload; called, it is one of that text instead."""
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("vnuma_tellers", None)  # of another test in this process

    def write(module: str) -> None:
        (tmp_path / "vnuma_tellers.py").write_text(module, encoding="utf-8")

    yield write
    sys.modules.pop("vnuma_tellers", None)


def test_every_workload_of_ours_has_settings_and_a_bench_of_one_name() -> None:
    """What a study file can name can be run, and says itself what it is called."""
    assert shipped()
    assert all(workload_named(name).settings is kind for name, kind in shipped().items())


@pytest.mark.usefixtures("installed_package")
def test_an_installed_packages_workload_is_read_checked_and_found() -> None:
    """Its own fields, its factors in arms, its metric; and the object that the engine runs."""
    arms = "  - {topology: 2x8, name: far, workload: {branch: 2}}\n"
    text = GOOD.replace("  - 2x8\n", arms) + "workload: {name: tellers, sizes: [4]}\n"
    study = parse_study(text, "a.yml")

    assert study.workload.size_label(4) == "4 tellers"
    assert study.workload.metric("orders").direction == "higher is better"
    assert study.workload_of("far").model_dump()["branch"] == 2
    assert workload_named("tellers").settings is type(study.workload)


@pytest.mark.usefixtures("installed_package")
def test_what_is_wrong_with_its_section_is_said_with_the_line() -> None:
    """As of our own workloads: field, line and what would be right."""
    with pytest.raises(InputError, match=r"a\.yml:10: unknown field 'branhc'"):
        parse_study(f"{GOOD}workload:\n  name: tellers\n  branhc: 2\n", "a.yml")


def test_a_package_that_cannot_be_loaded_is_named_and_costs_nobody_else_anything(
    installed_package: Callable[[str], None],
) -> None:
    """Its own import fails: said of the package, with the line; studies of other workloads are read."""
    installed_package(f"import not_there{MODULE}")

    with pytest.raises(InputError, match=r"a\.yml:8: .*package vnuma-tellers cannot be loaded: .*not_there"):
        parse_study(STUDY, "a.yml")
    assert parse_study(GOOD, "a.yml").workload.name == "cross_join"


def test_a_workload_that_lacks_a_part_is_refused_before_any_boot(
    installed_package: Callable[[str], None],
) -> None:
    """The engine would only miss it after a power-cycle."""
    installed_package(MODULE.replace("def bench(", "def bank(").replace("def sentinel(", "def guard("))

    with pytest.raises(InputError):
        parse_study(STUDY, "a.yml")


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (Reading(1.0), r"The workload call_volume returned no calls \(calls/s\)"),
        (Reading(1.0, value=1.0, figures={"bites": 1.0}), "figures that it does not declare: bites"),
    ],
)
def test_a_reading_holds_what_the_workload_declares(reading: Reading, said: str) -> None:
    """Without its metric it would pass for a measurement; a figure of another name would never be shown."""
    with pytest.raises(MeasurementFailed, match=said):
        require_declared(reading, CallVolume(name="call_volume"), "noop")
