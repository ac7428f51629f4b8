"""`vnuma serve`: the store live in a browser; only a writer's token acts on a run."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import StoreOption
from vnuma.cli.screen import say
from vnuma.errors import EnvironmentProblem, InputError, UsageError

TOKEN = "VNUMA_SERVE_TOKEN"
WRITER = "VNUMA_SERVE_WRITER_TOKEN"
_NEEDED = ("starlette", "uvicorn", "prometheus_client")


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
    writer_token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"File with the token to stop runs (or {WRITER}).",
        ),
    ] = None,
    proxy: Annotated[
        str | None, typer.Option(metavar="IP", help="A reverse proxy that authenticates readers.")
    ] = None,
    user_header: Annotated[
        str | None, typer.Option(metavar="NAME", help="The header with the reader's name.")
    ] = None,
    public_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another name by which browsers reach it; may be repeated."),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Show the store live in a browser: runs, reports, comparisons, estate, audit. Nothing is changed.

    With the writer's token (--writer-token-file) a run can be stopped from its page.

    Examples: vnuma serve; vnuma serve --port 0; vnuma serve --host 10.0.0.5 --certificate site.pem --key
    site.key --token-file token
    """
    _require_packages()
    from vnuma.engine.access.places import store_url
    from vnuma.engine.lease.supervision import ask_to_stop
    from vnuma.serve.access import Access, Proxy, Tls
    from vnuma.serve.app import serve as served
    from vnuma.store.open import open_for_reading

    if (certificate is None) != (key is None):
        raise UsageError("A certificate and its key belong together.", fix="--certificate FILE --key FILE")
    if (proxy is None) != (user_header is None):
        raise UsageError("A proxy and its header belong together.", fix="--proxy IP --user-header NAME")
    access = Access(
        host,
        port,
        tls=Tls(certificate, key) if certificate and key else None,
        token=_token(token_file, TOKEN),
        writer=_token(writer_token_file, WRITER),
        proxy=Proxy(proxy, user_header) if proxy and user_header else None,
        public_names=tuple(public_name or ()),
    )
    access.require_safe()
    url = store_url(store)
    opened = open_for_reading(url)
    may = "read only, but writers stop runs" if access.writer else "read only"
    served(
        opened,
        access,
        lambda at: say(f"Serving {opened.place} at {at} ({may}). Ctrl-C ends it."),
        {"stop": lambda run: ask_to_stop(run, after_cell=False, url=url)},
    )


def _require_packages() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise EnvironmentProblem(
            f"vnuma serve needs packages that this Python environment lacks: {', '.join(missing)}.",
            fix=f"{sys.executable} -m pip install starlette uvicorn prometheus-client (installed by pipx: "
            "pipx inject vnuma starlette uvicorn prometheus-client)",
        )


def _token(file: Path | None, variable: str) -> str | None:
    if file is None:
        return os.environ.get(variable, "").strip() or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(
            f"The token file {file} cannot be read ({why}).", fix="Name another file."
        ) from error
