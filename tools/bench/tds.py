"""A TDS client that only drains: it reads packets' headers, and looks at nothing inside them.

Packet and message layouts: [MS-TDS] 2.2.3.1 (header), 2.2.6.5 (PRELOGIN), 2.2.6.4 (LOGIN7), 2.2.6.7 (batch).
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from vnuma.sqlserver.client.sql_server import SqlServer

_BATCH, _LOGIN, _PRELOGIN = 0x01, 0x10, 0x12
_END_OF_MESSAGE = 0x01
_HEADER = 8
_PACKET = 4096  # what ODBC drivers ask for
_BUFFER = 1 << 20


@dataclass(frozen=True)
class Drained:
    """One response: its bytes, and how long it took from the request to the end."""

    size: int
    seconds: float


@contextmanager
def connected(server: SqlServer, database: str) -> Iterator[socket.socket]:
    """A socket that has logged in, without encryption."""
    with socket.create_connection((server.host, server.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Options VERSION and ENCRYPTION (2: not supported), then the end of the list.
        _send(connection, _PRELOGIN, bytes.fromhex("00000b000601001100 01ff 000000000000 02"))
        _drain(connection)
        _send(connection, _LOGIN, _login(server, database))
        _drain(connection)
        yield connection


def drain(connection: socket.socket, statement: str) -> Drained:
    """Send a batch and read its response to the end."""
    start = time.perf_counter()
    # ALL_HEADERS with the transaction descriptor of autocommit: none, one request outstanding.
    headers = struct.pack("<IIHQI", 22, 18, 2, 0, 1)
    _send(connection, _BATCH, headers + statement.encode("utf-16-le"))
    return Drained(_drain(connection), time.perf_counter() - start)


def _drain(connection: socket.socket) -> int:
    """Read packets up to the one that ends the message; return the bytes read."""
    buffer = bytearray(_BUFFER)
    view = memoryview(buffer)
    size = held = 0
    while True:
        count = connection.recv_into(view[held:])
        if not count:
            raise ConnectionError("the server closed the connection in the middle of a response")
        held += count
        size += count
        at = 0
        while held - at >= _HEADER:
            length = buffer[at + 2] << 8 | buffer[at + 3]
            if held - at < length:
                break
            at += length
            if buffer[at - length + 1] & _END_OF_MESSAGE:
                return size
        view[: held - at] = buffer[at:held]
        held -= at


def _send(connection: socket.socket, kind: int, data: bytes) -> None:
    room = _PACKET - _HEADER
    parts = [data[at : at + room] for at in range(0, len(data), room)]
    for number, part in enumerate(parts, 1):
        status = _END_OF_MESSAGE if number == len(parts) else 0
        header = struct.pack(">BBHHBB", kind, status, _HEADER + len(part), 0, number % 256, 0)
        connection.sendall(header + part)


def _login(server: SqlServer, database: str) -> bytes:
    """LOGIN7 of TDS 7.4: the fixed part, offsets and lengths of the texts, then the texts."""
    password = bytes((byte << 4 & 0xF0 | byte >> 4) ^ 0xA5 for byte in server.password.encode("utf-16-le"))
    texts = {2: password, 1: server.user.encode("utf-16-le"), 8: database.encode("utf-16-le")}
    fixed, offset = 94, 94
    pairs = b""
    # Host, user, password, program, server, extension, library, language, database.
    for place in range(9):
        text = texts.get(place, b"")
        pairs += struct.pack("<HH", offset, len(text) // 2)
        offset += len(text)
    # The client's id, then three more that stay empty.
    pairs += bytes(6) + struct.pack("<HHHHHH", *(offset, 0) * 3) + bytes(4)
    body = b"".join(texts[place] for place in sorted(texts))
    numbers = struct.pack("<IIIIII", fixed + len(body), 0x74000004, _PACKET, 0, 0, 0)
    flags = bytes((0xE0, 0x03, 0, 0)) + bytes(8)  # USE DB and its failure, language; no time zone, no locale
    return numbers + flags + pairs + body
