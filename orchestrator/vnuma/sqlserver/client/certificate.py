"""Check a SQL Server's encryption ourselves, since FreeTDS does not say what is wrong; and log in by turns.

Uses only PRELOGIN and the TLS handshake, so nothing secret is sent. Messages:
https://learn.microsoft.com/openspecs/windows_protocols/ms-tds
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from cryptography import x509

from vnuma.domain.vm.certificates import rejection
from vnuma.errors import CertificateRejected, SqlUnreachable
from vnuma.sqlserver.client.deadline import Address, Sockets, all_sockets, connected_to, shut_down, still_open
from vnuma.sqlserver.client.failures import NO_ENCRYPTION, NO_ENCRYPTION_FIX
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.tls_contexts import checking, unchecked

_PRELOGIN = 0x12
_ENCRYPTION = 1
_OFF, _ON, _NOT_SUPPORTED = 0, 1, 2


def why_refused(
    host: str, port: int, ca_file: str | None, timeout_s: float, *, verified: bool
) -> CertificateRejected | None:
    """Why a login there is refused; None if encryption and certificate are fine, or could not be checked.

    `verified`: whether the certificate must be trusted, by the CAs of `ca_file` or else the system's.
    """
    try:
        _shake_hands(host, port, checking(ca_file) if verified else unchecked(), timeout_s)
    except ssl.SSLCertVerificationError as error:
        why = error.verify_code, error.verify_message
        return rejection(f"{host}:{port}", _shown(host, port, timeout_s), *why, ca_file, "vnuma_sql")
    except _NotEncrypted:
        return CertificateRejected(f"{host}:{port} {NO_ENCRYPTION}.", fix=NO_ENCRYPTION_FIX)
    except (OSError, ValueError, LoginTimeoutError, SqlUnreachable):
        return None
    return None


def _shown(host: str, port: int, timeout_s: float) -> x509.Certificate | None:
    """The server's certificate, trusted or not; None if it shows none."""
    try:
        der = _shake_hands(host, port, unchecked(), timeout_s)
        return x509.load_der_x509_certificate(der) if der else None
    except (OSError, ValueError, LoginTimeoutError, SqlUnreachable, _NotEncrypted):
        return None


class _NotEncrypted(Exception):
    """The server answers PRELOGIN without the requested encryption."""


def _shake_hands(host: str, port: int, context: ssl.SSLContext, timeout_s: float) -> bytes | None:
    """Encrypt a connection and close it; returns the server's certificate.

    Raises OSError, ValueError, SqlUnreachable, LoginTimeoutError and _NotEncrypted.
    """
    until = time.monotonic() + timeout_s
    with (
        turn(addresses_of(host, port), until),
        socket.create_connection((host, port), timeout=timeout_s) as link,
    ):
        wire = _Wire(link, until)
        wire.ask_for_encryption()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
        while True:
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                return tls.getpeercert(binary_form=True)
            wire.send(outgoing.read())
            incoming.write(wire.receive())


@dataclass
class _Wire:
    """A socket that carries TLS inside PRELOGIN packets, as TDS before version 8 does."""

    link: socket.socket
    until: float

    def ask_for_encryption(self) -> None:
        """Raises _NotEncrypted unless the server agrees to encrypt the session."""
        version, wish = bytes(6), bytes([_ON])
        options = struct.pack(">BHHBHHB", 0, 11, len(version), _ENCRYPTION, 11 + len(version), 1, 0xFF)
        self.send(options + version + wish)
        if _encryption(self.receive()) in (_OFF, _NOT_SUPPORTED):
            raise _NotEncrypted

    def send(self, data: bytes) -> None:
        self.link.settimeout(self._left())
        head = struct.pack(">BBHHBB", _PRELOGIN, 1, 8 + len(data), 0, 1, 0)
        self.link.sendall(head + data)

    def receive(self) -> bytes:
        """The body of the next packet. Raises OSError at the time limit."""
        head = self._exactly(8)
        return self._exactly(max(0, struct.unpack(">H", head[2:4])[0] - 8))

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            self.link.settimeout(self._left())
            some = self.link.recv(count - len(data))
            if not some:
                raise ConnectionResetError("the server closed the connection")
            data += some
        return data

    def _left(self) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the server did not finish its handshake in time")
        return left


def _encryption(options: bytes) -> int:
    """The encryption option of a PRELOGIN. Raises ValueError for an invalid one."""
    for at in range(0, len(options), 5):
        if options[at] == 0xFF:
            break
        if at + 5 > len(options):
            break
        kind, offset, length = struct.unpack(">BHH", options[at : at + 5])
        if kind == _ENCRYPTION and length >= 1 and offset < len(options):
            return int(options[offset])
    raise ValueError("a PRELOGIN without an encryption option")


_LOOK_S = (0.002, 0.05)
"""Pauses between two looks for a socket: first and longest."""
_SLACK_S = 0.5
"""Time beyond the driver's own timeout, whose error says more, and for a driver to return after the cut."""


