"""The audit log's lines at a syslog collector: real receivers on loopback, in every way of transport."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.sqlserver.authority import Authority
from tests.support.cli import vnuma_here
from tests.support.stores import new_store
from vnuma.engine.access.places import audit_file
from vnuma.engine.audit import forward as forwarding
from vnuma.engine.audit import syslog
from vnuma.engine.audit.forward import forward, unsent
from vnuma.engine.audit.journal import Journal
from vnuma.engine.audit.syslog import VARIABLE, collector
from vnuma.engine.mesh.certificates import new_authority, node_certificate
from vnuma.errors import InputError

NOW = datetime.now(UTC)
MESSAGE = re.compile(rb"<(\d+)>1 (\S+) (\S+) vnuma (\d+) audit - (.*)", re.DOTALL)
"""RFC 5424, 6: PRI VERSION, TIMESTAMP, HOSTNAME, APP-NAME, PROCID, MSGID, STRUCTURED-DATA, MSG."""


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Of a store with nothing in it."""
    return Journal(new_store(tmp_path / "vnuma.db"), "key", "sql16", ticket="CHG1")


def log_of(journal: Journal) -> Path:
    """The file of its lines."""
    return audit_file(journal.store.place)


def lines_of(journal: Journal) -> list[bytes]:
    """What it has written."""
    return log_of(journal).read_bytes().splitlines()


