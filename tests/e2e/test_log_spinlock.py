"""studies/adkin2014.yml from end to end: the effect, none, a boot that cannot count, restoring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import in_json, vnuma
from tests.support.lab import LabHandle
from tests.support.site import SMALL, write_inventory
from tests.support.studies import LOG
from vnuma.assets import asset
from vnuma.engine.access.connections import sql_server
from vnuma.engine.audit.log import audit_lines, journal_of
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.cell.dataset import prepare_cell
from vnuma.engine.instance.sql_settings import GOVERNOR_OFF, PROCESS_AFFINITY, RESOURCE_POOL
from vnuma.errors import PlacementNotProven
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance.server_configuration import AUTO, read_affinity, read_governor
from vnuma.workloads.log_spinlock.settings import LogSpinlock

STUDY = "adkin2014.yml"


def small_study(folder: Path) -> Path:
    """The shipped study in the fewest blocks that words need, with the deadlines of a lab."""
    study = yaml.safe_load(asset(f"studies/{STUDY}").read_text(encoding="utf-8"))
    study["design"] |= {"blocks": 6, "a_a": False, "warmups": 0}
    study |= {"quiet": {"for_s": 0}, "power": SMALL["power"], "limits": SMALL["limits"]}
    path = folder / STUDY
    path.write_text(json.dumps(study), encoding="utf-8")
    return path


def verdicts(folder: Path, running: LabHandle) -> dict[str, tuple[str, float]]:
    """Word and ratio of the arm away from the log writer, by form."""
    ran = vnuma("run", small_study(folder), "-i", write_inventory(folder, running))
    assert ran.code == 0, ran.text
    return {
        analysis["form"]: (analysis["arms"][0]["verdict"], analysis["arms"][0]["ratio"])
        for analysis in in_json("results", "latest")["analyses"]
    }


@pytest.mark.long
def test_the_published_ratios_come_out_next_to_the_published_figures(tmp_path: Path, lab: LabFactory) -> None:
    """1.55 on disk and 1.76 natively compiled: slower, in either form; the page has both sides' figures."""
    found = verdicts(tmp_path, lab("adkin2014"))

    assert [found[form][0] for form in ("disk", "native")] == ["slower", "slower"]
    assert found["disk"][1] == pytest.approx(1.545, rel=0.01)
    assert found["native"][1] == pytest.approx(1.762, rel=0.01)
    assert vnuma("report", "latest", cwd=tmp_path).code == 0
    assert list((tmp_path / "reports").glob("*.html"))
    spins = [
        figure for figure in in_json("results", "latest")["figures"] if figure["name"] == "spins per insert"
    ]
    assert [figure["arms"][1]["ratio"] for figure in spins] == pytest.approx([4.5, 59], rel=0.05)
    assert [figure["arms"][1]["published_ratio"] for figure in spins] == [4.5, 59.1]


def state(steps: Steps) -> tuple[str, int | None, bool]:
    """SQL Server's process affinity, our pool's share, and whether the Resource Governor is on."""
    with connect(sql_server(steps.target)) as connection:
        governor = read_governor(connection)
        return read_affinity(connection), governor.pool_percent, governor.enabled


def test_a_boot_tells_where_workers_and_log_writers_were(tmp_path: Path, lab: LabFactory) -> None:
    """Affinity only while it is measured; the pool up to the restore; figures with every sample."""
    steps = Steps.prepared(tmp_path / "a", lab("adkin2014"), **LOG)
    context = steps.take()
    assert (PROCESS_AFFINITY.baseline_of(steps.vm), RESOURCE_POOL.baseline_of(steps.vm)) == (
        AUTO,
        GOVERNOR_OFF,
    )

    steps.measure(context)
    steps.measure(context)

    assert state(steps) == (AUTO, 50, True)
    known, samples = steps.facts("workload"), [stored.sample for stored in steps.samples]
    assert [fact.value for fact in known if fact.key == "worker_node"] == [0, 1]
    assert [fact.value for fact in known if fact.key == "log_writer_node"] == [0, 0]
    assert [fact.value for fact in known if fact.key == "cpus_left_out"] == [[0, 8], [0, 8]]
    for sample in samples:
        assert sample.figures is not None
        assert set(sample.figures) == {metric.name for metric in LogSpinlock.figures}
        assert sample.rows == {"disk": 4_000_000, "native": 2_000_000}[sample.form]
    changes = [line.action for line in audit_lines(steps.store, None)]
    assert changes.count("process affinity") == 4
    assert changes.count("resource pool") == 1

    done = steps.restore()

    assert done.equal == done.settings
    assert state(steps) == (AUTO, None, False)


def test_what_a_dead_controller_left_is_restored(tmp_path: Path, lab: LabFactory) -> None:
    """The affinity of a load that was cut off, the pool, and the Resource Governor that was off."""
    steps = Steps.prepared(tmp_path / "a", lab("adkin2014"), **LOG)
    context = steps.take()
    attempt = steps.shape(context)
    boot_cell(context, attempt)
    ready_cell(context, attempt)
    prepare_cell(context, attempt)
    PROCESS_AFFINITY.switch(context.sql(), "9,10,11", journal_of(context))
    assert state(steps) == ("9,10,11", 50, True)

    done = steps.restore()

    assert done.equal == done.settings
    assert state(steps) == (AUTO, None, False)


def test_log_writers_on_both_nodes_make_a_boot_invalid(tmp_path: Path, lab: LabFactory) -> None:
    """One node before the study, so it was not seen; each boot looks again, and does not count."""
    sql = {"version": "15.0.4430.1", "edition": "Developer", "log_writers": "spread"}
    running = lab("paper", vms=[{"name": "sql16", "cores_per_socket": 16, "sql": sql}])
    steps = Steps.prepared(tmp_path / "a", running, **LOG)
    context = steps.take()
    with pytest.raises(PlacementNotProven):
        steps.measure(context)
    assert state(steps)[0] == AUTO
