"""A server that speaks just enough TDS 7.4 to log anybody in, and then answers as a test says.

Layouts: [MS-TDS] 2.2.3.1 (packets), 2.2.6.5 (PRELOGIN), 2.2.7 (tokens), 2.2.5.4 and 2.2.5.5 (types).
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

Type = Literal["int", "text", "moment", "variant"]

_BATCH, _RPC, _ANSWER, _ATTENTION, _LOGIN, _PRELOGIN = 0x01, 0x03, 0x04, 0x06, 0x10, 0x12
_ROOM = 4096 - 8
_COLLATION = bytes.fromhex("0904d00034")
_MORE, _FAILED, _COUNT, _CANCELLED = 0x01, 0x02, 0x10, 0x20

Answer = Callable[[str], "bytes | None"]
"""What a batch is answered with; None ends the connection, as does an answer that ends with `CUT`."""

COLUMNS = b"\x81"
"""The token that describes the columns of a result."""

CUT = b"\xff<cut>"


def done(
    *, more: bool = False, failed: bool = False, count: int | None = None, inside: bool = False
) -> bytes:
    """The end of a statement: DONE, or DONEINPROC inside of a procedure."""
    status = (_MORE if more else 0) | (_FAILED if failed else 0) | (0 if count is None else _COUNT)
    return struct.pack("<BHHQ", 0xFF if inside else 0xFD, status, 0xC1, count or 0)


def returned() -> bytes:
    """The end of a procedure: RETURNSTATUS and DONEPROC."""
    return struct.pack("<Bi", 0x79, 0) + struct.pack("<BHHQ", 0xFE, 0, 0xE0, 0)


def message(number: int, text: str, severity: int) -> bytes:
    """ERROR from severity 11, INFO below."""
    body = struct.pack("<IBB", number, 1, severity) + struct.pack("<H", len(text)) + _wide(text)
    body += _short("fake") + _short("") + struct.pack("<I", 1)
    return struct.pack("<BH", 0xAA if severity > 10 else 0xAB, len(body)) + body


def columns(*types: Type) -> bytes:
    """COLMETADATA: columns that can be NULL."""
    described = (struct.pack("<IH", 0, 0x09) + _TYPES[one] + _short(f"c{i}") for i, one in enumerate(types))
    return struct.pack("<BH", 0x81, len(types)) + b"".join(described)


def row(*values: tuple[Type, bool]) -> bytes:
    """ROW: for each column its type, and whether it has a value or NULL."""
    return b"\xd1" + b"".join(_VALUES[one] if there else _NULLS[one] for one, there in values)


def whole_row(*numbers: int) -> bytes:
    """ROW of columns of type int."""
    return b"\xd1" + b"".join(struct.pack("<Bi", 4, number) for number in numbers)


def texts(*rows: str | None) -> bytes:
    """A whole result of one column of type text."""
    values = (b"\xff\xff" if one is None else struct.pack("<H", 2 * len(one)) + _wide(one) for one in rows)
    return columns("text") + b"".join(b"\xd1" + one for one in values) + done(count=len(rows))


_TYPES: dict[Type, bytes] = {
    "int": bytes([0x26, 4]),
    "text": bytes([0xE7]) + struct.pack("<H", 80) + _COLLATION,
    "moment": bytes([0x2B, 7]),
    "variant": bytes([0x62]) + struct.pack("<I", 8009),
}
_VALUES: dict[Type, bytes] = {
    "int": struct.pack("<Bi", 4, 7),
    "text": struct.pack("<H", 2) + "x".encode("utf-16-le"),
    "moment": bytes([10]) + bytes(5) + bytes([0x5B, 0x95, 0x0A]) + bytes(2),
    "variant": struct.pack("<I", 6) + bytes([0x38, 0]) + struct.pack("<i", 7),
}
_NULLS: dict[Type, bytes] = {"int": b"\0", "text": b"\xff\xff", "moment": b"\0", "variant": bytes(4)}


class TdsServer:
    """Listens on loopback; each batch is answered by `answer`, which a test may replace at any time."""

    def __init__(self) -> None:
        self.answer: Answer = lambda _text: done()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="tds-server", daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                kind, body = _receive(client)
                reply = self._reply(kind, body)
                if reply is None:
                    return
                _send(client, reply.removesuffix(CUT), whole=not reply.endswith(CUT))
                if reply.endswith(CUT):
                    return

    def _reply(self, kind: int, body: bytes) -> bytes | None:
        if kind == _PRELOGIN:
            return bytes.fromhex("00000b000601001100 01ff 100000000000 02")
        if kind == _LOGIN:
            return _logged_in()
        if kind == _ATTENTION:
            return struct.pack("<BHHQ", 0xFD, _CANCELLED, 0, 0)
        if kind == _BATCH:
            (headers,) = struct.unpack_from("<I", body)
            return self.answer(body[headers:].decode("utf-16-le"))
        return done()


def _logged_in() -> bytes:
    ack = b"\x01" + bytes.fromhex("74000004") + _short("fake") + bytes.fromhex("10000000")
    size = b"\x04" + _short("4096") + _short("4096")
    return b"".join(
        [
            struct.pack("<BH", 0xE3, len(size)) + size,
            message(5701, "Changed database context to 'master'.", 10),
            struct.pack("<BH", 0xAD, len(ack)) + ack,
            done(),
        ]
    )


def _receive(client: socket.socket) -> tuple[int, bytes]:
    """One message: its type and body."""
    body = b""
    while True:
        kind, status, length = struct.unpack(">BBH", _exactly(client, 8)[:4])
        body += _exactly(client, length - 8)
        if status & 1:
            return kind, body


def _exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _send(client: socket.socket, body: bytes, *, whole: bool) -> None:
    """In packets; when it is not the whole, the last one does not end the message."""
    parts = [body[at : at + _ROOM] for at in range(0, len(body), _ROOM)] or ([b""] if whole else [])
    for number, part in enumerate(parts, 1):
        last = whole and number == len(parts)
        header = struct.pack(">BBHHBB", _ANSWER, int(last), len(part) + 8, 51, number % 256, 0)
        client.sendall(header + part)


def _wide(text: str) -> bytes:
    return text.encode("utf-16-le")


def _short(text: str) -> bytes:
    return bytes([len(text)]) + _wide(text)
