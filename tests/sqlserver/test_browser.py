"""A named instance is found where SQL Server Browser says it is now."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.sqlserver.hostile import NOT_SUPPORTED, Hostile, hostile_server
from tests.sqlserver.support import driver_of
from vnuma.errors import LoginRefused, SqlUnreachable
from vnuma.sqlserver.client.connect import PORT, SqlServer, connect, port_of

ADDRESS = "127." + ".".join(map(str, (2 + (os.getpid() >> 16), os.getpid() >> 8 & 255, os.getpid() & 255)))
"""A loopback address of this process: SQL Server Browser has one port, and other workers test it too."""


@contextmanager
def browser(answers: Sequence[bytes]) -> Iterator[list[bytes]]:
    """SQL Server Browser with one answer each; the questions."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind((ADDRESS, PORT))

        def serve() -> None:
            for answer in answers:
                question, peer = link.recvfrom(100)
                asked.append(question)
                link.sendto(answer, peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield asked
        thread.join(timeout=10)


def told(port: int | str, instance: str = "SQL2019") -> bytes:
    """An answer of SQL Server Browser."""
    text = f"ServerName;SQL16;InstanceName;{instance};IsClustered;No;Version;15.0.2000.5;tcp;{port};;"
    return b"\x05" + len(text).to_bytes(2, "little") + text.encode()


def test_the_port_of_an_instance_is_asked_for() -> None:
    """The question names the instance, and the answer's TCP port counts."""
    with browser([told(50123)]) as asked:
        assert port_of(ADDRESS, "SQL2019", 5) == 50123

    assert asked == [b"\x04SQL2019\x00"]


def test_a_login_follows_an_instance_whose_port_moves() -> None:
    """It is asked for at each login: a dynamic port is another one after a restart."""
    for _ in range(2):
        with (
            hostile_server(Hostile(encryption=NOT_SUPPORTED), ADDRESS) as seen,
            browser([told(seen.port)]),
        ):
            server = SqlServer(ADDRESS, 0, "sa", "x", driver_of("freetds"), "no", instance="SQL2019")
            with pytest.raises(LoginRefused), connect(server):
                pass
            assert len(seen.clear_logins) == 1


@pytest.mark.parametrize(
    "answer",
    [b"", b"\x05", b"\xff" * 40, told("x"), told(0), told(70000), told("0000019999999"), told("9" * 5000)],
)
def test_an_answer_without_a_port_is_a_sentence(answer: bytes) -> None:
    """TCP/IP may be off for the instance, or somebody else answers."""
    with (
        browser([answer]),
        pytest.raises(SqlUnreachable, match=re.escape(rf"{ADDRESS}\SQL2019") + ": .*no TCP port"),
    ):
        port_of(ADDRESS, "SQL2019", 5)


def test_a_browser_that_is_not_there_is_a_sentence() -> None:
    """It names UDP 1434, the service, and the way around it."""
    with pytest.raises(SqlUnreachable) as caught:
        port_of(ADDRESS, "SQL2019", 0.3)

    assert all(word in str(caught.value) for word in ("1434", "SQL Server Browser", "vnuma_sql.port"))


@pytest.mark.parametrize(
    ("host", "words"),
    [("255.255.255.255", "UDP 1434 cannot be reached from here"), ("no host", "cannot be resolved here")],
)
def test_a_network_that_refuses_the_question_is_distinguished_from_an_unknown_name(
    host: str, words: str
) -> None:
    """The system refuses a datagram to the broadcast address, which resolves well."""
    with pytest.raises(SqlUnreachable, match=words):
        port_of(host, "SQL2019", 5)