@dataclass
class Receiver:
    """A collector of octet-counted messages (RFC 6587, 3.4.1), one connection after the other."""

    context: ssl.SSLContext | None = None
    port: int = 0
    got: list[bytes] = field(default_factory=list)

    @contextmanager
    def listening(self) -> Iterator[Receiver]:
        """Until the end of the `with`."""
        with socket.create_server(("127.0.0.1", self.port)) as server:
            self.port = server.getsockname()[1]
            thread = Thread(target=self._serve, args=(server,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                with suppress_os(), socket.create_connection(("127.0.0.1", self.port)) as last:
                    last.sendall(b"bye")
                thread.join()

    def _serve(self, server: socket.socket) -> None:
        while True:
            connection, _ = server.accept()
            with closing(connection):
                if self._take(connection):
                    return

    def _take(self, connection: socket.socket) -> bool:
        if connection.recv(3, socket.MSG_PEEK | socket.MSG_WAITALL) == b"bye":
            return True
        with suppress_os():
            if not self.context:
                self._read(connection)
                return False
            with self.context.wrap_socket(connection, server_side=True) as secured:
                self._read(secured)
                secured.unwrap()
        return False

    def _read(self, stream: socket.socket) -> None:
        rest = b"".join(iter(lambda: stream.recv(4096), b""))
        while rest:
            size, _, rest = rest.partition(b" ")
            self.got.append(rest[: int(size)])
            rest = rest[int(size) :]


@contextmanager
def suppress_os() -> Iterator[None]:
    """A client that goes away is not the receiver's error."""
    try:
        yield
    except OSError:
        return


def messages(got: list[bytes]) -> list[bytes]:
    """The lines in these messages, of which each is one of RFC 5424."""
    found = [MESSAGE.fullmatch(message) for message in got]
    assert all(found), got
    return [match[5] for match in found if match]


def test_over_tls_the_collector_gets_the_lines_with_their_chain(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each as it is in the file, so that its hash can be kept there; with facility and time."""
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.certificate())
    with Receiver(context).listening() as receiver:
        address = f"tls://127.0.0.1:{receiver.port}?ca_file={authority.ca_file}&facility=local3"
        monkeypatch.setenv(VARIABLE, address)
        journal.note("power", "one")
        journal.note("power", "two")

    assert messages(receiver.got) == lines_of(journal)
    assert receiver.got[0].startswith(b"<157>1 20")  # local3 (19) * 8 + notice (5)
    first, second = messages(receiver.got)
    assert json.loads(second)["previous"] == hashlib.sha256(first + b"\n").hexdigest()
    assert unsent(log_of(journal)) is None


def test_a_collector_with_another_ca_s_certificate_gets_nothing(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the run continues: what was not sent is reported, with the reason."""
    (tmp_path / "other").mkdir()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority(tmp_path / "other").certificate())
    with Receiver(context).listening() as receiver:
        monkeypatch.setenv(VARIABLE, f"tls://127.0.0.1:{receiver.port}?ca_file={Authority(tmp_path).ca_file}")
        journal.note("power", "one")

    assert receiver.got == []
    told = unsent(log_of(journal)) or ""
    assert "certificate is refused" in told
    assert f"tls://127.0.0.1:{receiver.port}" in told


def test_a_collector_that_refuses_our_certificate_is_heard(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With TLS 1.3 it says so only after our lines were written."""
    monkeypatch.setattr(syslog, "_CLOSING_S", 60.0)
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = authority.certificate()
    context.load_cert_chain(own)
    context.load_verify_locations(authority.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    with Receiver(context).listening() as receiver:
        address = f"tls://127.0.0.1:{receiver.port}?ca_file={authority.ca_file}"
        monkeypatch.setenv(VARIABLE, address)
        journal.note("power", "one")
        told = unsent(log_of(journal))
        monkeypatch.setenv(VARIABLE, f"{address}&cert={own}&key={own}")
        forward(log_of(journal), now=True)

    assert told is not None
    assert messages(receiver.got) == lines_of(journal)
    assert unsent(log_of(journal)) is None


def test_what_a_collector_missed_is_sent_when_it_is_back(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order and once; until then it is reported, and the collector is left alone for a minute."""
    receiver = Receiver()
    with receiver.listening():
        monkeypatch.setenv(VARIABLE, f"tcp://127.0.0.1:{receiver.port}")
        journal.note("power", "one")
    journal.note("power", "two")
    with receiver.listening():
        journal.note("power", "three")
        assert messages(receiver.got) == lines_of(journal)[:1]
        told = vnuma_here("audit", "verify", "--store", str(journal.store.place.url))
        forward(log_of(journal), now=True)
        journal.note("power", "four")

    assert messages(receiver.got) == lines_of(journal)
    assert told.code == 0, told.text
    assert "2 lines" in told.out
    assert "connection refused" in told.out


def test_older_lines_stay_where_they_are(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector that is new gets what is written from then on."""
    journal.note("power", "before")
    with Receiver().listening() as receiver:
        monkeypatch.setenv(VARIABLE, f"tcp://127.0.0.1:{receiver.port}")
        journal.note("power", "after")

    assert messages(receiver.got) == lines_of(journal)[1:]


def test_a_line_is_sent_without_reading_those_before_it(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of a whole estate grows for years: this one has a hole of a terabyte."""
    log, sent = log_of(journal), 1 << 40
    with log.open("wb") as stream:
        stream.truncate(sent)
        stream.seek(sent)
        stream.write(b'{"at": "2026-11-25T10:00:00+00:00"}\n')
    position = {"end": sent, "failed_at": 0.0, "why": ""}
    log.with_name(f"{log.name}.sent").write_text(json.dumps(position))
    with Receiver().listening() as receiver:
        monkeypatch.setenv(VARIABLE, f"tcp://127.0.0.1:{receiver.port}")
        before = unsent(log) or ""
        forward(log)

    assert before.startswith("1 line ")
    assert messages(receiver.got) == [b'{"at": "2026-11-25T10:00:00+00:00"}']
    assert unsent(log) is None


def test_by_udp(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A datagram for each line (RFC 5426)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        monkeypatch.setenv(VARIABLE, f"udp://127.0.0.1:{receiver.getsockname()[1]}")
        journal.note("power", "one")

        assert messages([receiver.recv(65535)]) == lines_of(journal)


def test_by_the_machine_s_own_daemon(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the form that it expects at its socket, as syslog(3) writes it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "log"))
        receiver.settimeout(5)
        monkeypatch.setenv(VARIABLE, f"unix://{tmp_path / 'log'}")
        journal.note("power", "one")
        got = receiver.recv(65535)

    assert re.fullmatch(rb"<133>\w{3} [ \d]\d \d\d:\d\d:\d\d vnuma\[\d+\]: (.*)", got)
    assert got.endswith(lines_of(journal)[0])


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("siem.example.com:514", "scheme"),
        ("tls://siem.example.com?ca=x", "'ca' is not a valid option"),
        ("udp://siem?facility=kern", "'kern' is not a valid facility"),
        ("tcp://siem?ca_file=x", "only used with tls"),
        ("tcp://user:pw@siem", "SCHEME://HOST:PORT"),
        ("tcp://siem:99999", "Port"),
        ("unix://", "path"),
        ("tls://siem..example.com:6514", "'siem..example.com' is not a valid host name"),
    ],
)
def test_a_wrong_address_is_reported_before_a_run(
    address: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a valid example; exit code 3."""
    monkeypatch.setenv(VARIABLE, address)

    with pytest.raises(InputError, match="tls://siem"):
        collector()
    ran = vnuma_here("run", "none.yml")
    assert (ran.code, VARIABLE in ran.err, told in ran.err) == (3, True, True), ran.text


def test_a_wrong_address_keeps_no_line_from_the_log(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor a VM from its restore."""
    monkeypatch.setenv(VARIABLE, "nonsense")
    journal.note("restore", "one")

    assert len(lines_of(journal)) == 1


@pytest.mark.parametrize(
    "position", [b"", b"{", b"[]", b'{"end": "x"}', b'{"end": 1, "later": 2}', b"\xff" * 512]
)
def test_a_damaged_position_fails_no_change(
    journal: Journal, position: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector gets the lines again: each at least once."""
    with Receiver().listening() as receiver:
        monkeypatch.setenv(VARIABLE, f"tcp://127.0.0.1:{receiver.port}")
        log_of(journal).with_name(f"{log_of(journal).name}.sent").write_bytes(position)
        journal.note("power", "one")

    assert messages(receiver.got) == lines_of(journal)
    assert unsent(log_of(journal)) is None


def test_a_line_that_no_datagram_holds_keeps_no_later_one(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning is sent, of a length that every receiver should take."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        monkeypatch.setenv(VARIABLE, f"udp://127.0.0.1:{receiver.getsockname()[1]}")
        journal.note("power", "x" * 70_000)
        journal.note("power", "next")
        long, following = messages([receiver.recv(65535), receiver.recv(65535)])

    assert lines_of(journal)[0].startswith(long)
    assert following == lines_of(journal)[1]
    assert unsent(log_of(journal)) is None


def test_a_collector_that_keeps_connections_open_is_waited_for_once_a_minute(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines go together then; a run's end does not wait for that minute."""
    monkeypatch.setattr(forwarding, "_SLOW_S", 0.0)  # as if each connection were
    with Receiver().listening() as receiver:
        monkeypatch.setenv(VARIABLE, f"tcp://127.0.0.1:{receiver.port}")
        journal.note("power", "one")
        journal.note("power", "two")
        told = unsent(log_of(journal)) or ""
        assert messages(receiver.got) == lines_of(journal)[:1]
        forward(log_of(journal), now=True)

    assert "1 line" in told
    assert "slow" in told
    assert messages(receiver.got) == lines_of(journal)
    assert unsent(log_of(journal)) is None


def test_a_key_under_a_passphrase_is_not_asked_for(tmp_path: Path) -> None:
    """OpenSSL would ask the terminal, and a change would wait for an answer."""
    pair = node_certificate(new_authority(NOW), "x", ["127.0.0.1"], NOW)
    key = load_pem_private_key(pair.private.encode(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (tmp_path / "own.pem").write_text(pair.public)
    (tmp_path / "own.key").write_bytes(locked)
    program = (
        "import socket, sys, vnuma.engine.audit.syslog as syslog\n"
        "with socket.create_server(('127.0.0.1', 0)) as server:\n"
        "    port = server.getsockname()[1]\n"
        "    to = syslog.Collector('tls', '127.0.0.1', port, cert=sys.argv[1], key=sys.argv[2])\n"
        "    syslog.send(to, [])\n"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.execv(
            sys.executable,
            [sys.executable, "-c", program, str(tmp_path / "own.pem"), str(tmp_path / "own.key")],
        )
    told = b""
    with suppress_os():  # a terminal whose other side has ended gives EIO
        while b"pass phrase" not in told and (more := os.read(terminal, 4096)):
            told += more
    os.close(terminal)
    os.waitpid(child, 0)

    assert b"pass phrase" not in told
    assert b"SSLError" in told
