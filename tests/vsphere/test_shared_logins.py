"""One login per vCenter and account: sessions are shared, renewed by one process, refusals remembered."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import pytest

from tests.support.lab import LabHandle
from tests.vsphere.support import LabFactory, vcenter_of
from vnuma.errors import AccountRefused, VCenterUnreachable
from vnuma.logins import Logins
from vnuma.vsphere.connect import SessionExpired, connect, log_out
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.vsphere.wait import wait_for


@pytest.fixture
def shared(tmp_path: Path) -> Logins:
    """What the processes of one run know of their logins."""
    return Logins(tmp_path)


def logged_in(lab: LabHandle) -> int:
    """How many logins of the administrator succeeded."""
    return int(lab.logins()["succeeded"])


def test_connections_one_after_another_use_one_session_until_its_owner_logs_out(
    shared_lab: LabHandle, tmp_path: Path
) -> None:
    """Another process of the run, which knows but the folder, uses the same session."""
    before = logged_in(shared_lab)
    keys = set()
    for _ in range(3):
        with connect(vcenter_of(shared_lab, logins=Logins(tmp_path))) as session:
            keys.add(session.key)
            assert read_vm(session, find_vm(session, "sql16")).name == "sql16"

    assert len(keys) == 1
    assert logged_in(shared_lab) - before == 1

    log_out(Logins(tmp_path))
    with connect(vcenter_of(shared_lab, logins=Logins(tmp_path))) as session:
        assert session.key not in keys
    log_out(Logins(tmp_path))


def test_a_shared_session_costs_no_more_round_trips_than_a_login(
    shared_lab: LabHandle, shared: Logins
) -> None:
    """Whether it is still open is asked in place of logging in."""
    with connect(vcenter_of(shared_lab)) as alone:
        own = alone.round_trips
    with connect(vcenter_of(shared_lab, logins=shared)):
        pass
    with connect(vcenter_of(shared_lab, logins=shared)) as session:
        assert session.round_trips <= own
    log_out(shared)


def test_a_concurrent_read_needs_no_login_of_its_own(shared_lab: LabHandle) -> None:
    """A second connection belongs to the same session, which is still there when it is closed."""
    before = logged_in(shared_lab)
    with connect(vcenter_of(shared_lab)) as session:
        with session.second_connection() as other, ThreadPoolExecutor(1) as pool:
            name = pool.submit(lambda: read_vm(other, find_vm(other, "sql16")).name)
            assert read_vm(session, find_vm(session, "sql16")).name == name.result()
        trips = session.round_trips
        assert other.round_trips > 1
        assert trips > other.round_trips
        assert find_vm(session, "sql16") is not None
    assert logged_in(shared_lab) - before == 1


def test_a_concurrent_read_can_be_abandoned(shared_lab: LabHandle) -> None:
    """As after Ctrl-C: the other thread makes no further call, and the session itself goes on."""
    with connect(vcenter_of(shared_lab)) as session:
        with session.second_connection() as other:
            other.transport.end()
            with pytest.raises(VCenterUnreachable):
                find_vm(other, "sql16")
        assert find_vm(session, "sql16") is not None


def test_a_session_that_has_ended_is_renewed_once_for_all(lab: LabFactory, shared: Logins) -> None:
    """Eight workers meet an expired session at once: one of them logs in."""
    running = lab()
    with connect(vcenter_of(running, logins=shared)) as session:
        first = session.key
    running.fault("session_expired")
    with pytest.raises(SessionExpired), connect(vcenter_of(running)) as other:
        find_vm(other, "sql16")
    before, together = logged_in(running), Barrier(8)

    def key(_number: int) -> str:
        together.wait()
        with connect(vcenter_of(running, logins=shared)) as found:
            return found.key

    with ThreadPoolExecutor(8) as workers:
        keys = set(workers.map(key, range(8)))

    assert len(keys) == 1
    assert keys != {first}
    assert logged_in(running) - before == 1
    log_out(shared)


def test_workers_of_one_session_do_not_disturb_each_others_waits(
    shared_lab: LabHandle, shared: Logins
) -> None:
    """Each watches through a property collector of its own: all see what they wait for."""
    together = Barrier(6)

    def waits(_number: int) -> str:
        with connect(vcenter_of(shared_lab, logins=shared)) as session:
            ref = find_vm(session, "sql16")
            together.wait()
            for _ in range(5):
                seen = wait_for(
                    session,
                    ref,
                    ["runtime.powerState"],
                    lambda values: bool(values),
                    30,
                    "sql16 has no state",
                )
                assert read_vm(session, ref).name == "sql16"
            return str(seen["runtime.powerState"])

    with ThreadPoolExecutor(6) as workers:
        assert set(workers.map(waits, range(6))) == {"poweredOn"}
    log_out(shared)


def test_a_refused_login_is_not_tried_again_by_any_process_of_the_run(
    lab: LabFactory, tmp_path: Path
) -> None:
    """Eight workers with a wrong password make one failed login, and say the same sentence."""
    running, secret, together = lab(), uuid4().hex, Barrier(8)

    def refused(_number: int) -> str:
        together.wait()
        with pytest.raises(AccountRefused) as caught:
            connect(vcenter_of(running, password=secret, logins=Logins(tmp_path)))
        return str(caught.value)

    with ThreadPoolExecutor(8) as workers:
        said = set(workers.map(refused, range(8)))

    assert running.logins()["failed"] == 1
    (sentence,) = said
    assert running.vcenter.user in sentence
    assert running.vcenter.host in sentence
    assert all(secret not in path.read_text() for path in tmp_path.rglob("*.json"))


def test_what_is_kept_can_be_read_by_its_user_alone(shared_lab: LabHandle, tmp_path: Path) -> None:
    """The cookie is as good as the password for as long as the session lasts, whatever the umask is."""
    mask = os.umask(0)
    try:
        with connect(vcenter_of(shared_lab, logins=Logins(tmp_path))):
            pass
    finally:
        os.umask(mask)

    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert files
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert all(shared_lab.vcenter.password not in path.read_text() for path in files)
    log_out(Logins(tmp_path))


def test_without_a_disk_each_process_logs_in_for_itself(shared_lab: LabHandle, tmp_path: Path) -> None:
    """A full disk or a folder that is gone keeps nobody from logging in, nor from logging out."""
    logins = Logins(tmp_path / "gone")
    before = logged_in(shared_lab)
    for _ in range(2):
        with connect(vcenter_of(shared_lab, logins=logins)) as session:
            assert find_vm(session, "sql16")

    assert logged_in(shared_lab) - before == 1
    log_out(logins)
