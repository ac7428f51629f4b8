"""Restoring a VM in one vSphere session, from what a run left behind: settings, power, mark."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.store.build import new_run
from tests.support.site import write_inventory
from tests.support.stores import new_store
from tests.vsphere.support import LabFactory, Login, change, fault, vm
from vnuma.domain.study.study import PowerRules
from vnuma.domain.vm.setting import Power, Settings
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.audit.log import Journal
from vnuma.engine.instance.sql_settings import SOFT_NUMA
from vnuma.engine.restore.restore_vm import Choice, Restored, Source, facts_now, restore_vm
from vnuma.errors import NotAtBaseline, PowerFailed, RestoreConflict
from vnuma.store.audit import AuditLine
from vnuma.store.tables import utc_now
from vnuma.vsphere.apply import no_fence, reconfigure
from vnuma.vsphere.connect import Session, VmRef
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.vsphere.run_mark import read_mark, write_mark

ON, OFF = Power.ON, Power.OFF
OURS, THEIRS = '{"run": "quick.1"}', '{"run": "b.1"}'
RULES = PowerRules(task_timeout_s=20, shutdown_timeout_s=20, vcenter_retry_s=5)


class Left:
    """A VM as a run left it, and how it was before."""

    def __init__(self, session: Session, folder: Path, inventory: Path) -> None:
        self.session, self.folder = session, folder
        self.ref: VmRef = find_vm(session, "sql16")
        self.before = read_vm(session, self.ref)
        (self.target,) = Inventory(inventory).targets(["sql16"]).values()
        self.journal = Journal(store := new_store(folder / "vnuma.db"), "", "sql16", new_run(store))

    @property
    def settings(self) -> Settings:
        """Its settings now."""
        return read_vm(self.session, self.ref).settings

    @property
    def power(self) -> Power:
        """Its power state now."""
        return read_vm(self.session, self.ref).power

    def set(self, **settings: Any) -> None:
        """As a run or somebody else does."""
        reconfigure(self.session, self.ref, change(self.session, self.ref, **settings))

    def mark(self, text: str) -> None:
        """Write the mark of a run."""
        write_mark(self.session, self.ref, text, read_mark(self.session, self.ref).change_version)

    def source(self, kind: type[Source] = Source, **known: Any) -> Source:
        """The baseline of a run that has set 16 cores per socket."""
        fields: dict[str, Any] = {
            "vm_key": self.before.key,
            "name": "sql16",
            "run": "quick.1",
            "created": None,
            "rules": RULES,
            "choice": "refuse",
            "choose": "",
            "power": self.before.power,
            "known": self.before.settings,
            "written": {"numCoresPerSocket": {16}},
            "power_lines": lambda: (),
        }
        return kind(**fields | known)

    def restored(
        self, kind: type[Source] = Source, fence: Callable[[], None] = no_fence, **known: Any
    ) -> Restored:
        """After a restore."""
        return restore_vm(
            lambda: self.source(kind, **known),
            self.target,
            self.journal,
            home=self.folder,
            fence=fence,
            tell=lambda *_: None,
            say=lambda _: None,
        )


@pytest.fixture
def left(lab: LabFactory, login: Login, tmp_path: Path, request: pytest.FixtureRequest) -> Left:
    """A VM that is on or off, on a lab with these faults."""
    power, faults = getattr(request, "param", (OFF, ()))
    running = lab(vms=[vm(power="on" if power is ON else "off")], faults=list(faults))
    return Left(login(running), tmp_path, write_inventory(tmp_path, running))


def test_settings_and_mark_of_a_vm_that_was_off_are_restored(left: Left) -> None:
    """It stays off; the result lists the net changes."""
    left.set(numCoresPerSocket=16)
    left.mark(OURS)

    done = left.restored()

    assert (done.equal, done.settings, done.power, done.powered_off) == (
        len(left.before.settings),
        len(left.before.settings),
        OFF,
        False,
    )
    assert {"numCoresPerSocket"} <= {edit.setting for edit in done.changes}
    assert left.settings == left.before.settings
    assert read_mark(left.session, left.ref).text is None


@pytest.mark.parametrize("left", [(ON, ())], indirect=True)
def test_a_vm_that_is_on_is_cycled_for_what_needs_it(left: Left) -> None:
    """Off, restored, on again."""
    written = left.settings["numCoresPerSocket"]
    before: Any = {"known": {"numCoresPerSocket": 8}, "is_whole": False}

    done = left.restored(**before, written={"numCoresPerSocket": {written}})

    assert (done.power, done.powered_off, left.power) == (ON, True, ON)
    assert left.settings["numCoresPerSocket"] == 8


@pytest.mark.parametrize("left", [(ON, ())], indirect=True)
def test_a_vm_that_was_off_before_is_off_again(left: Left) -> None:
    """Also if none of its settings differs."""
    done = left.restored(power=OFF)

    assert (done.power, done.powered_off, left.power) == (OFF, True, OFF)


@pytest.mark.parametrize(
    ("known", "mark", "remains"),
    [
        ({"untouched": True}, THEIRS, THEIRS),
        ({"is_known": False}, OURS, None),
        ({"is_known": False}, THEIRS, THEIRS),
    ],
    ids=["another run's", "nothing to restore", "another run's, nothing to restore"],
)
def test_a_vm_that_is_not_the_runs_any_more_keeps_its_settings(
    left: Left, known: dict[str, Any], mark: str, remains: str | None
) -> None:
    """Only the run's own mark is removed."""
    left.set(numCoresPerSocket=16)
    left.mark(mark)

    done = left.restored(**known)

    assert (done.settings, left.settings["numCoresPerSocket"]) == (0, 16)
    assert read_mark(left.session, left.ref).text == remains


