"""Carries connections between addresses, also of two network namespaces: these share sockets in files.

python -m tests.support.relay LISTEN TARGET     # each is a path, or a port of loopback
"""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress


def _listen(address: str) -> socket.socket:
    if address.isdecimal():
        return socket.create_server(("127.0.0.1", int(address)))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    return listening


def _connect(address: str) -> socket.socket:
    if address.isdecimal():
        return socket.create_connection(("127.0.0.1", int(address)))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def main(listen: str, target: str) -> None:
    """Serve until this process is ended; a target that is not there ends the one connection."""
    listening = _listen(listen)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        near, _ = listening.accept()
        try:
            far = _connect(target)
        except OSError:
            near.close()
            continue
        for ends in ((near, far), (far, near)):
            threading.Thread(target=_copy, args=ends, daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
