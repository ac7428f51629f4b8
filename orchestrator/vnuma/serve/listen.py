"""Listen at an address and serve a store until stopped."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress

import uvicorn

from vnuma.errors import EnvironmentProblem, InputError
from vnuma.serve.access import Access
from vnuma.serve.app import Act, application
from vnuma.store.open import Store

PATIENCE_S = 2
"""How long to wait for streams when the server stops, in seconds."""


def serve(store: Store, access: Access, say: Callable[[str], None], acts: Mapping[str, Act]) -> None:
    """Serve until Ctrl-C or SIGTERM; `say` is called with the address.

    Raises UsageError for an address that others could read, InputError for an unusable token or certificate,
    EnvironmentProblem for an address in use.
    """
    server = server_of(store, access, acts)
    with bound(access) as listening:
        say(address_of(access, listening))
        with suppress(KeyboardInterrupt):  # how a server is stopped
            server.run(sockets=[listening])


def server_of(store: Store, access: Access, acts: Mapping[str, Act]) -> uvicorn.Server:
    """A server that is not yet running. Raises UsageError and InputError as `serve` does."""
    access.require_safe()
    config = uvicorn.Config(
        application(store, access, acts),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=PATIENCE_S,
        ssl_certfile=access.tls.certificate if access.tls else None,
        ssl_keyfile=access.tls.key if access.tls else None,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"Certificate and key cannot be used ({error}).",
            fix="Name PEM files that belong together, the key without a passphrase.",
        ) from error
    return uvicorn.Server(config)


def bound(access: Access) -> socket.socket:
    """A socket at the address. Raises EnvironmentProblem if it is in use."""
    family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
    try:
        return socket.create_server((access.host, access.port), family=family)
    except OSError as error:
        raise EnvironmentProblem(
            f"{access.host}, port {access.port}, cannot be listened at ({error.strerror}).",
            fix="Take another port: vnuma serve --port 0 lets the system choose.",
        ) from error


def address_of(access: Access, listening: socket.socket) -> str:
    """The address for a browser."""
    host = f"[{access.host}]" if ":" in access.host else access.host
    return f"{'https' if access.tls else 'http'}://{host}:{listening.getsockname()[1]}/"
