"""The server: its routes, the stream of changes, and the address that it listens at until it is stopped."""

from __future__ import annotations

import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from functools import partial
from urllib.parse import unquote

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from vnuma.assets import asset
from vnuma.checks.what_if import answer
from vnuma.errors import EnvironmentProblem, InputError, StoreError, VnumaError
from vnuma.report.page.page import policy, text_of
from vnuma.serve.connections import RESERVED, Access, BoundedProtocol, Guard, OneLineWhenFull
from vnuma.serve.metrics import CONTENT_TYPE, metrics
from vnuma.serve.pages import Pages, mark_of, trouble, trouble_live
from vnuma.serve.reader import POLL_S, Reader
from vnuma.store.open import Store

MOST_WATCHERS = 500
"""Most streams at once: each is a connection that stays open."""

ALIVE_S = 15.0
"""Interval of keep-alive messages, for proxies that end silent connections."""

_RUN = "/runs/"


def application(store: Store | StoreError, access: Access) -> Starlette:
    """The application over one store, or, with the reason why there is none, over what needs none."""
    if isinstance(store, Store):
        of_store = _pages_of(Pages(Reader(store)))
    else:
        of_store = [Route("/{page:path}", partial(_trouble, error=store))]
    return Starlette(
        routes=[
            Route("/what-if/answer", lambda request: JSONResponse(answer(request.query_params))),
            Route("/what-if/ask.js", _static(("what_if/ask_server.js",), "text/javascript")),
            Mount("/what-if", StaticFiles(directory=asset("templates/what_if"), html=True)),
            Route("/static/style.css", _static(("style.css", "serve/serve.css"), "text/css")),
            Route("/static/serve.js", _static(("serve/serve.js",), "text/javascript")),
            *of_store,
        ],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={VnumaError: _trouble, 404: _not_found},
    )


def _pages_of(pages: Pages) -> list[Route]:
    return [
        Route("/", lambda _: HTMLResponse(pages.runs())),
        Route("/runs/{run}", lambda request: HTMLResponse(pages.run(request.path_params["run"]))),
        Route("/runs/{run}/report", partial(_report, pages)),
        Route("/studies/{study}", lambda request: HTMLResponse(pages.study(request.path_params["study"]))),
        Route("/compare", partial(_compare, pages)),
        Route("/estate", lambda _: HTMLResponse(pages.estate())),
        Route("/audit", lambda request: HTMLResponse(pages.audit(request.query_params.get("run", "")))),
        Route("/metrics", lambda _: Response(metrics(pages.reader), media_type=CONTENT_TYPE)),
        Route("/events", partial(_events, pages, anyio.CapacityLimiter(MOST_WATCHERS))),
    ]


def _report(pages: Pages, request: Request) -> Response:
    allowed = f"{policy('style.css', 'page.js')}; frame-ancestors 'none'"
    text = pages.report(request.path_params["run"])
    return HTMLResponse(text, headers={"content-security-policy": allowed})


def _compare(pages: Pages, request: Request) -> Response:
    asked = request.query_params
    allowed = asked.get("allow", "").replace(",", " ").split()
    return HTMLResponse(pages.compare(asked.get("before", ""), asked.get("after", ""), allowed))


async def _events(pages: Pages, watching: anyio.CapacityLimiter, request: Request) -> Response:
    """The stream of a page's changes."""
    live = _live_of(pages, request.query_params.get("page", "/"))
    seen = request.headers.get("last-event-id") or request.query_params.get("seen", "")
    await run_in_threadpool(live)  # an unknown run is an error, not a stream
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    if watching.available_tokens < 1:
        raise HTTPException(503, "Too many watchers.")
    return StreamingResponse(_stream(watching, live, seen), media_type="text/event-stream")


def _trouble(_: Request, error: Exception) -> Response:
    assert isinstance(error, VnumaError)
    return HTMLResponse(trouble(error), 404 if isinstance(error, InputError) else 503)


def _not_found(request: Request, _: Exception) -> Response:
    error = InputError(f"There is no page {request.url.path}.", fix="The links above lead to every page.")
    return _trouble(request, error)


def _static(files: Iterable[str], media_type: str) -> Callable[[Request], Response]:
    text = "".join(map(text_of, files))
    return lambda _: PlainTextResponse(text, media_type=media_type, headers={"cache-control": "no-cache"})


def _live_of(pages: Pages, page: str) -> Callable[[], str]:
    if page.startswith(_RUN):
        name = unquote(page.removeprefix(_RUN))
        return lambda: pages.run_live(name)
    return pages.runs_live


def _or_trouble(live: Callable[[], str]) -> str:
    try:
        return live()
    except VnumaError as error:
        return trouble_live(error)


async def _stream(watching: anyio.CapacityLimiter, live: Callable[[], str], seen: str) -> AsyncIterator[str]:
    """Each change of the page's live part, as long as the reader listens."""
    async with watching:
        yield "retry: 2000\n\n"
        silent = 0.0
        while True:
            html = await run_in_threadpool(_or_trouble, live)
            now = mark_of(html)
            if now != seen:
                seen, silent = now, 0.0
                yield f"id: {now}\nevent: live\ndata: {json.dumps(html)}\n\n"
            elif silent >= ALIVE_S:
                silent = 0.0
                yield ": alive\n\n"
            await anyio.sleep(POLL_S)
            silent += POLL_S


PATIENCE_S = 2
"""How long to wait for streams when the server stops, in seconds."""


def serve(store: Store | StoreError, access: Access, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM; `say` is called with the address.

    Raises UsageError for an address that others could read, InputError for an unusable token or certificate,
    EnvironmentProblem for an address in use.
    """
    server = server_of(store, access)
    logging.getLogger("asyncio").addFilter(OneLineWhenFull())
    with bound(access) as listening:
        say(address_of(access, listening))
        with suppress(KeyboardInterrupt):  # how a server is stopped
            server.run(sockets=[listening])


def server_of(store: Store | StoreError, access: Access) -> uvicorn.Server:
    """A server that is not yet running. Raises UsageError and InputError as `serve` does."""
    access.require_safe()
    config = uvicorn.Config(
        application(store, access),
        http=BoundedProtocol,
        backlog=RESERVED // 2,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=PATIENCE_S,
        ssl_certfile=access.tls[0] if access.tls else None,
        ssl_keyfile=access.tls[1] if access.tls else None,
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
            f"vnuma cannot listen at {access.host}, port {access.port} ({error.strerror}).",
            fix="Take another port: vnuma serve --port 0 lets the system choose.",
        ) from error


def address_of(access: Access, listening: socket.socket) -> str:
    """The address for a browser."""
    host = f"[{access.host}]" if ":" in access.host else access.host
    return f"{'https' if access.tls else 'http'}://{host}:{listening.getsockname()[1]}/"
