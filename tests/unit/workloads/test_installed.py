"""Workloads by name: ours, and those of installed packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.domain.test_study_file import GOOD
from vnuma.domain.study_file import parse_study
from vnuma.domain.workloads.kinds import KINDS
from vnuma.errors import InputError
from vnuma.workloads.registry import WORKLOADS, workload_named

MODULE = '''
from typing import ClassVar, Literal

from pydantic import Field

from vnuma.domain.metric import Metric
from vnuma.domain.workloads.settings import WorkloadSettings


class Settings(WorkloadSettings):
    """Orders a second."""

    size_word: ClassVar[str] = "tellers"
    factors: ClassVar[frozenset[str]] = frozenset({"branch"})

    name: Literal["tellers"]
    sizes: tuple[int, ...] = (1, 2)
    forms: tuple[str, ...] = ("orders",)
    branch: int = Field(default=1, ge=1)

    def metric(self, form: str) -> Metric:
        """Orders a second."""
        return Metric("orders", "orders/s", "higher")


class Tellers:
    """The workload itself."""

    settings = Settings


WORKLOAD = Tellers()
'''


@pytest.fixture
def installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package beside vnuma that brings a workload."""
    (tmp_path / "vnuma_tellers.py").write_text(MODULE, encoding="utf-8")
    info = tmp_path / "vnuma_tellers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vnuma-tellers\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[vnuma.workloads]\ntellers = vnuma_tellers:WORKLOAD\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_every_workload_of_ours_has_settings_and_a_bench_of_one_name() -> None:
    """What a study file can name can be run, and says itself what it is called."""
    assert set(KINDS) == set(WORKLOADS)
    assert all(WORKLOADS[name].settings is kind for name, kind in KINDS.items())


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
    with pytest.raises(InputError, match=r"a\.yml:10: unknown field 'branhc'") as refused:
        parse_study(f"{GOOD}workload:\n  name: tellers\n  branhc: 2\n", "a.yml")

    assert "Did you mean 'branch'?" in str(refused.value)
