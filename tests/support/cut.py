"""A TCP forwarder on loopback that cuts its connections on request."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Literal

How = Literal["end", "reset"]

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: closing sends RST


class Forwarder:
    """Forwards each connection to one address, until asked to cut."""

    def __init__(self, host: str, port: int) -> None:
        self._there = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._clients: list[socket.socket] = []
        self._left: int | None = None
        self._how: How = "end"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut("end")

    def cut(self, how: How) -> None:
        """End every connection now: with a FIN, or with a RST."""
        while self._clients:
            _end(self._clients.pop(), how)

    def cut_after(self, size: int, how: How) -> None:
        """End the connection that answers next, as soon as so many bytes of it have been forwarded."""
        self._left, self._how = size, how

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._there)
                self._clients.append(client)
                for target, arguments in ((self._ask, (client, server)), (self._answer, (server, client))):
                    threading.Thread(target=target, args=arguments, daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with server, suppress(OSError):
            while data := server.recv(4096):
                if self._left is not None:
                    data, self._left = data[: self._left], self._left - len(data)
                client.sendall(data)
                if self._left is not None and self._left <= 0:
                    self._left = None
                    return _end(client, self._how)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


def _end(client: socket.socket, how: How) -> None:
    with suppress(OSError):
        if how == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            client.shutdown(socket.SHUT_RD)  # wakes the thread that reads; the RST follows
        else:
            client.shutdown(socket.SHUT_RDWR)
    client.close()
