"""A run from end to end on the lab: measured, verified, stored, restored, shown."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import in_json, status, vnuma, vnuma_here
from tests.support.looking import settings_now
from tests.support.otlp import receiver
from tests.support.site import write_inventory, write_study
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.places import store_url
from vnuma.engine.cell.boot import boot_cell
from vnuma.store import facts, runs, samples
from vnuma.store.open import open_store
from vnuma.store.rows import Sample


def stored_samples() -> list[Sample]:
    """Every sample of the newest run."""
    store = open_store(store_url())
    with store.read() as connection:
        run = runs.get_run(connection, "latest")
        return [stored.sample for stored in samples.iter_samples(connection, run.id)]


def stored_facts(scope: str, key: str) -> list[object]:
    """The values of a fact of the newest run, in the order recorded."""
    store = open_store(store_url())
    with store.read() as connection:
        run = runs.get_run(connection, "latest")
        return [fact.value for fact in facts.facts_of_run(connection, run.id, scope) if fact.key == key]


SECRET_PATH = "s3cr3t-hook"


def notifying(inventory: Path, folder: Path) -> Path:
    """The file of a command that is notified of each run, next to a webhook that nobody listens to."""
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        url = folder / "hook-url"
        url.write_text(f"https://127.0.0.1:{unheard.getsockname()[1]}/{SECRET_PATH}\n", encoding="utf-8")
    told = folder / "told.jsonl"
    document = json.loads(inventory.read_text(encoding="utf-8"))
    ways = [{"command": ["tee", "-a", str(told)]}, {"webhook": {"url": {"file": str(url)}}}]
    document["all"]["vars"] = {"vnuma_notify": ways}
    inventory.write_text(json.dumps(document), encoding="utf-8")
    return told


def test_a_study_runs_is_restored_and_reports(tmp_path: Path, lab: LabFactory, vnuma_home: Path) -> None:
    """Every cell valid, the VM restored, results in three formats, a page, a status.

    Its declared rule ends it after the first block, without missing cells. No password is left in the store,
    the logs or the output. Notifications are sent; a failing webhook is harmless and named. Traces are sent
    where OTEL_* asks for them. The workers of all cells use the supervisor's one login at vCenter, of which
    nothing is left.
    """
    running = lab()
    inventory = write_inventory(tmp_path, running)
    told = notifying(inventory, tmp_path)
    before = settings_now(running)
    study = write_study(
        tmp_path,
        design={"sentinel": True, "blocks": 3, "max_hours": 1e-7},
        workload={"sizes": [20, 30], "forms": ["client", "server", "into"]},
    )

    earlier = running.logins()
    with receiver() as traced:
        ran = vnuma("run", study, "-i", inventory, env={"OTEL_EXPORTER_OTLP_ENDPOINT": traced.url})

    assert ran.code == 0, ran.text
    assert running.logins() == earlier | {"succeeded": earlier["succeeded"] + 1}
    assert running.open_sessions() == 0
    assert not list((vnuma_home / "private").iterdir())
    assert {"cell 1x16", "power_on", "measure"} <= {span.name for span in traced.spans}
    assert settings_now(running) == before
    secret = running.vcenter.password
    assert secret not in ran.text
    files = [path.read_bytes() for path in vnuma_home.rglob("*") if path.is_file()]
    assert [
        content for content in files if secret.encode() in content or SECRET_PATH.encode() in content
    ] == []

    started, ended = map(json.loads, told.read_text(encoding="utf-8").splitlines())
    assert (started["event"], ended["event"], ended["exit_code"]) == ("started", "ended", 0)
    assert started["simulated"] is ended["simulated"] is True
    assert ended["vms"][0]["at_baseline"] is True
    assert ran.err.count("Not sent  ") == 2
    assert SECRET_PATH not in ran.text
    assert vnuma_here("audit", "small.1").out.count("notify failed") == 2

    assert vnuma_here("results", "small.1").out.startswith("SIMULATED")
    document = in_json("results", "small.1")
    assert document["simulated"] is True
    assert (document["declared"]["as_declared"], document["declared"]["earlier_runs"]) == (True, [])
    assert vnuma_here("results", "small.1", "--format", "csv").out.count("\n") > 2

    for sample in stored_samples():
        assert isinstance(sample.execution, dict)
        assert sample.execution["clock"] == "query_stats"  # these joins take less than 100 ms
        assert sample.execution["plan_hash"].startswith("0x")
        assert sample.execution["message_elapsed_ms"] == pytest.approx(sample.elapsed_ms, abs=0.51)
    assert len(stored_facts("sentinel", "elapsed_ms")) == 2
    for counted in stored_facts("counters", "vm"):
        assert isinstance(counted, dict)
        assert {"cpu.ready.summation", "cpu.costop.summation"} <= set(counted)

    page = vnuma("report", "small.1", cwd=tmp_path)
    assert page.code == 0
    assert (tmp_path / "reports" / "small.1.simulated.html").read_text(encoding="utf-8").count(
        "SIMULATED"
    ) > 1

    overview = status()
    (line,) = overview["runs"]
    assert (line["run"], line["valid"], line["total"], overview["not_at_baseline"]) == ("small.1", 2, 2, [])
    assert line["event"].startswith("max_hours: ")


@pytest.mark.long
def test_a_database_that_stays_is_named_where_the_run_ends(tmp_path: Path, lab: LabFactory) -> None:
    """SQL Server of the last boot never answers: the VM is restored, the study's database could not go."""
    running = lab(faults=[{"kind": "sql_never", "vm": "sql16", "boot": 3}])
    study = write_study(tmp_path, power={"sql_timeout_s": 2})

    ran = vnuma("run", study, "-i", write_inventory(tmp_path, running))

    assert ran.code == 6, ran.text
    (left,) = [line for line in ran.err.splitlines() if line.startswith("Left ")]
    assert "vnuma_study was not dropped" in left


def test_a_dry_run_changes_nothing_and_stores_no_run(tmp_path: Path, lab: LabFactory) -> None:
    """It is the plan."""
    running = lab()
    before = settings_now(running)

    study, inventory = write_study(tmp_path), write_inventory(tmp_path, running)

    ran = vnuma_here("run", study, "-i", inventory, "--dry-run")

    assert ran.code == 0, ran.text
    assert settings_now(running) == before
    assert status()["runs"] == []


def test_a_vm_that_was_off_is_off_again(tmp_path: Path, lab: LabFactory) -> None:
    """The power state belongs to the baseline."""
    running = lab(vms=[{"name": "sql16", "power": "off"}])
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)
    context = steps.take()
    boot_cell(context, steps.shape(context))

    done = steps.restore()

    assert done.power is Power.OFF
    assert settings_now(running) == before
