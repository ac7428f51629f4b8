"""A receiver of OpenTelemetry traces on loopback, as a collector takes them over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Receiver:
    """Where it listens, and what it was sent."""

    url: str = ""
    spans: list[Any] = field(default_factory=list)
    services: set[str] = field(default_factory=set)


@contextmanager
def receiver(status: int = 200) -> Iterator[Receiver]:
    """Receive, or refuse with another status, for as long as the context is open."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            request = ExportTraceServiceRequest()
            packed = self.headers.get("content-encoding") == "gzip"
            request.ParseFromString(decompress(body) if packed else body)
            for part in request.resource_spans:
                named = {item.key: item.value.string_value for item in part.resource.attributes}
                found.services.add(named["service.name"])
                found.spans += [span for scope in part.scope_spans for span in scope.spans]
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
