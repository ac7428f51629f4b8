"""A login ends by its deadline in whatever state the server leaves it, and takes nobody else's with it."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.sqlserver.authority import Authority
from tests.sqlserver.hostile import OFF, ON, Hostile, Phase, Seen, Trouble, hostile_server
from tests.sqlserver.support import LabFactory, driver_of, listening
from vnuma.errors import EnvironmentProblem, LoginRefused, SqlUnreachable
from vnuma.sqlserver.client.certificate import turn
from vnuma.sqlserver.client.connect import Encrypt, SqlServer, connect
from vnuma.sqlserver.client.deadline import shut_down
from vnuma.sqlserver.client.driver import DriverKind
from vnuma.sqlserver.client.query import value

TIMEOUT_S = 1.0
AT_MOST_S = 4.0
"""For one deadline, what the machine adds, and a look at why."""

ROOMY_S = 5.0
"""Where the other half has to be answered in time, on a busy machine."""

WAYS: list[tuple[DriverKind, Encrypt]] = [
    ("freetds", "mandatory"),
    ("freetds", "no"),
    ("msodbcsql18", "mandatory"),
    ("msodbcsql18", "strict"),
    ("msodbcsql18", "no"),
]
POINTS: list[tuple[Phase, int]] = [
    ("tcp", 0),
    ("prelogin", 0),
    ("prelogin", 12),
    ("tls", 0),
    ("tls", 60),
    ("tls", 600),
    ("login", 0),
    ("login", 10),
]
"""The phase that the server does not finish, and how many bytes of it come."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The CA that the inventory names."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Path:
    """The servers' certificate."""
    return authority.certificate()


def _server(seen: Seen, authority: Authority, kind: DriverKind, encrypt: Encrypt = "mandatory") -> SqlServer:
    driver = driver_of(kind)
    return SqlServer("127.0.0.1", seen.port, "sa", "secret", driver, encrypt, ca_file=str(authority.ca_file))


def _seconds_of(server: SqlServer, timeout_s: float = TIMEOUT_S) -> tuple[float, EnvironmentProblem]:
    """How long a login takes that has to fail, and how it fails."""
    began = time.monotonic()
    with pytest.raises(EnvironmentProblem) as caught, connect(server, login_timeout_s=timeout_s):
        pass
    return time.monotonic() - began, caught.value


@pytest.mark.parametrize("how", ["freeze", "cut"])
@pytest.mark.parametrize(("kind", "encrypt"), WAYS)
def test_a_login_ends_in_every_state(
    kind: DriverKind, encrypt: Encrypt, how: str, authority: Authority, certificate: Path
) -> None:
    """Silent, frozen or cut after some bytes of each phase; all at once, each with a server of its own."""

    def attempt(phase: Phase, after: int) -> tuple[float, EnvironmentProblem]:
        trouble = Trouble(phase, after, how)  # type: ignore[arg-type]
        encryption = OFF if encrypt == "no" else ON
        with hostile_server(Hostile(certificate, encryption, (trouble,))) as seen:
            return _seconds_of(_server(seen, authority, kind, encrypt))

    with ThreadPoolExecutor(len(POINTS)) as pool:
        found = list(pool.map(lambda point: attempt(*point), POINTS))

    late = {point: took for point, (took, _) in zip(POINTS, found, strict=True) if took > AT_MOST_S}
    assert late == {}
    assert all(isinstance(error, SqlUnreachable) for _, error in found), found


@pytest.mark.parametrize("kind", ["freetds", "msodbcsql18"])
def test_a_refused_connection_ends_too(kind: DriverKind, authority: Authority) -> None:
    """Microsoft's driver tries a closed port again until its own timeout."""
    took, error = _seconds_of(_server(Seen(1), authority, kind))

    assert took < AT_MOST_S
    assert isinstance(error, SqlUnreachable)


@pytest.mark.parametrize("kind", ["freetds", "msodbcsql18"])
def test_a_deadline_ends_its_own_login_alone(
    kind: DriverKind, authority: Authority, certificate: Path
) -> None:
    """Eight logins to one address at once, half of them frozen in the handshake: the others are answered."""
    troubles = tuple(Trouble("tls", 60) if number % 2 else None for number in range(8))
    with hostile_server(Hostile(certificate, troubles=troubles)) as seen:
        server = _server(seen, authority, kind)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: _seconds_of(server, ROOMY_S), range(8)))

    assert seen.connections == 8
    assert len(seen.logins) == 4
    assert [type(error) for _, error in found].count(LoginRefused) == 4
    assert [type(error) for _, error in found].count(SqlUnreachable) == 4
    assert all(took < ROOMY_S + AT_MOST_S for took, _ in found)


@pytest.mark.parametrize("kind", ["freetds", "msodbcsql18"])
def test_connections_opened_at_once_know_their_own_sockets(lab: LabFactory, kind: DriverKind) -> None:
    """The statement at its deadline is ended; the seven concurrent ones are not."""
    running = lab(time_scale=1)
    server = listening(running, driver=driver_of(kind))

    def wait(number: int) -> object:
        limit = 0.2 if number == 3 else 30.0
        with connect(server, statement_timeout_s=limit) as connection:
            return value(connection, "WAITFOR DELAY '00:00:01'; SELECT 7 AS seven")

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(wait, number) for number in range(8)]
        failed = [number for number, one in enumerate(waiting) if one.exception()]
        answers = [one.result() for number, one in enumerate(waiting) if number not in failed]

    assert failed == [3]
    assert answers == [7] * 7


def test_a_login_that_lost_its_socket_takes_nobody_elses() -> None:
    """A neighbour that has logged in meanwhile keeps its connection when the other's deadline comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()[:2]
        until = time.monotonic() + AT_MOST_S
        with turn(frozenset({address}), until) as first:
            lost = socket.create_connection(address)
            first.look()
            with turn(frozenset({address}), until) as second, socket.create_connection(address) as other:
                lost.close()
                second.look()
                assert not second.mine
                open_connection = other.dup()
            first.look()
            with open_connection:
                shut_down(first.mine)
                assert open_connection.send(b"x") == 1
