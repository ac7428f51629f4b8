"""A relay before a SQL Server, whose clients can be left without an answer inside their TLS handshake."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_HEADER = 8
"""Bytes of a TDS packet's header; its length, in the third and fourth, counts them too (MS-TDS 2.2.3.1)."""

_AT_ONCE = 65536


class SqlRelay:
    """Where it listens, and what it does with logins that begin now.

    While `open` is cleared, a login gets the server's answer to PRELOGIN and `bytes_told` bytes of what the
    server says in the TLS handshake, and no more. `hung` counts the logins that this happened to.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self.server = server
        self.port = 0
        self.open = threading.Event()
        self.open.set()
        self.bytes_told = 0
        self.hung = 0


@contextmanager
def sql_relay(host: str, port: int) -> Iterator[SqlRelay]:
    """One at the same address as the server, so that names and certificates fit."""
    relay = SqlRelay((host, port))
    server = socketserver.ThreadingTCPServer((host, 0), type("Handler", (_Handler,), {"relay": relay}))
    server.daemon_threads = True
    relay.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        relay.open.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(socketserver.BaseRequestHandler):
    relay: SqlRelay
    request: socket.socket

    def handle(self) -> None:
        """Pass on both ways until either side ends. A server that is not there ends it at once."""
        with suppress(OSError), socket.create_connection(self.relay.server) as there:
            back = threading.Thread(target=self._answers, args=(there,), daemon=True)
            back.start()
            _pass_on(self.request, there)
            back.join()

    def _answers(self, there: socket.socket) -> None:
        with suppress(OSError, EOFError):
            self.request.sendall(_packet(there))
            if not self.relay.open.is_set():
                self.relay.hung += 1
                self.request.sendall(_exactly(there, self.relay.bytes_told))
                self.relay.open.wait()
        _pass_on(there, self.request)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """All that comes; then both ends are closed, as whoever closes a session closes all of it."""
    with suppress(OSError):
        while data := source.recv(_AT_ONCE):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _packet(source: socket.socket) -> bytes:
    header = _exactly(source, _HEADER)
    return header + _exactly(source, struct.unpack(">H", header[2:4])[0] - _HEADER)


def _exactly(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data
