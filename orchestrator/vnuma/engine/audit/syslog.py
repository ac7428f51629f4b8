"""Send lines to a syslog collector: RFC 5424 over TLS (RFC 5425), TCP (RFC 6587) or UDP (RFC 5426), or to the
local daemon. Python's SysLogHandler lacks that format, TLS and TCP framing.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from vnuma.errors import InputError

VARIABLE = "VNUMA_AUDIT_SYSLOG"

TIMEOUT_S = 3.0
"""Time limit for a collector, in seconds: writing the audit log waits for it."""

_CLOSING_S = 3.0
"""Time limit for closing its side, in seconds; a collector that never closes has received the lines."""

_INSTANT_S = 0.001

_DATAGRAM = 2048
"""Bytes that every receiver should accept (RFC 5426, 3.2)."""

_PORTS = {"tls": 6514, "tcp": 601, "udp": 514, "unix": 0}
_FACILITIES = {"user": 1, "daemon": 3, "auth": 4, "authpriv": 10, "audit": 13} | {
    f"local{n}": 16 + n for n in range(8)
}
_NOTICE = 5
_OPTIONS = {"facility", "ca_file", "cert", "key"}


@dataclass(frozen=True)
class Collector:
    """Where to send. `cert` and `key` name PEM files, for a collector that requires a client certificate."""

    scheme: str
    host: str
    port: int
    path: str = ""
    facility: str = "local0"
    ca_file: str | None = None
    cert: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        return f"unix://{self.path}" if self.scheme == "unix" else f"{self.scheme}://{self.host}:{self.port}"


def collector() -> Collector | None:
    """The collector that VNUMA_AUDIT_SYSLOG names; None without it. Raises InputError."""
    given = os.environ.get(VARIABLE)
    if not given:
        return None
    try:
        return _parse(given)
    except ValueError as error:
        raise InputError(
            f"{VARIABLE}: {error}.",
            fix="tls://siem.example.com:6514?ca_file=/etc/ssl/siem.pem, tcp://HOST:601, udp://HOST:514 or "
            "unix:///dev/log",
        ) from None


def _parse(given: str) -> Collector:
    parts = urlsplit(given)
    options = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    if parts.scheme not in _PORTS:
        raise ValueError(f"{parts.scheme!r} is not a valid scheme")
    if unknown := sorted(set(options) - _OPTIONS):
        raise ValueError(f"{unknown[0]!r} is not a valid option: give {', '.join(sorted(_OPTIONS))}")
    if options.get("facility", "local0") not in _FACILITIES:
        raise ValueError(f"{options['facility']!r} is not a valid facility: give {', '.join(_FACILITIES)}")
    if parts.scheme == "unix":
        if not parts.path.startswith("/") or parts.netloc:
            raise ValueError("the socket's path is missing")
    elif not parts.hostname or parts.path not in ("", "/") or "@" in parts.netloc:
        raise ValueError("give SCHEME://HOST:PORT")
    elif not _is_host(parts.hostname):
        raise ValueError(f"{parts.hostname!r} is not a valid host name")
    if parts.scheme != "tls" and set(options) - {"facility"}:
        raise ValueError("a certificate is only used with tls://")
    return Collector(
        parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme], parts.path, **options
    )


def _is_host(name: str) -> bool:
    """Whether a name can be looked up; for others Python raises an error that is not an OSError."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False


def send(to: Collector, lines: Iterable[tuple[str, bytes]]) -> None:
    """Send lines, each with its own time. Raises OSError, which includes ssl.SSLError."""
    if to.scheme == "unix":
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as local:
            local.settimeout(TIMEOUT_S)
            local.connect(to.path)
            for _, line in lines:
                _send_datagram(local, _as_local(to, line))
        return
    if to.scheme == "udp":
        family, kind, protocol, _, address = socket.getaddrinfo(to.host, to.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as datagrams:
            datagrams.settimeout(TIMEOUT_S)
            datagrams.connect(address)
            for at, line in lines:
                _send_datagram(datagrams, as_rfc5424(to, at, line))
        return
    framed = (b"%d %b" % (len(message), message) for message in (as_rfc5424(to, *one) for one in lines))
    with socket.create_connection((to.host, to.port), timeout=TIMEOUT_S) as stream:
        if to.scheme == "tcp":
            stream.sendall(b"".join(framed))
            stream.shutdown(socket.SHUT_WR)
            _await_end(stream)
            return
        context = ssl.create_default_context(cafile=to.ca_file)
        if to.cert:
            context.load_cert_chain(to.cert, to.key, password="")  # or OpenSSL prompts on the terminal
        _Secured(context, stream, to.host).send(b"".join(framed))


def _send_datagram(to: socket.socket, message: bytes) -> None:
    """Send a message, truncated to a datagram if necessary so that it does not block the next ones."""
    try:
        to.send(message)
    except OSError as error:
        if error.errno != errno.EMSGSIZE:
            raise
        to.send(message[:_DATAGRAM])


class _Secured:
    """A TLS client on an open connection that also reports a refusal after its last message.

    A server refuses a client certificate only then (RFC 8446, 4.4.2.4), and SSLSocket.unwrap would take that
    alert for a proper end.
    """

    def __init__(self, context: ssl.SSLContext, stream: socket.socket, host: str) -> None:
        self._stream = stream
        self._until = time.monotonic() + TIMEOUT_S
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)

    def send(self, content: bytes) -> None:
        """Send all, end the connection and wait for the other side to end it. Raises OSError."""
        self._do(self._tls.do_handshake)
        self._do(lambda: self._tls.write(content))
        with suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        self._until = time.monotonic() + _CLOSING_S
        with suppress(TimeoutError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            self._do(lambda: self._tls.read(1))

    def _do(self, step: Callable[[], object]) -> None:
        while True:
            try:
                step()
            except ssl.SSLWantReadError:
                self._stream.sendall(self._out.read())
                self._stream.settimeout(max(self._until - time.monotonic(), _INSTANT_S))
                got = self._stream.recv(1 << 16)
                if got:
                    self._in.write(got)
                else:
                    self._in.write_eof()
            else:
                self._stream.sendall(self._out.read())
                return


def _await_end(stream: socket.socket) -> None:
    """A collector that reads everything closes its side; one that did not resets the connection."""
    stream.settimeout(_CLOSING_S)
    with suppress(TimeoutError):
        stream.recv(1)


def as_rfc5424(to: Collector, at: str, line: bytes) -> bytes:
    """The line as an RFC 5424 message. https://www.rfc-editor.org/rfc/rfc5424#section-6"""
    head = f"{_priority(to)}1 {at} {os.uname().nodename} vnuma {os.getpid()} audit - "
    return head.encode() + line


def _as_local(to: Collector, line: bytes) -> bytes:
    """In the format of syslog(3): daemons do not expect RFC 5424 on their local socket."""
    return f"{_priority(to)}{time.strftime('%b %e %H:%M:%S')} vnuma[{os.getpid()}]: ".encode() + line


def _priority(to: Collector) -> str:
    return f"<{_FACILITIES[to.facility] * 8 + _NOTICE}>"
