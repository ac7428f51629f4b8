"""Which process supervises which VM in a run over several sites, and the status of a site."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from tests.report.build import study_text
from tests.store.build import Leased, claim, new_vm
from vnuma.cli.progress import LineLog
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.target import VmTarget
from vnuma.engine.lease.supervision import SILENT_AFTER, Supervisor, ask_to_stop, claim_supervision, is_alive
from vnuma.engine.run.oversight import Work
from vnuma.engine.run.overview import overview
from vnuma.engine.run.progress import Progress, progress_of
from vnuma.engine.sites.following import divided
from vnuma.errors import InputError, VmHeld
from vnuma.store import baselines, runs, sites, tables
from vnuma.store.copy_rows import copy_run
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.rows import Run, RunState

BESIDE = Supervisor(os.getppid())
"""Another process of this machine, which lives."""

UNSEEN = "mesh has not reached it since"


@dataclass(frozen=True)
class Going:
    """A run of a VM that site-b works on, and of one that the controller works on itself."""

    url: str
    store: Store
    run: Run
    there: Leased
    here: Leased

    @property
    def part(self) -> Run:
        """The node's part of the run."""
        with self.store.read() as connection:
            return runs.at_site(connection, runs.get_run(connection, self.run.name), "site-b")

    def seen(self) -> Progress:
        """What everybody who asks is shown."""
        with self.store.read() as connection:
            return progress_of(connection, self.run.name)

    def silent(self) -> None:
        """Let the node have given no sign for so long that its process counts as dead."""
        with self.store.write() as connection:
            at = datetime.now(UTC) - SILENT_AFTER - timedelta(seconds=1)
            connection.execute(update(tables.site).values(heartbeat_at=at))

    def words(self) -> str | None:
        """What the status says of the node."""
        return self.seen().sites[0].words


@pytest.fixture
def going(tmp_path: Path) -> Going:
    """Without a supervisor yet."""
    url = default_url(tmp_path)
    store = open_store(url)
    with store.write() as connection:
        run = runs.create_run(connection, runs.save_study(connection, "quick", study_text()), seed=7)
        sites.add_sites(connection, run.id, ["site-b"])
        runs.set_run_state(connection, run.id, RunState.RUNNING)
    there = new_vm(store, run, key="vc/b", name="sql-b", host="esx-b", arms=2, node="site-b")
    here = new_vm(store, run, key="vc/a", name="sql-a", host="esx-a", arms=2)
    return Going(url, store, run, there, here)


def test_each_vm_is_in_use_while_its_own_process_lives(going: Going) -> None:
    """The controller is dead, the node works on: only the controller's VM may be restored."""
    claim_supervision(going.store, going.part, BESIDE)

    with going.store.read() as connection:
        used = {vm.name: is_alive(run) for vm, run in baselines.unrestored(connection)}

    assert used == {"sql-b": True, "sql-a": False}


def test_a_nodes_part_is_supervised_by_one_process(going: Going) -> None:
    """Another work unit of the same part is refused; the run and its other VMs are not."""
    claim_supervision(going.store, going.part, BESIDE)

    with pytest.raises(VmHeld, match=str(BESIDE.pid)):
        claim_supervision(going.store, going.part)
    claim_supervision(going.store, going.run)


def test_a_run_is_at_work_while_a_node_is(going: Going) -> None:
    """Its line in the status says so, and a stop is passed on."""
    claim_supervision(going.store, going.part, BESIDE)

    (line,) = overview(going.url).runs
    said = ask_to_stop(going.run.name, after_cell=False, url=going.url)

    assert line.alive
    assert "stops after this iteration" in said


def test_a_reachable_site_is_not_reported(going: Going) -> None:
    """Neither before its part begins nor while it is at work."""
    words: list[str | None] = [going.words()]
    claim_supervision(going.store, going.part, BESIDE)
    words.append(going.words())

    assert words == [None, None]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda going: claim_supervision(going.store, going.part, BESIDE), [UNSEEN, "its work goes on"]),
        (lambda going: None, [UNSEEN, "; last sign in the store"]),
        (Going.silent, [UNSEEN, "no sign of its work in the store since"]),
    ],
)
def test_a_site_that_is_cut_off_is_named_with_what_is_known(
    going: Going, change: Callable[[Going], None], expected: list[str]
) -> None:
    """Since when the mesh has not reached it, and its last sign in the store: it goes on if that is later.

    A node that reaches the store through the mesh alone gives none while it is cut off.
    """
    claim_supervision(going.store, going.part, BESIDE)
    with going.store.write() as connection:
        sites.set_unseen(connection, going.run.id, "site-b", datetime.now(UTC))
    change(going)

    (line,) = overview(going.url).runs

    assert [words in line.sites[0] for words in expected] == [True, True]