@pytest.mark.parametrize(("choice", "cores"), [("refuse", 8), ("theirs", 8), ("baseline", 4)])
def test_a_foreign_change_is_kept_until_a_person_decides(left: Left, choice: Choice, cores: int) -> None:
    """Refused, nothing is touched, not even the mark."""
    left.set(numCoresPerSocket=8)
    left.mark(OURS)

    if choice == "refuse":
        with pytest.raises(RestoreConflict):
            left.restored(choice=choice)
        assert read_mark(left.session, left.ref).text == OURS
    else:
        left.restored(choice=choice)
        assert read_mark(left.session, left.ref).text is None

    assert left.settings["numCoresPerSocket"] == cores


def test_a_vm_of_a_lab_that_ended_is_not_looked_for(left: Left) -> None:
    """Nothing is left of it."""
    gone: dict[str, Any] = {"lab": "paper", "vm_key": f"another/{left.before.key.partition('/')[2]}"}

    assert left.restored(**gone).lab_ended
    assert facts_now(left.source(**gone), left.target) is None
    found = facts_now(left.source(), left.target)
    assert found is not None
    assert found.settings == left.before.settings


@pytest.mark.parametrize("left", [(OFF, [fault("power_on_refused", times=0)])], indirect=True)
def test_a_vm_that_does_not_power_on_keeps_its_mark(left: Left) -> None:
    """Its settings are restored, and the failure is raised: the run is not done with it."""
    left.set(numCoresPerSocket=16)
    left.mark(OURS)

    with pytest.raises(PowerFailed):
        left.restored(power=ON)

    assert left.settings == left.before.settings
    assert read_mark(left.session, left.ref).text == OURS


def test_a_mark_is_removed_though_somebody_writes_meanwhile(left: Left) -> None:
    """The write that comes in between is kept, and the mark goes at the next try."""
    left.mark(OURS)
    checks = count()

    def somebody_writes() -> None:
        if next(checks) == 0:  # after the mark was read
            left.set(cpuShares="high")

    left.restored(fence=somebody_writes)

    assert read_mark(left.session, left.ref).text is None
    assert left.settings["cpuShares"] == "high"


def test_a_setting_that_reads_back_different_is_not_called_restored(left: Left) -> None:
    """The VM keeps the run's mark."""
    left.set(numCoresPerSocket=16)
    left.mark(OURS)

    class Elusive(Source):
        def before(self, now: Settings) -> Settings:
            return {**self.known, "numCoresPerSocket": 8 if now["numCoresPerSocket"] != 8 else 4}

    with pytest.raises(NotAtBaseline):
        left.restored(Elusive, written={"numCoresPerSocket": {4, 8, 16}})

    assert read_mark(left.session, left.ref).text == OURS


@pytest.mark.parametrize("left", [(ON, [fault("shutdown_slow", seconds=1)])], indirect=True)
def test_a_shutdown_that_the_run_asked_for_is_waited_for(left: Left) -> None:
    """Otherwise it would take the VM off after it was restored."""
    asked = [{"setting": "power", "before": str(ON), "after": str(OFF)}]
    line = AuditLine(
        utc_now(), "ops", "sql16", left.before.key, "quick.1", None, "power", asked, None, "intended"
    )
    with left.session.understanding():
        left.ref.ShutdownGuest()

    done = left.restored(power_lines=lambda: [line])

    assert (done.power, left.power) == (ON, ON)


@pytest.mark.parametrize("left", [(ON, ())], indirect=True)
@pytest.mark.parametrize(
    ("wanted", "proven", "cycled"),
    [(True, True, False), (True, False, True), (False, True, True), (False, False, True)],
    ids=["as started", "as started, unproven", "by a restart", "by a restart, unproven"],
)
def test_sql_servers_own_setting_is_restored_with_the_vm(
    left: Left, wanted: bool, proven: bool, cycled: bool
) -> None:
    """In the boot that goes on, if the server is proven to be the VM's; else after a boot of its own."""
    server = sql_server(left.target)
    SOFT_NUMA.switch(server, not wanted, left.journal)
    left.journal.made.clear()

    done = left.restored(inside={SOFT_NUMA: wanted}, proves=lambda _session, _ref: proven)

    assert (done.power, done.powered_off, done.equal - len(left.before.settings)) == (ON, cycled, 1)
    SOFT_NUMA.verify(server, wanted, 20)
