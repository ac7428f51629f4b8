"""A receiver of notifications on loopback: a web server with TLS."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


@dataclass
class WebServer:
    """What a web server was sent: paths and documents."""

    address: str
    posts: list[tuple[str, Any]] = field(default_factory=list)


@contextmanager
def web_server(
    certificate: Path | None, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Iterator[WebServer]:
    """A web server that answers each request with this status."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.posts.append((self.path, json.loads(body)))
            self._answer()

        def do_GET(self) -> None:
            told.posts.append((self.path, None))
            self._answer()

        def _answer(self) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Keep the test's output short."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        server.socket = _context(certificate).wrap_socket(server.socket, server_side=True)
    told = WebServer(f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
