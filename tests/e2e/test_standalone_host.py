"""A standalone ESXi host: no vCenter, no custom attributes, no cluster, and the whole study all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import vnuma, vnuma_here
from tests.support.looking import settings_now
from tests.support.site import write_inventory, write_study
from vnuma.engine.access.places import store_url
from vnuma.engine.cell.evidence import SCOPE
from vnuma.store import facts, runs
from vnuma.store.open import open_store


def sources_of_logs() -> list[object]:
    """Who gave the vmware.log of each boot of the newest run."""
    with open_store(store_url()).read() as connection:
        run = runs.get_run(connection, "latest")
        return [fact.value for fact in facts.facts_of_run(connection, run.id, SCOPE) if fact.key == "source"]


@pytest.mark.long
@pytest.mark.parametrize("release", ["6.0.0", "8.0.3"])
def test_a_study_runs_on_an_esxi_host_by_itself(tmp_path: Path, lab: LabFactory, release: str) -> None:
    """Planned, run with the log of every boot from the host itself, restored, and all by its own API."""
    running = lab(standalone=True, esxi={"version": release})
    inventory = write_inventory(tmp_path, running)
    before = settings_now(running)
    study = write_study(tmp_path)

    planned = vnuma_here("plan", study, "-i", inventory)
    ran = vnuma("run", study, "-i", inventory)

    assert planned.code == 0, planned.text
    assert ran.code == 0, ran.text
    assert settings_now(running) == before
    assert sources_of_logs() == ["host", "host"]


def test_the_mark_alone_keeps_the_vm_where_there_are_no_custom_attributes(
    tmp_path: Path, lab: LabFactory
) -> None:
    """It is set while the VM is under study, refuses a second controller, and is removed by the restore."""
    running = lab(standalone=True, esxi={"version": "8.0.3"})
    first = Steps.prepared(tmp_path / "first", running)
    first.take()

    mark = json.loads(settings_now(running)["keys"]["vnuma.run"])
    study = write_study(tmp_path, name="second")
    refused = vnuma_here("run", study, "-i", write_inventory(tmp_path, running))
    first.restore()

    assert mark["run"] == "small.1"
    assert refused.code == 8
    assert "vnuma.run" not in settings_now(running)["keys"]


def test_doctor_calls_the_host_by_its_name(tmp_path: Path, lab: LabFactory) -> None:
    """Every check that a vCenter has, and no word of a vCenter."""
    running = lab(standalone=True, esxi={"version": "7.0.3"})

    ran = vnuma_here("doctor", "-i", write_inventory(tmp_path, running))

    assert (ran.code, "vCenter" in ran.out) == (0, False), ran.text


def test_the_free_licence_is_one_sentence_in_doctor_and_blocks_in_preflight(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Its API only reads: found before anything is asked of it, and nothing was changed."""
    running = lab(standalone=True, licence="free", esxi={"version": "8.0.3"})
    inventory = write_inventory(tmp_path, running)
    before = settings_now(running)

    checked = vnuma_here("doctor", "-i", inventory)
    refused = vnuma_here("run", write_study(tmp_path), "-i", inventory)

    assert (checked.code, refused.code) == (4, 5)
    assert all(said.count("P18") == 1 for said in (checked.out, refused.err))
    assert settings_now(running) == before
