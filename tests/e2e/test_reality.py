"""What real servers have and a tidy lab lacks: a used VM, and VMs that cannot be studied as they are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import command, vnuma, vnuma_here
from tests.support.lab import LabHandle, start_lab
from tests.support.looking import answer_by_hand, settings_now, settings_of
from tests.support.site import SMALL, write_inventory, write_study
from tests.support.stores import attempt_lines
from tools.soak.points import Stage
from tools.soak.watch import Watch
from vnuma.engine.run.next_cell import NoCell, claim_next_cell
from vnuma.errors import NotAtBaseline, QuestionPending

STUDIES = Path(__file__).parents[2] / "studies"

ALL_RESERVED = {
    **{"affinity": "physical_cores", "memory_reservation": "locked", "cpu_reservation": "full"},
    "latency_sensitivity": "high",
}
"""Settings that sql16 of the scenario lacks until its first reconfigure."""


@pytest.fixture(scope="module")
def reality(lab_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHandle]:
    """The scenario, for tests that change no VM."""
    running = start_lab(lab_binary, tmp_path_factory.mktemp("reality"), "reality", {})
    yield running
    running.stop()


def dakic(folder: Path, **changes: Any) -> Path:
    """The 2019 paper's study in its shape, with one block of few rows."""
    study = yaml.safe_load((STUDIES / "dakic2019.yml").read_text(encoding="utf-8"))
    study |= {name: SMALL[name] for name in ("dataset", "quiet", "power", "limits")}
    kept = {name: value for name, value in study["design"].items() if name not in ("stop", "max_blocks")}
    study["design"] = kept | {"blocks": 1}
    # shutdown_slow: one of the scenario's shutdowns is late
    study["power"] = study["power"] | {"shutdown_timeout_s": 1}
    study["workload"] |= {"sizes": [20], "forms": ["client"]}
    del study["published"]
    path = folder / "dakic2019.yml"
    path.write_text(json.dumps(study | changes), encoding="utf-8")
    return path


def kill_in_a_query(study: Path, inventory: Path, running: LabHandle, home: Path) -> Watch:
    """Run a study and kill every process of it while its first statement runs."""
    with subprocess.Popen(
        command("run", study, "-i", inventory),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        watch = Watch(running, home, "dakic2019.1")
        assert watch.begins(Stage.QUERY, lambda: process.poll() is not None)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=120)
    return watch


def test_a_used_vm_is_restored_from_an_arms_shape(tmp_path: Path, lab: LabFactory) -> None:
    """Absent fields and stale keys are nobody's change; a late shutdown costs no attempt."""
    running = lab("reality")
    before = settings_now(running, "sql16")
    power = {"shutdown_timeout_s": 1}
    steps = Steps.shaped(tmp_path / "a", running, all_arms=ALL_RESERVED, power=power)
    assert settings_now(running, "sql16") != before

    done = steps.restore()

    assert done.equal == done.settings
    assert settings_now(running, "sql16") == before
    assert steps.vm.at_baseline


@pytest.mark.long
@pytest.mark.parametrize(("way", "shipped"), [("restore", False), ("resume", False), ("restore", True)])
def test_the_papers_study_of_a_used_vm_survives_kill_9(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path, way: str, *, shipped: bool
) -> None:
    """Absent fields and stale keys are nobody's change; a late shutdown and a long recovery cost no attempt.

    Restored, the VM is as it was, and a second restore finds nothing to do; also with the file as shipped.
    """
    running = lab("reality")
    before = settings_now(running, "sql16")
    inventory = write_inventory(tmp_path, running, ["sql16"])
    study = STUDIES / "dakic2019.yml" if shipped else dakic(tmp_path, all_arms=ALL_RESERVED)
    watch = kill_in_a_query(study, inventory, running, vnuma_home)
    assert settings_now(running, "sql16") != before

    ran = vnuma("restore") if way == "restore" else vnuma("run", "--resume", "dakic2019.1")

    assert ran.code == 0, ran.text
    assert settings_now(running, "sql16") == before
    again = vnuma_here("restore", "sql16", "--dry-run")
    assert (again.code, settings_now(running, "sql16")) == (0, before)
    if way == "resume":
        ended = [line.outcome for line in attempt_lines(watch.store) if line.outcome != "interrupted"]
        assert ended == ["valid"] * 6  # five arms, and the reference again


