"""Checks before every page: who may read, which methods, and headers that restrict browsers."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs, quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vnuma.serve.access import COOKIE, Access

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no policy at all a browser would not send the Origin of a form
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
SIGN_IN = "/sign-in"
ACT = re.compile(r"/runs/[^/]+/stop")
"""Routes for a writer's actions on a run: the only other ones that accept POST."""

OPEN = (SIGN_IN, "/static/style.css", "/static/serve.js")
"""Routes that need no token."""

_LARGEST_FORM = 4096

SignInPage = Callable[..., str]
"""(after, refused=...) -> the form."""


class Guard:
    """Lets only readers through, and adds the common headers of all answers."""

    def __init__(self, app: ASGIApp, access: Access, sign_in_page: SignInPage) -> None:
        self._app = app
        self._access = access
        self._sign_in_page = sign_in_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope, receive)
        answer = self._refusal(request) or await self._signing_in(request)
        await (answer or self._app)(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        if not self._access.knows_host(",".join(request.headers.getlist("host"))):
            return PlainTextResponse(
                "This server has another name. Name it: vnuma serve --public-name NAME\n", 421
            )
        path = request.url.path
        if request.method not in ("GET", "HEAD") and not self._takes_post(request):
            return PlainTextResponse("Read only.\n", 405, {"allow": "GET, HEAD"})
        if request.method == "POST" and not self._is_of_this_site(request):
            return PlainTextResponse("A page of another site asked for that.\n", 403)
        if self._may_read(request) or path in OPEN:
            return None
        if self._access.token and "text/html" in request.headers.get("accept", ""):
            after = f"{path}?{request.url.query}" if request.url.query else path
            return RedirectResponse(f"{SIGN_IN}?after={quote(after, safe='')}", 303)
        return PlainTextResponse("A token is required.\n", 401, {"www-authenticate": "Bearer"})

    def _takes_post(self, request: Request) -> bool:
        path = request.url.path
        may_act = self._access.writer is not None and ACT.fullmatch(path) is not None
        return request.method == "POST" and (path == SIGN_IN or may_act)

    def _is_of_this_site(self, request: Request) -> bool:
        """Whether a form comes from this site, by the browser's headers; programs send none."""
        origin = request.headers.get("origin")
        if origin is None:
            return True
        with suppress(ValueError):
            parts = urlsplit(origin)
            return parts.netloc == request.headers.get("host") or parts.hostname in self._access.public_names
        return False

    def _may_read(self, request: Request) -> bool:
        access = self._access
        if not (access.token or access.proxy):
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and (access.is_token(given.strip()) or access.is_writer(given.strip())):
            return True
        if access.is_cookie(request.cookies.get(COOKIE, "")):
            return True
        return bool(proven_user(access, request))

    async def _signing_in(self, request: Request) -> Response | None:
        if request.url.path != SIGN_IN:
            return None
        if not self._access.token:
            return PlainTextResponse("No token is needed.\n", 404)
        if request.method != "POST":
            after = _own_path(request.query_params.get("after", "/"))
            return HTMLResponse(self._sign_in_page(after, refused=False))
        form = await form_of(request)
        after = _own_path(form.get("after", "/"))
        if not self._access.is_token(form.get("token", "").strip()):
            return HTMLResponse(self._sign_in_page(after, refused=True), 403)
        answer = RedirectResponse(after, 303)
        secure = self._access.tls is not None
        answer.set_cookie(COOKIE, self._access.cookie(), httponly=True, samesite="strict", secure=secure)
        return answer


def proven_user(access: Access, request: Request) -> str | None:
    """The user named by an authenticating proxy's header; None without such a proxy."""
    peer = request.client.host if request.client else None
    if access.proxy is None or peer != access.proxy.address:
        return None
    return request.headers.get(access.proxy.header)


def _own_path(given: str) -> str:
    """A path of this server; the first page for any other address."""
    try:
        parts = urlsplit(given)
    except ValueError:
        return "/"
    elsewhere = parts.scheme or parts.netloc or not given.startswith("/") or given.startswith("//")
    return "/" if elsewhere or "\\" in given or not given.isprintable() else given


async def form_of(request: Request) -> dict[str, str]:
    """The first value of each field; empty for a form that is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            return {}
    return {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
