"""Check a SQL Server's encryption ourselves: what FreeTDS does not report, and a certificate's expiry.

Uses only PRELOGIN and the TLS handshake, so nothing secret is sent. Messages:
https://learn.microsoft.com/openspecs/windows_protocols/ms-tds
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field

from cryptography import x509

from vnuma.domain.vm.certificates import rejection
from vnuma.errors import CertificateRejected, SqlUnreachable
from vnuma.sqlserver.client.failures import NO_ENCRYPTION, NO_ENCRYPTION_FIX
from vnuma.sqlserver.client.login_deadline import LoginTimeoutError, addresses_of, turn

_PRELOGIN = 0x12
_ENCRYPTION = 1
_OFF, _ON, _NOT_SUPPORTED = 0, 1, 2
_LARGEST = 65536


@dataclass(frozen=True)
class Endpoint:
    """A SQL Server's address, and its trusted CAs: a file's, else the system's."""

    host: str
    port: int
    ca_file: str | None = None
    strict: bool = False
    verified: bool = True
    """Whether the certificate must be trusted; the connection is encrypted in any case."""

    @property
    def where(self) -> str:
        """Host and port, for messages."""
        return f"{self.host}:{self.port}"


def why_refused(end: Endpoint, timeout_s: float) -> CertificateRejected | None:
    """Why a login there is refused; None if encryption and certificate are fine, or could not be checked."""
    try:
        _shake_hands(end, _context(end), timeout_s)
    except ssl.SSLCertVerificationError as error:
        why = error.verify_code, error.verify_message
        return rejection(end.where, shown(end, timeout_s), *why, end.ca_file, "vnuma_sql")
    except _NotEncrypted:
        return CertificateRejected(f"{end.where} {NO_ENCRYPTION}.", fix=NO_ENCRYPTION_FIX)
    except (OSError, ValueError, LoginTimeoutError, SqlUnreachable):
        return None
    return None


def shown(end: Endpoint, timeout_s: float) -> x509.Certificate | None:
    """The server's certificate, trusted or not; None if it shows none."""
    try:
        der = _shake_hands(end, _trusting(), timeout_s)
        return x509.load_der_x509_certificate(der) if der else None
    except (OSError, ValueError, LoginTimeoutError, SqlUnreachable, _NotEncrypted):
        return None


class _NotEncrypted(Exception):
    """The server answers PRELOGIN without the requested encryption."""


def _context(end: Endpoint) -> ssl.SSLContext:
    if not end.verified:
        return _trusting()
    context = ssl.create_default_context(cafile=end.ca_file)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _trusting() -> ssl.SSLContext:
    """For reading a certificate, or for a server whose certificate the user trusts explicitly."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _shake_hands(end: Endpoint, context: ssl.SSLContext, timeout_s: float) -> bytes | None:
    """Encrypt a connection and close it; returns the server's certificate.

    Raises OSError, ValueError, SqlUnreachable, LoginTimeoutError and _NotEncrypted.
    """
    until = time.monotonic() + timeout_s
    with (
        turn(addresses_of(end.host, end.port), until),
        socket.create_connection((end.host, end.port), timeout=timeout_s) as link,
    ):
        wire = _Wire(link, until, wrapped=not end.strict)
        if end.strict:
            context.set_alpn_protocols(["tds/8.0"])
        else:
            wire.ask_for_encryption()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname=end.host)
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
    wrapped: bool
    waiting: bytes = field(default=b"")

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
        self.link.sendall(head + data if self.wrapped else data)

    def receive(self) -> bytes:
        """The body of the next packet. Raises OSError at the time limit."""
        if not self.wrapped:
            return self._some(_LARGEST)
        head = self._exactly(8)
        return self._exactly(max(0, struct.unpack(">H", head[2:4])[0] - 8))

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += self._some(count - len(data))
        return data

    def _some(self, most: int) -> bytes:
        self.link.settimeout(self._left())
        data = self.link.recv(most)
        if not data:
            raise ConnectionResetError("the server closed the connection")
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