class LoginTimeoutError(Exception):
    """The login did not end by its deadline."""


@dataclass
class _Turn:
    """A login in progress to some addresses; `mine` is its socket once found."""

    addresses: frozenset[Address]
    before: Sockets
    mine: Sockets = frozenset()

    @property
    def settled(self) -> bool:
        """Whether the next new socket belongs to another login."""
        return len(self.addresses) == 1 and bool(self.mine) and still_open(self.mine)

    def look(self) -> None:
        """Take the new socket if it can only be this login's."""
        with _changed:
            others = [one for one in _turns if one is not self and one.addresses & self.addresses]
            found = connected_to(self.addresses, since=self.before)
            found -= frozenset[tuple[int, int]]().union(*(one.mine for one in others))
            # A neighbour that lost its socket may be opening another.
            if all(one.settled for one in others) and (
                len(found) == 1 or (found and len(self.addresses) > 1)
            ):
                self.mine = found
                _changed.notify_all()


_turns: list[_Turn] = []
_changed = threading.Condition()


@contextmanager
def turn(addresses: frozenset[Address], until: float) -> Iterator[_Turn]:
    """Be the only login to these addresses until its socket is known. Raises LoginTimeoutError."""
    with _changed:
        while any(one.addresses & addresses and not one.settled for one in _turns):
            left = until - time.monotonic()
            if left <= 0:
                raise LoginTimeoutError("another login to it had not ended by then")
            _changed.wait(min(left, _SLACK_S))
        if time.monotonic() >= until:  # a slow name lookup: nobody would watch this login
            raise LoginTimeoutError("its name was not resolved by then")
        own = _Turn(addresses, all_sockets())
        _turns.append(own)
    opened: Sockets = frozenset()  # a failed login leaves none
    try:
        yield own
        # After losing a socket it may have another, so no present socket is certainly a neighbour's.
        opened = own.mine if own.settled else all_sockets()
    finally:
        with _changed:
            _turns.remove(own)
            for other in _turns:  # a login that loses its socket must not take this connection's
                other.before |= opened
            _changed.notify_all()


@dataclass
class _Attempt:
    """Shared state of the driver's thread and the waiting one."""

    ended: threading.Event = field(default_factory=threading.Event)
    own: _Turn | None = None
    connection: pyodbc.Connection | None = None
    error: BaseException | None = None
    abandoned: bool = False
    handing_over: threading.Lock = field(default_factory=threading.Lock)


def log_in(
    prepare: Callable[[], tuple[frozenset[Address], str]], timeout_s: float
) -> tuple[pyodbc.Connection, Sockets]:
    """Connect, and return the connection's sockets. `prepare` gives addresses and connection string.

    Raises LoginTimeoutError at the deadline, what `prepare` raises, and pyodbc.Error. A driver that still
    does not return is left in its thread; if it logs in later, it is logged out.
    """
    seconds = max(1, round(timeout_s))
    until = time.monotonic() + seconds + _SLACK_S
    attempt = _Attempt()

    def work() -> None:
        try:
            addresses, string = prepare()
            with turn(addresses, until) as attempt.own:
                connection = pyodbc.connect(string, autocommit=True, timeout=seconds)
                if not attempt.own.settled:
                    attempt.own.look()
            with attempt.handing_over:
                if attempt.abandoned:
                    connection.close()
                else:
                    attempt.connection = connection
        except BaseException as error:  # noqa: BLE001 - it is raised where the caller waits
            attempt.error = error
        finally:
            attempt.ended.set()

    threading.Thread(target=work, name="login", daemon=True).start()
    try:
        in_time = _watched(attempt, until)
    finally:
        with attempt.handing_over:
            attempt.abandoned = attempt.connection is None
    if attempt.connection is not None and attempt.own is not None:
        return attempt.connection, attempt.own.mine if still_open(attempt.own.mine) else frozenset()
    if attempt.error is not None and (in_time or isinstance(attempt.error, LoginTimeoutError)):
        raise attempt.error
    raise LoginTimeoutError(f"the login did not finish within {seconds} s")


def _watched(attempt: _Attempt, until: float) -> bool:
    """Whether the driver ended by itself; otherwise its socket is shut down."""
    pause, longest = _LOOK_S
    while (left := until - time.monotonic()) > 0:
        if attempt.own is None or not attempt.own.mine:
            left, pause = min(left, pause), min(2 * pause, longest)
        if attempt.ended.wait(left):
            return True
        if attempt.own is not None and not attempt.own.settled:
            attempt.own.look()
    if attempt.own is not None:
        shut_down(attempt.own.mine)
    attempt.ended.wait(_SLACK_S)
    return False


def addresses_of(host: str, port: int) -> frozenset[Address]:
    """The addresses of a name. Raises SqlUnreachable."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a valid name"
        raise SqlUnreachable(
            f"{host}: the name cannot be resolved here ({why}).", fix="Check vnuma_sql.host."
        ) from error
    return frozenset((str(place[0]).removeprefix("::ffff:"), port) for *_kind, place in found)
