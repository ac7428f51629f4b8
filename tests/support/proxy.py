"""A proxy before the lab's vCenter that answers for itself when a test says so, as broken proxies do."""

from __future__ import annotations

import gzip
import http.client
import http.server
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from tests.support.lab import LabHandle
from tests.vsphere.tls_server import self_signed

PAGE = b"<html><head><title>Sign in</title></head><body><p>Sign in to go on</p></body></html>"
OTHER_TYPE = (
    b'<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">'
    b'<soapenv:Body><AnyResponse xmlns="urn:vim25"><returnval type="Task">task-1</returnval>'
    b"</AnyResponse></soapenv:Body></soapenv:Envelope>"
)

BAD_ANSWERS = {
    "page with 200": (200, "text/html", PAGE),
    "page with 500": (500, "text/html; charset=utf-8", PAGE),
    "unclosed page": (200, "text/html", b"<html><body><p>Sign in<br></body>"),
    "page as XML": (500, "text/xml", PAGE),
    "cut short": (200, "text/xml", OTHER_TYPE[:-40]),
    "nothing": (200, "text/xml", b""),
    "another type": (200, "text/xml", OTHER_TYPE),
    "unknown fault": (
        500,
        "text/xml",
        OTHER_TYPE.replace(b"AnyResponse", b"soapenv:Fault").replace(b"returnval", b"detail"),
    ),
    "no HTTP": (0, "", b"220 mail ESMTP\r\n"),
    "reset": (0, "", b""),
}
"""Status, content type and body of each; status 0 means bytes that are not HTTP."""

ENVELOPE = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n"
_GZIP = b"Content-Encoding: gzip\r\n"


def _entities() -> bytes:
    """A short DTD that expands to 10 MB of text."""
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 8))
    dtd = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "x">{levels}]>'.encode()
    return dtd + OTHER_TYPE.partition(b"?>")[2].replace(b"task-1", b"&e7;")


def _whole(body: bytes, headers: bytes = b"") -> bytes:
    return ENVELOPE + headers + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def _drip(first: bytes, then: bytes) -> Iterator[bytes]:
    yield first
    while True:
        time.sleep(0.05)
        yield then


STREAMS: dict[str, Callable[[], Iterator[bytes]]] = {
    "headers that drip": lambda: _drip(ENVELOPE + b"X-More: ", b"x"),
    "a body that drips": lambda: _drip(ENVELOPE + b"\r\n<a>", b" "),
    "gigabytes": lambda: chain([ENVELOPE + b"\r\n<a>"], repeat(b"<b/>" * 65536)),
    "gigabytes in gzip": lambda: iter([_whole(gzip.compress(b" " * 70_000_000), _GZIP)]),
    "gzip that is none": lambda: iter([_whole(b"not compressed", _GZIP)]),
    "entities": lambda: iter([_whole(_entities())]),
    "entities in UTF-16": lambda: iter([_whole(_entities().decode().encode("utf-16"))]),
    "entities in UTF-7": lambda: iter([_whole(_entities().replace(b'.0"?', b'.0" encoding="utf-7"?', 1))]),
    "deep": lambda: iter([_whole(OTHER_TYPE.replace(b"task-1", b"<a>" * 300_000))]),
}
"""What a hostile server sends, byte for byte; some never end."""


Answer = tuple[int, list[tuple[str, str]], bytes]
_OF_ONE_HOP = ("content-length", "transfer-encoding", "connection")


class Proxy:
    """Where it listens, whom its certificate is signed by, and what it does with the next requests."""

    def __init__(self, lab: LabHandle, certificate: Path) -> None:
        self.port = 0
        self.ca_file = str(certificate)
        self._lab = lab
        self._trust = ssl.create_default_context(cafile=str(lab.vcenter.ca_file))
        self._lock = threading.Lock()
        self._bad, self._left, self._at = "", 0, b""
        self.spoiled = 0
        self.open = threading.Event()
        """Cleared: connections are accepted, and no byte of their TLS handshake is answered."""
        self.open.set()
        self.alter: Callable[[bytes], bytes] = lambda body: body
        """How vCenter's own answers are altered on the way."""

    @property
    def vcenter(self) -> dict[str, Any]:
        """The fields of `vnuma_vcenter` that lead through this proxy."""
        return {"port": self.port, "ca_file": self.ca_file}

    def turn(self, kind: str, times: int, *, at: str = "") -> None:
        """Answer so many requests with BAD_ANSWERS or STREAMS[kind], from the first on that names `at`."""
        with self._lock:
            self._bad, self._left, self._at = kind, times, at.encode()

    def spoil(self, body: bytes) -> str:
        """What to answer this request with instead of asking vCenter; empty for nothing."""
        with self._lock:
            if not self._left or self._at not in body:
                return ""
            self._at = b""
            self._left -= 1
            self.spoiled += 1
            return self._bad

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        """The lab's own answer."""
        end = self._lab.vcenter
        there = http.client.HTTPSConnection(end.host, end.port, timeout=60, context=self._trust)
        with closing(there):
            there.request(method, path, body, headers)
            answer = there.getresponse()
            said = answer.read()
            other = self.alter(said)
            return (answer.status if other == said else 200), answer.getheaders(), other


@contextmanager
def proxy_before(lab: LabHandle, folder: Path) -> Iterator[Proxy]:
    """A proxy that passes everything on until it is set to misbehave."""
    certificate = self_signed(folder, name="proxy")
    proxy = Proxy(lab, certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    proxy.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.open.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def handle(self) -> None:
        self.proxy.open.wait()
        super().handle()

    def do_GET(self) -> None:
        self._pass_on(b"")

    def do_POST(self) -> None:
        self._pass_on(self.rfile.read(int(self.headers["Content-Length"])))

    def _pass_on(self, body: bytes) -> None:
        kind = self.proxy.spoil(body)
        if kind in STREAMS:
            self.close_connection = True
            for part in STREAMS[kind]():
                self.wfile.write(part)
            return
        if kind:
            self._spoil(*BAD_ANSWERS[kind])
            return
        headers = {name: value for name, value in self.headers.items() if name != "Host"}
        status, told, said = self.proxy.ask(self.command, self.path, body, headers)
        self._answer(status, [(k, v) for k, v in told if k.lower() not in _OF_ONE_HOP], said)

    def _spoil(self, status: int, kind: str, body: bytes) -> None:
        if status:
            self._answer(status, [("Content-Type", kind)], body)
            return
        self.wfile.write(body)
        self.close_connection = True

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
