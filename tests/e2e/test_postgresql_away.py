"""A store on PostgreSQL that is away or full while a run needs it: no attempt is used up, no VM is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import select

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support import small_disk as disk
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.postgresql import Cluster, database_of, find_binaries, start
from tests.support.stores import attempt_lines
from tests.support.supervised import Struck
from vnuma.engine.restore.restore_vm import Restored
from vnuma.engine.run import oversight
from vnuma.engine.run import supervise as supervise_module
from vnuma.engine.run.oversight import SupervisedRun, Watch
from vnuma.engine.run.progress import Progress
from vnuma.engine.run.supervise import restore_vms, supervise
from vnuma.errors import NotAtBaseline, StoreUnwritable
from vnuma.store import tables
from vnuma.store.postgresql import Patience
from vnuma.store.rows import Outcome

pytestmark = pytest.mark.long


@pytest.fixture
def server() -> Iterator[Cluster]:
    """A server that only this test uses."""
    server = start(find_binaries())
    try:
        yield server
    finally:
        server.stop()


@dataclass
class Away:
    """Takes the store away once the VM was powered off, and brings it back when the run says so."""

    lab: LabHandle
    strike: Callable[[], object]
    back: Callable[[], object]
    said: list[str] = field(default_factory=list)
    struck: bool = False

    def __call__(self, progress: Progress) -> None:
        """Called about once a second while the play runs."""
        if not self.struck and any(event["event"] == "power_off" for event in self.lab.events):
            self.struck = True
            self.strike()
        elif not self.said and (words := progress.vms[0].waits_for):
            self.said.append(words)
            self.back()


def test_connections_that_are_all_taken_cost_no_attempt(
    tmp_path: Path, lab: LabFactory, server: Cluster
) -> None:
    """The run's own connection works and no step gets one: it waits with words, and then goes on."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running, url=server.new_store(), arms=["1x16"])
    taken = ExitStack()
    away = Away(running, lambda: taken.enter_context(server.crowd()), taken.close)

    ended = supervise(steps.work, away)

    assert ended.problems == ()
    assert away.said
    assert [line.outcome for line in attempt_lines(steps.store)] == [Outcome.VALID]
    assert settings_now(running) == before


def test_a_server_that_stays_away_ends_the_run(
    tmp_path: Path, lab: LabFactory, server: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The VM cannot be restored without its baseline: it is named, with the store that is away."""
    monkeypatch.setattr(oversight, "AWAY", oversight.AWAY * 0)
    monkeypatch.setattr(Patience, "LIMIT_S", 1.0)
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running, url=server.new_store())

    with pytest.raises(NotAtBaseline):
        Struck(running, server.shut_down).run(steps)


@pytest.fixture
def small_disk(server: Cluster) -> Iterator[Path]:
    """A file system of its own, in the server's folder."""
    with disk.small_disk(server.folder / "small", "size=64m,mode=0777") as folder:
        yield folder


def test_a_full_disk_ends_the_run_and_names_the_store(
    tmp_path: Path, lab: LabFactory, server: Cluster, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the steps of cells meet it: somebody frees space before the VM is restored."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running, url=server.new_store())
    place = small_disk / "tables"
    place.mkdir()
    shutil.chown(place, "nobody")
    name = database_of(steps.url)
    steps.store.disconnect()
    server.execute(
        steps.url.replace(name, "postgres"),
        f"CREATE TABLESPACE small LOCATION '{place}'",
        f"ALTER DATABASE {name} SET TABLESPACE small",
    )

    filler = small_disk / "filler"

    def freed(work: SupervisedRun, watch: Watch) -> tuple[list[Restored], list[Exception]]:
        filler.unlink()
        return restore_vms(work, watch)

    monkeypatch.setattr(supervise_module, "restore_vms", freed)

    ended = Struck(running, lambda: disk.fill(filler)).run(steps)

    assert isinstance(ended.worst, StoreUnwritable), ended.problems
    assert str(steps.store.place) in ended.worst.what
    assert settings_now(running) == before
    assert Outcome.FAILED not in {line.outcome for line in attempt_lines(steps.store)}
    with steps.store.read() as connection:
        assert len(connection.execute(select(tables.vm.c.restored_at)).all()) == 1
