"""The shipped study of network calls, shrunk, on the scenarios whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.looking import settings_now
from tests.support.site import write_inventory
from vnuma.engine.context import store_url
from vnuma.store import runs, samples
from vnuma.store.open import open_store

STUDY = Path(__file__).resolve().parents[2] / "studies" / "chang2005.yml"


def shrunk(folder: Path, **design: Any) -> Path:
    """Two arms of the study file, eight callers, one window a boot; all else as it is shipped."""
    study = YAML(typ="safe").load(STUDY.read_text(encoding="utf-8"))
    study["arms"] = [arm for arm in study["arms"] if arm["name"] in ("4-way", "16-way")]
    study["design"] |= {"a_a": False, "iterations": 1} | design
    study["workload"] |= {"forms": ["noop"], "sizes": [8], "seek_rows": 50}
    study["published"]["figures"] = {"noop": {8: study["published"]["figures"]["noop"][20]}}
    study["quiet"] = {"for_s": 0}
    study["limits"] = {"attempts_per_cell": 1}
    path = folder / "chang2005.yml"
    path.write_text(json.dumps(study), encoding="utf-8")
    return path


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "says", "never"),
    [("chang2005", "16-way  slower", "faster by"), ("chang2005-null", "16-way  ", "slower by")],
)
def test_the_study_finds_the_effect_that_there_is_and_none_else(
    tmp_path: Path, lab: LabFactory, scenario: str, says: str, never: str
) -> None:
    """Sixteen ways on four nodes answer fewer calls than four; without an effect nobody is slower."""
    running = lab(scenario)
    before = settings_now(running)

    ran = vnuma("run", shrunk(tmp_path, blocks=6), "-i", write_inventory(tmp_path, running))

    assert ran.code == 0, ran.text
    assert settings_now(running) == before
    table = vnuma("results", "latest").out
    assert says in table
    assert never not in table
    assert "Chang 2005" in table


def test_windows_that_others_disturb_make_no_cell(tmp_path: Path, lab: LabFactory) -> None:
    """The run ends with its cells missing and the reason told; the VM is put back."""
    running = lab("chang2005-others")
    before = settings_now(running)

    ran = vnuma("run", shrunk(tmp_path, blocks=1), "-i", write_inventory(tmp_path, running))

    assert ran.code == 6, ran.text
    assert "measurement_failed" in vnuma("results", "latest").out
    store = open_store(store_url())
    with store.read() as connection:
        run = runs.get_run(connection, "latest")
        reasons = [stored.sample.reason or "" for stored in samples.iter_samples(connection, run.id)]
    assert len(reasons) == 2
    assert all("Other clients sent" in reason for reason in reasons)
    assert settings_now(running) == before
