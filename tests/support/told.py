"""Receivers of notifications on loopback: a mail server and a web server, each with TLS."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "vnuma", "hunter2-of-the-mail"


@dataclass
class MailServer:
    """What a mail server was sent."""

    port: int = 0
    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    """Recipients of the envelope, and the mail."""
    senders: list[str] = field(default_factory=list)
    """Of each MAIL command, whether or not a mail followed."""

    async def handle_MAIL(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """A mail begins."""
        self.senders.append(address)
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        """A mail is here."""
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append((envelope.rcpt_tos, mail))
        return "250 OK"


def _login(_server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: Any) -> AuthResult:
    known = LoginPassword(USER.encode(), PASSWORD.encode())
    return AuthResult(success=data == known, handled=data == known)


@contextmanager
def mail_server(certificate: Path | None, *, implicit: bool = False) -> Iterator[MailServer]:
    """A mail server: STARTTLS or implicit TLS with this certificate, and a login; without one neither."""
    context = _context(certificate) if certificate else None
    told = MailServer()
    loop, ready, ended = asyncio.new_event_loop(), Event(), asyncio.Event()

    def make() -> SMTP:
        return SMTP(
            told,
            hostname="mail.test",
            tls_context=None if implicit else context,
            authenticator=_login if context else None,
            auth_require_tls=not implicit,  # it does not know that its connections have TLS
        )

    async def serve() -> None:
        server = await loop.create_server(make, "127.0.0.1", 0, ssl=context if implicit else None)
        told.port = server.sockets[0].getsockname()[1]
        ready.set()
        await ended.wait()
        server.close()

    thread = Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(60)
    try:
        yield told
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.run_until_complete(_cancel_all())
        loop.close()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@dataclass
class WebServer:
    """What a web server was sent: paths and documents."""

    address: str
    posts: list[tuple[str, Any]] = field(default_factory=list)


@contextmanager
def web_server(
    certificate: Path | None, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Iterator[WebServer]:
    """A web server that answers each request with this status."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.posts.append((self.path, json.loads(body)))
            self._answer()

        def do_GET(self) -> None:
            told.posts.append((self.path, None))
            self._answer()

        def _answer(self) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Keep the test's output short."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        server.socket = _context(certificate).wrap_socket(server.socket, server_side=True)
    told = WebServer(f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
