"""A proxy that connects by HTTP CONNECT, and counts for whom."""

from __future__ import annotations

import http.server
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class ConnectProxy:
    """Where it listens, and which addresses it has connected to."""

    def __init__(self, refuse: int | None) -> None:
        self.address = ""
        self.refuse = refuse
        self.asked: list[str] = []


@contextmanager
def connect_proxy(refuse: int | None = None) -> Iterator[ConnectProxy]:
    """One on loopback; with `refuse` it answers every request with that status instead."""
    proxy = ConnectProxy(refuse)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": proxy}))
    server.daemon_threads = True
    proxy.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    proxy: ConnectProxy

    def do_CONNECT(self) -> None:
        self.proxy.asked.append(self.path)
        if self.proxy.refuse:
            self.send_error(self.proxy.refuse)
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as there:
            self.send_response(200)
            self.end_headers()
            self._pass_on(there)
        self.close_connection = True

    def _pass_on(self, there: socket.socket) -> None:
        other = {self.connection: there, there: self.connection}
        with suppress(OSError):
            while True:
                for end in select.select(list(other), [], [], 60)[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    other[end].sendall(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
