"""A server that speaks just enough TDS to be logged in to, and lies, falls silent or cuts on the way.

The messages are those of MS-TDS: https://learn.microsoft.com/openspecs/windows_protocols/ms-tds
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

OFF, ON, NOT_SUPPORTED = 0, 1, 2
"""What PRELOGIN may say of encryption."""

Phase = Literal["tcp", "prelogin", "tls", "login"]

_REPLY, _LOGIN, _PRELOGIN = 0x04, 0x10, 0x12
_TLS_HANDSHAKE = 0x16


@dataclass(frozen=True)
class Trouble:
    """After so many bytes of its part in a phase the server says nothing more, or cuts the connection."""

    phase: Phase
    after: int = 0
    how: Literal["freeze", "cut"] = "freeze"


@dataclass(frozen=True)
class Hostile:
    """How the server behaves. Without a certificate there is no TLS, whatever it says.

    `troubles` are those of the first, the second and each further connection; the last applies to all that
    follow, and None means no trouble.
    """

    certificate: Path | None = None
    encryption: int = ON
    troubles: tuple[Trouble | None, ...] = (None,)


@dataclass
class Seen:
    """What reached a running server: each login in the clear or out of TLS, and each connection."""

    port: int
    logins: list[bytes] = field(default_factory=list)
    clear_logins: list[bytes] = field(default_factory=list)
    connections: int = 0
    phases: list[Phase] = field(default_factory=list)


class _Cut(Exception):
    """The connection ends here, on purpose."""


@contextmanager
def hostile_server(behaviour: Hostile, address: str = "127.0.0.1") -> Iterator[Seen]:
    """Listen on a free port of a loopback address. Every connection has ended when the block has."""
    stop, threads = threading.Event(), list[threading.Thread]()
    with socket.create_server((address, 0)) as listener:
        seen = Seen(listener.getsockname()[1])

        def accept() -> None:
            while True:
                with suppress(OSError):
                    link, _peer = listener.accept()
                    if stop.is_set():
                        link.close()
                        return
                    trouble = behaviour.troubles[min(seen.connections, len(behaviour.troubles) - 1)]
                    seen.connections += 1
                    one = _Connection(link, behaviour, trouble, seen, stop)
                    threads.append(threading.Thread(target=one.serve, daemon=True))
                    threads[-1].start()

        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield seen
        finally:
            stop.set()
            socket.create_connection(listener.getsockname()).close()
            for thread in [acceptor, *threads]:
                thread.join()


class _Connection:
    """One client, from its first byte to the answer to its login, which is a refusal."""

    def __init__(
        self, link: socket.socket, how: Hostile, trouble: Trouble | None, seen: Seen, stop: threading.Event
    ) -> None:
        self._link, self._how, self._trouble, self._seen, self._stop = link, how, trouble, seen, stop
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._sent: dict[Phase, int] = {}

    def serve(self) -> None:
        with self._link, suppress(OSError, _Cut):
            self._link.settimeout(0.05)
            self._send("tcp", b"")
            strict = self._peek() == _TLS_HANDSHAKE
            if strict:
                self._handshake(wrapped=False)
            self._read_message()
            self._send("prelogin", _packet(_REPLY, self._prelogin()))
            if not strict and self._how.certificate and self._how.encryption != NOT_SUPPORTED:
                self._handshake(wrapped=True)
            kind, login = self._read_message()
            if kind == _LOGIN:
                (self._seen.logins if self._tls else self._seen.clear_logins).append(login)
                if self._tls and self._how.encryption == OFF:
                    self._tls = None
                self._send("login", _packet(_REPLY, _refusal()))

    def _prelogin(self) -> bytes:
        version, encryption = bytes([16, 0, 0x10, 0x27, 0, 0]), bytes([self._how.encryption])
        head = struct.pack(">BHHBHHB", 0, 11, len(version), 1, 11 + len(version), 1, 0xFF)
        return head + version + encryption

    def _handshake(self, *, wrapped: bool) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if wrapped:  # SQL Server has no TLS 1.3 below TDS 8
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        else:
            context.set_alpn_protocols(["tds/8.0"])
        assert self._how.certificate is not None
        context.load_cert_chain(self._how.certificate)
        tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        while True:
            try:
                tls.do_handshake()
                finished = True
            except ssl.SSLWantReadError:
                finished = False
            except ssl.SSLError as error:  # the client does not like our certificate, and says so
                raise _Cut from error
            if waiting := self._outgoing.read():
                self._send("tls", _packet(_PRELOGIN, waiting) if wrapped else waiting)
            if finished:
                self._tls = tls
                return
            self._incoming.write(self._read_packet()[1] if wrapped else self._receive(1, 65536))

    def _read_message(self) -> tuple[int, bytes]:
        """A whole TDS message, in the clear or inside TLS."""
        data = b""
        while True:
            kind, body, last = self._read_packet_of_message()
            data += body
            if last:
                return kind, data

    def _read_packet_of_message(self) -> tuple[int, bytes, bool]:
        if self._tls is None:
            kind, body, last = self._read_raw()
            return kind, body, last
        head = self._decrypted(8)
        return head[0], self._decrypted(struct.unpack(">H", head[2:4])[0] - 8), bool(head[1] & 1)

    def _decrypted(self, count: int) -> bytes:
        assert self._tls is not None
        data = b""
        while len(data) < count:
            try:
                part = self._tls.read(count - len(data))
            except ssl.SSLWantReadError:
                self._incoming.write(self._receive(1, 65536))
                continue
            except ssl.SSLError as error:
                raise _Cut from error
            if not part:
                raise _Cut
            data += part
        return data

    def _read_packet(self) -> tuple[int, bytes]:
        kind, body, _last = self._read_raw()
        return kind, body

    def _read_raw(self) -> tuple[int, bytes, bool]:
        head = self._receive(8, 8)
        return head[0], self._receive(*[struct.unpack(">H", head[2:4])[0] - 8] * 2), bool(head[1] & 1)

    def _peek(self) -> int:
        return self._receive(1, 1, socket.MSG_PEEK)[0]

    def _receive(self, least: int, most: int, flags: int = 0) -> bytes:
        """At least so many bytes. Raises _Cut when the client has gone or the test has ended."""
        data = b""
        while len(data) < least:
            try:
                part = self._link.recv(most - len(data), flags)
            except TimeoutError:
                if self._stop.is_set():
                    raise _Cut from None
                continue
            if not part:
                raise _Cut
            data += part
        return data

    def _send(self, phase: Phase, data: bytes) -> None:
        """Send this part of a phase, or as much of it as the trouble lets through."""
        self._seen.phases.append(phase)
        if phase in ("prelogin", "login") and self._tls:
            self._tls.write(data)
            data = self._outgoing.read()
        sent = self._sent.get(phase, 0)
        self._sent[phase] = sent + len(data)
        trouble = self._trouble
        if trouble is None or trouble.phase != phase or trouble.after > sent + len(data):
            self._link.sendall(data)
            return
        self._link.sendall(data[: trouble.after - sent])
        if trouble.how == "freeze":
            while True:
                self._receive(1, 65536)
        raise _Cut


def _packet(kind: int, data: bytes) -> bytes:
    return struct.pack(">BBHHBB", kind, 1, 8 + len(data), 0, 1, 0) + data


def _refusal() -> bytes:
    """Message 18456 and the end of the answer."""
    text, server = "Login failed.".encode("utf-16-le"), "SQL".encode("utf-16-le")
    body = struct.pack("<iBBH", 18456, 1, 14, len(text) // 2) + text
    body += struct.pack("<B", len(server) // 2) + server + struct.pack("<BI", 0, 1)
    return struct.pack("<BH", 0xAA, len(body)) + body + struct.pack("<BHHQ", 0xFD, 2, 0, 0)
