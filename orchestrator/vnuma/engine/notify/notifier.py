"""Sends a run's events by mail, webhook or command, within time limits. A failure never fails the run."""

from __future__ import annotations

import json
import os
import re
import signal
import smtplib
import ssl
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPMessage
from threading import Thread
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from vnuma import __version__
from vnuma.engine.notify.channels import Mail, Ready, Webhook
from vnuma.engine.notify.message import SHAPES, TEST, Event, as_mail
from vnuma.errors import EnvironmentProblem, VnumaError

ANSWER_S = 10.0
"""Time limit for one answer of a server, in seconds."""

COMMAND_S = 20.0
"""Time limit for a command, in seconds."""


def send(ready: Ready, event: Event) -> None:
    """Send the event. Raises EnvironmentProblem, without text from the server or program."""
    try:
        if ready.channel.mail:
            _by_mail(ready.channel.mail, ready.secret, event)
        elif ready.channel.webhook:
            _by_webhook(ready.channel.webhook, ready.secret or "", event)
        else:
            _by_command(ready.channel.command or (), event)
    except VnumaError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, its own words may hold a secret
        raise EnvironmentProblem(_why(error)) from None


def _by_mail(mail: Mail, password: str | None, event: Event) -> None:
    context = ssl.create_default_context(cafile=mail.ca_file)
    where = (mail.host, mail.server_port)
    connection = (
        smtplib.SMTP_SSL(*where, timeout=ANSWER_S, context=context)
        if mail.tls == "implicit"
        else smtplib.SMTP(*where, timeout=ANSWER_S)
    )
    with connection as server:
        if mail.tls == "starttls":
            server.starttls(context=context)
        if password:
            server.login(mail.user, password)
        refused = server.send_message(as_mail(mail, event), mail.sender, mail.to)
    if refused:
        raise EnvironmentProblem(f"the server refuses {', '.join(refused)}")


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects, which would send the event to an unknown server."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Refuse it: urllib then raises HTTPError."""


def _by_webhook(webhook: Webhook, url: str, event: Event) -> None:
    schemes = ("https",) if webhook.tls == "verified" else ("https", "http")
    parts = urlsplit(url)
    if parts.scheme not in schemes or not parts.hostname or "@" in parts.netloc or re.search(r"[^!-~]", url):
        raise EnvironmentProblem(f"its URL is not a valid {schemes[-1]}:// address")
    context = ssl.create_default_context(cafile=webhook.ca_file)
    headers = {"Content-Type": "application/json", "User-Agent": f"vnuma/{__version__}"}
    body = json.dumps(SHAPES[webhook.shape](event)).encode()
    request = Request(url, data=body, headers=headers, method="POST")
    try:
        with build_opener(HTTPSHandler(context=context), _NoRedirect).open(request, timeout=ANSWER_S):
            pass
    except HTTPError as error:
        error.close()
        raise


def _by_command(command: tuple[str, ...], event: Event) -> None:
    """Run the command without a shell, shielded from Ctrl-C. At the time limit, kill it with its children."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, start_new_session=True
    )
    try:
        process.communicate(json.dumps(event).encode() + b"\n", timeout=COMMAND_S)
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command[0])


def _why(error: BaseException) -> str:
    """Why it failed, without the error's own text: a server may repeat what it was sent."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return f"the server refuses the login ({error.smtp_code})"
        case smtplib.SMTPRecipientsRefused():
            return "the server refuses every recipient"
        case smtplib.SMTPNotSupportedError():
            return "the server does not offer STARTTLS, or not the required login"
        case smtplib.SMTPResponseException():
            return f"the server answers {error.smtp_code}"
        case HTTPError():
            return f"the server answers {error.code}"
        case URLError(reason=BaseException() as reason):
            return _why(reason)
        case ssl.SSLCertVerificationError():
            return f"its certificate is refused: {error.verify_message}"
        case TimeoutError():
            return f"no answer within {ANSWER_S:.0f} s"
        case subprocess.TimeoutExpired():
            return f"it did not end within {COMMAND_S:.0f} s"
        case subprocess.CalledProcessError():
            return f"it ended with exit status {error.returncode}"
        case OSError(strerror=str() as words):
            return words.lower()
    return f"the conversation failed ({type(error).__name__})"


BOUND_S = 30.0
"""How long `wait` waits for notifications in progress, in seconds."""


@dataclass
class _Delivery:
    """One event sent by one channel, in a daemon thread."""

    ready: Ready
    event: Event
    problem: str | None = None
    thread: Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = Thread(target=self._send, name="notify", daemon=True)
        try:
            self.thread.start()
        except RuntimeError:
            self.problem = "no thread could be started"

    def _send(self) -> None:
        try:
            send(self.ready, self.event)
        except Exception as error:  # noqa: BLE001 - a notification never harms a run; `failures` reports it
            self.problem = str(error)

    def failure(self) -> str | None:
        """Why it was not sent, as a sentence; None if it was."""
        problem = "still being sent; vnuma waits no longer" if self.thread.is_alive() else self.problem
        return f"{self.event['event']} by {self.ready.name}: {problem}." if problem else None


class Notifier:
    """Sends events by these channels. `lacking`: sentences about unusable channels."""

    def __init__(self, channels: Sequence[Ready], lacking: Sequence[str] = ()) -> None:
        self._channels = channels
        self._failures = list(lacking)
        self._under_way: list[_Delivery] = []

    def hear(self, event: Event) -> None:
        """Start sending it by each channel that carries it; returns at once."""
        wanted = (ready for ready in self._channels if event["event"] in (TEST, *ready.channel.events))
        self._under_way += [_Delivery(ready, event) for ready in wanted]

    def wait(self) -> None:
        """Wait for notifications in progress, at most BOUND_S."""
        until = time.monotonic() + BOUND_S
        for delivery in self._under_way:
            if delivery.thread.ident is not None:
                delivery.thread.join(max(0.0, until - time.monotonic()))

    def failures(self) -> list[str]:
        """A sentence for each notification that failed or is still in progress; each is returned once."""
        failures = [*self._failures, *filter(None, (one.failure() for one in self._under_way))]
        self._failures, self._under_way = [], []
        return failures
