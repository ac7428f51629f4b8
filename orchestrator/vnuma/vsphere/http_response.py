"""Read one HTTP answer within limits of time and size; for SOAP, an XML document without a DTD.

A hostile or broken server may send single bytes forever, or gigabytes; compressed data and entities declared
in a DTD may expand to gigabytes too.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import time
import zlib
from typing import Any

MOST_BYTES = 64 * 1024 * 1024
"""Limit of one answer. A page of vCenter has at most some hundred objects of some 10 kB."""

PATIENCES = 4
"""A whole answer may take this many times the limit for its next bytes (`VCenter.timeout_s`)."""

_DTD = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']*)""")


class BadAnswer(http.client.HTTPException):
    """Not a valid answer of the vSphere API."""


class BoundedResponse(http.client.HTTPResponse):
    """A response that limits time and size from its status line on.

    Reading raises TimeoutError and BadAnswer.
    """

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self._bounded = _Bounded(self.fp.detach(), sock)
        self.fp = io.BufferedReader(self._bounded)

    def document(self) -> SoapDocument:
        """The answer for a SOAP parser."""
        body = _inflated(self.read(), self.headers.get("Content-Encoding", "identity").lower())
        if b"\0" in body[:4] or (_ENCODING.match(body) or [b"", b"utf-8"])[1].lower() != b"utf-8":
            raise BadAnswer("XML that is not in UTF-8")
        if _DTD.search(body):
            raise BadAnswer("XML with a DTD")
        return SoapDocument(body, self, self._bounded.deadline)


class SoapDocument(io.BytesIO):
    """A body in memory, with the interface that pyVmomi needs. Reading it has a deadline too."""

    def __init__(self, body: bytes, response: http.client.HTTPResponse, deadline: float) -> None:
        super().__init__(body)
        self.status = response.status
        self._headers = response.headers
        self._deadline = deadline

    def getheader(self, name: str, default: str | None = None) -> str | None:
        """A header, without Content-Encoding, as the body is already decompressed."""
        return default if name.lower() == "content-encoding" else self._headers.get(name, default)

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes. Raises BadAnswer when parsing the earlier ones took too long."""
        if time.monotonic() > self._deadline:
            raise BadAnswer("an answer that takes too long to read")
        return super().read(size)


class _Bounded(io.RawIOBase):
    """A socket's bytes, with a deadline and a maximum size."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw, self._sock = raw, sock
        self._timeout_s = sock.gettimeout() or 30.0
        self.deadline = time.monotonic() + PATIENCES * self._timeout_s
        self._left = MOST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"the answer was not complete after {PATIENCES * self._timeout_s:g} s")
        if self._left <= 0:
            raise BadAnswer(f"an answer of more than {MOST_BYTES // 1024**2} MB")
        self._sock.settimeout(min(left_s, self._timeout_s))
        try:
            read = self._raw.readinto(buffer)
        finally:
            if self._sock.fileno() >= 0:
                self._sock.settimeout(self._timeout_s)
        self._left -= read or 0
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()


def _inflated(body: bytes, encoding: str) -> bytes:
    """The body decompressed: gzip, or deflate with or without its header."""
    if encoding not in ("gzip", "deflate"):
        return body
    window = zlib.MAX_WBITS + 16 if encoding == "gzip" else zlib.MAX_WBITS
    if encoding == "deflate" and not (body[:1] and body[0] & 0xF == 8 and not int.from_bytes(body[:2]) % 31):
        window = -zlib.MAX_WBITS
    stream = zlib.decompressobj(window)
    try:
        plain = stream.decompress(body, MOST_BYTES)
    except zlib.error as error:
        raise BadAnswer(f"unreadable compressed content ({error})") from error
    if stream.unconsumed_tail:
        raise BadAnswer(f"an answer of more than {MOST_BYTES // 1024**2} MB")
    return plain
