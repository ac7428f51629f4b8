"""`vnuma serve`: the store live in a browser, read-only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import StoreOption
from vnuma.cli.screen import say
from vnuma.errors import UsageError, require_packages, text_of

TOKEN = "VNUMA_SERVE_TOKEN"


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; all except loopback need TLS.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: the system chooses.")] = 8765,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS certificate with its chain, PEM.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, PEM.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"File with the token for readers (or {TOKEN}).")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Show the store live in a browser: runs, reports, comparisons, estate, audit. Nothing is changed.

    Examples: vnuma serve; vnuma serve --port 0; vnuma serve --host 10.0.0.5 --certificate site.pem --key
    site.key --token-file token
    """
    require_packages("vnuma serve", "starlette", "uvicorn", "prometheus-client")
    from vnuma.engine.access.places import store_url
    from vnuma.serve.app import serve as served
    from vnuma.serve.connections import Access
    from vnuma.store.open import open_for_reading
    from vnuma.store.place import parse_place
    from vnuma.store.schema import no_store

    if (certificate is None) != (key is None):
        raise UsageError("A certificate and its key belong together.", fix="--certificate FILE --key FILE")
    access = Access(
        host,
        port,
        tls=(certificate, key) if certificate and key else None,
        token=_token(token_file),
    )
    access.require_safe()
    place = parse_place(store_url(store))
    if store or not place.is_sqlite or place.path.exists():
        opened = open_for_reading(store_url(store))
        served(opened, access, lambda at: say(f"Serving {place} at {at} (read only). Ctrl-C ends it."))
        return
    missing = no_store(place)
    served(
        missing,
        access,
        lambda at: say(
            f"{missing.what} Serving what needs none: {at}what-if/. After the first run, start this again. "
            "Ctrl-C ends it."
        ),
    )


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(TOKEN, "").strip() or None
    return text_of(file, "The token file", fix="Name another file.").strip()
