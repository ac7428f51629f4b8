"""`vnuma serve` on a real socket, in this process."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from vnuma.errors import StoreError
from vnuma.serve.app import address_of, bound, server_of
from vnuma.serve.connections import Access
from vnuma.store.open import Store, open_for_reading


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str


@contextmanager
def serving(store: Store | StoreError, access: Access | None = None) -> Iterator[str]:
    """Serve the store for as long as the context is open; yields the address without its last slash."""
    access = access or Access()
    of = open_for_reading(f"sqlite:///{store.place.path}") if isinstance(store, Store) else store
    server = server_of(of, access)
    with bound(access) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield address_of(access, listening).rstrip("/")
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def asked(
    address: str,
    path: str,
    method: str = "GET",
    body: str | None = None,
    context: ssl.SSLContext | None = None,
    **headers: str,
) -> Answer:
    """One request; a header's underscores stand for its hyphens. Redirects are not followed."""
    connection = _connection(address, context)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): it for name, it in headers.items()})
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, answer.read().decode())
    finally:
        connection.close()


@contextmanager
def listening(address: str, page: str) -> Iterator[Iterator[str]]:
    """The HTML that the stream of a page sends, change by change."""
    connection = _connection(address, None)
    try:
        connection.request("GET", f"/events?page={page}")
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        lines = (line.decode().rstrip("\n") for line in iter(answer.readline, b""))
        yield (json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: "))
    finally:
        connection.close()


def _connection(address: str, context: ssl.SSLContext | None) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    assert parts.hostname
    if context:
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=60, context=context)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