def test_what_cannot_be_judged_is_named_and_the_rest_is_judged(reality: LabHandle, tmp_path: Path) -> None:
    """No BIOS is asked for of an ESXi in a VM; of a host without hardware, and of vCLS, nothing is judged."""
    ran = vnuma_here("check", "--all", "-i", write_inventory(tmp_path, reality), "--format", "json")

    assert ran.code == 0, ran.text
    found = json.loads(ran.out)
    assert {(one["kind"], one["name"]) for one in found["unseen"]} == {
        ("host", "half-read"),
        ("vm", "vCLS-1"),
    }
    assert (found["summary"]["vms"], found["summary"]["vms_block"]) == (6, 0)
    assert "T22" not in {one["rule"] for one in found["findings"]}
    unjudged = {rule: entry["vms"] for entry in found["not_evaluated"] for rule in entry["rules"]}
    assert unjudged["T22"] >= 1


def test_vms_that_cannot_be_studied_as_they_are_stay_so(reality: LabHandle, tmp_path: Path) -> None:
    """Suspended, stopped by a question, a passthrough device with unreserved memory: each has its finding."""
    blocked = {"suspended": {"P04"}, "full": {"P02"}, "gpu": {"P15"}}
    study = write_study(tmp_path, vms=[*blocked], all_arms={"memory_reservation": "none"})
    before = settings_of(reality, [*blocked])

    nobody = dict.fromkeys(blocked, 1)  # a port that refuses at once
    inventory = write_inventory(tmp_path, reality, blocked, nobody)
    ran = vnuma_here("plan", study, "-i", inventory, "--format", "json")

    assert ran.code == 5, ran.text
    assert {
        planned["vm"]: {one["id"] for one in planned["findings"] if one["severity"] == "block"}
        for planned in json.loads(ran.out)["vms"]
    } == blocked
    assert settings_of(reality, [*blocked]) == before


def test_a_vm_on_a_host_without_hardware_is_not_planned(reality: LabHandle, tmp_path: Path) -> None:
    """Nothing can be predicted there: exit code 4, as of a host that vCenter has lost."""
    study = write_study(tmp_path, vm="unread")
    assert vnuma_here("plan", study, "-i", write_inventory(tmp_path, reality, ["unread"])).code == 4


@pytest.mark.long
@pytest.mark.parametrize(
    ("vm", "shape"),
    [
        ("gpu", {}),
        ("in-nested", {"vcpus": 4, "reference": "1x4", "arms": ["1x4", "4x1"]}),
    ],
)
def test_a_vm_that_is_off_is_studied_and_off_again(
    tmp_path: Path, lab: LabFactory, vm: str, shape: dict[str, Any]
) -> None:
    """A passthrough device with reserved memory; old hardware on an ESXi 8 that is itself a VM."""
    running = lab("reality")
    before = settings_now(running, vm)
    assert before["power"] == "poweredOff"

    ran = vnuma("run", write_study(tmp_path, vm=vm, **shape), "-i", write_inventory(tmp_path, running, [vm]))

    assert ran.code == 0, ran.text
    assert settings_now(running, vm) == before


def test_a_question_to_a_running_vm_ends_its_run_until_a_person_answers(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The VM stands still during a boot: no attempt is repeated. Answered, it is restored."""
    running = lab(faults=[{"kind": "question_running", "vm": "sql16", "boot": 2}])
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running, limits={"attempts_per_cell": 3})
    context = steps.take()

    with pytest.raises(QuestionPending):
        steps.measure(context)

    assert isinstance(claim_next_cell(context), NoCell)
    with pytest.raises(NotAtBaseline):
        steps.restore()
    assert settings_now(running)["power"] == "poweredOn"
    answer_by_hand(running, "0")
    steps.restore()
    assert settings_now(running) == before
