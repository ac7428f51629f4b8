"""One answer of a server over HTTP: within a time and a size, and for SOAP an XML document without a DTD.

A server that is hostile or broken may send a byte now and then, for ever, or gigabytes; some compressed bytes
may stand for gigabytes too, and so may entities that a DTD declares.
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
"""Of one answer. vCenter gives a page of at most some hundred objects; one takes some 10 kB."""

PATIENCES = 4
"""A whole answer may take this many times what its next bytes may take (`VCenter.timeout_s`)."""

_DTD = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']*)""")


class BadAnswer(http.client.HTTPException):
    """Something that is not an answer of the vSphere API."""


class BoundedResponse(http.client.HTTPResponse):
    """A response whose bytes, from its status line on, come within a time and a size.

    Raises TimeoutError and BadAnswer while it is read.
    """

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self._bounded = _Bounded(self.fp.detach(), sock)
        self.fp = io.BufferedReader(self._bounded)

    def document(self) -> SoapDocument:
        """The answer as what a reader of SOAP may be given."""
        body = _inflated(self.read(), self.headers.get("Content-Encoding", "identity").lower())
        if b"\0" in body[:4] or (_ENCODING.match(body) or [b"", b"utf-8"])[1].lower() != b"utf-8":
            raise BadAnswer("XML that is not in UTF-8")
        if _DTD.search(body):
            raise BadAnswer("XML with a DTD")
        return SoapDocument(body, self, self._bounded.deadline)


class SoapDocument(io.BytesIO):
    """A body in memory, with what pyVmomi asks of a response. Reading it ends at its deadline too."""

    def __init__(self, body: bytes, response: http.client.HTTPResponse, deadline: float) -> None:
        super().__init__(body)
        self.status = response.status
        self._headers = response.headers
        self._deadline = deadline

    def getheader(self, name: str, default: str | None = None) -> str | None:
        """A header. The encoding of the content is undone already."""
        return default if name.lower() == "content-encoding" else self._headers.get(name, default)

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes. Raises BadAnswer where what came before took too long to be understood."""
        if time.monotonic() > self._deadline:
            raise BadAnswer("an answer that takes too long to read")
        return super().read(size)


class _Bounded(io.RawIOBase):
    """The bytes of a socket, until a deadline and up to a size."""

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
    """The body without its compression: gzip's, or deflate with or without its header."""
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
