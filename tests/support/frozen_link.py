"""A link to PostgreSQL that is cut as a mesh's is: connections are accepted, and nothing answers."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class FrozenLink:
    """Forwards from a socket in `folder` to the one in the server's folder, except while it is frozen."""

    def __init__(self, folder: Path, server: Path) -> None:
        self._server = server / SOCKET
        self._passes = threading.Event()
        self._passes.set()
        self._ended = False
        self._ends: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        self._ends.append(self._listener)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> FrozenLink:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._passes.set()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def freeze(self) -> None:
        """From now on what is sent goes nowhere, on every connection."""
        self._passes.clear()

    def heal(self) -> None:
        """New connections pass again; those that were frozen are as good as lost."""
        self._passes = threading.Event()
        self._passes.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(str(self._server))
                self._ends += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(*ends, self._passes), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, passes: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                passes.wait()
                if self._ended:
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