def test_a_site_whose_part_has_ended_is_not_reported(going: Going) -> None:
    """However long ago its process was heard of."""
    claim_supervision(going.store, going.part, BESIDE)
    with going.store.write() as connection:
        sites.set_end(connection, going.run.id, "site-b", {"problems": []})
    going.silent()

    assert going.words() is None


def test_a_line_says_that_a_site_is_hidden_and_that_it_is_seen_again(
    going: Going, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once each, however often it is looked at."""
    claim_supervision(going.store, going.part, BESIDE)
    log = LineLog()
    for since in (datetime.now(UTC), None):
        with going.store.write() as connection:
            sites.set_unseen(connection, going.run.id, "site-b", since)
        log.show(going.seen())
        log.show(going.seen())

    lines = [line for line in capsys.readouterr().err.splitlines() if "site=site-b" in line]
    assert len(lines) == 2
    assert "has not reached it since" in lines[0]
    assert "seen again" in lines[1]


def test_a_new_work_unit_forgets_how_the_last_one_ended(going: Going) -> None:
    """Otherwise a part that was begun again would count as ended."""
    with going.store.write() as connection:
        sites.set_end(connection, going.run.id, "site-b", {"problems": []})
        sites.begin(connection, going.run.id, "site-b")
        sites.set_unit(connection, going.run.id, "site-b", "Ab12")
        (site,) = sites.sites_of_run(connection, going.run.id)

    assert (site.end, site.unit, site.unit_at is None) == (None, "Ab12", False)


def test_progress_at_a_node_is_of_its_vms_alone(going: Going) -> None:
    """A node that waited for other sites' cells would never end."""
    claim(going.store, going.there)

    assert [vm.name for vm in going.seen().at("site-b").vms] == ["sql-b"]
    assert [vm.name for vm in going.seen().at(None).vms] == ["sql-a"]


def test_an_archive_says_which_node_measured_and_nothing_of_processes(going: Going, tmp_path: Path) -> None:
    """Who was at work is about the moment of the copy."""
    claim_supervision(going.store, going.part, BESIDE)
    other = open_store(f"sqlite:///{tmp_path / 'other.db'}")

    with going.store.read() as source, other.write() as target:
        made = copy_run(source, target, going.run.id, name="quick.1", number=1)
        copied = progress_of(target, "quick.1")
        known = sites.sites_of_run(target, made)

    assert {vm.name: vm.node for vm in copied.vms} == {"sql-b": "site-b", "sql-a": None}
    assert known == ()


def target(name: str, node: str | None) -> VmTarget:
    """A VM of an inventory."""
    there = {"host": "vc", "user": "u", "password": {"env": "X"}}
    return VmTarget.model_validate({"name": name, "vm": name, "node": node, "vcenter": there, "sql": there})


def work(going: Going, targets: dict[str, VmTarget]) -> Work:
    """The run with these VMs."""
    return Work(going.store, "", going.run, parse_study(study_text(), "quick"), targets, Path("hosts.yml"))


def test_a_run_keeps_the_nodes_that_it_was_started_with(going: Going) -> None:
    """Another node has another hold on the VM: the name, both nodes, and what to do are said."""
    targets = {"sql-b": target("sql-b", "site-c"), "sql-a": target("sql-a", None)}

    with pytest.raises(InputError, match=r"sql-b.*site-b.*site-c") as refused:
        divided(work(going, targets))

    assert "vnuma restore sql-b" in str(refused.value.fix)


def test_a_daemon_that_does_not_answer_is_asked_once_a_look(
    going: Going, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that hangs takes 20 s a question: asked for every site, the controller would seem dead."""
    monkeypatch.setenv("VNUMA_RECEPTOR_SOCKET", str(tmp_path / "control.sock"))
    claim_supervision(going.store, going.part, BESIDE)
    with going.store.write() as connection:
        sites.set_unit(connection, going.run.id, "site-b", "abcdefgh")
    targets = {"sql-b": target("sql-b", "site-b"), "sql-a": target("sql-a", None)}
    _, elsewhere = divided(work(going, targets))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(tmp_path / "control.sock"))
        listening.listen()
        listening.settimeout(0)
        with ThreadPoolExecutor() as pool:
            looking = pool.submit(elsewhere.look)
            asked = 0
            while not looking.done():
                with suppress(BlockingIOError):
                    listening.accept()[0].close()
                    asked += 1
            looking.result()

    assert asked == 1
    assert elsewhere.is_at_work()
