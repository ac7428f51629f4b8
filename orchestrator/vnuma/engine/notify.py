"""Send a run's events to a webhook or a command: `vnuma_notify` in the inventory. None fails a run.

Mail and chats are a command's: a program such as Apprise knows a hundred services. Names come from
inventories and vCenters of others, so an event is passed as JSON or in environment variables, never as code.
"""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPMessage
from threading import Thread
from typing import IO, Any, Literal, get_args
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from vnuma import __version__
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.secrets import Secret, resolve
from vnuma.errors import EnvironmentProblem, InputError, VnumaError
from vnuma.words.plain_text import escaped
from vnuma.words.validation import Strict, message

VARIABLE = "vnuma_notify"
ANSWER_S = 10.0
"""Time limit for one answer of a server, in seconds."""
COMMAND_S = 20.0
"""Time limit for a command, in seconds."""
BOUND_S = 30.0
"""How long `wait` waits for notifications in progress, in seconds."""

Event = Mapping[str, Any]
"""A line of `vnuma run --events` (`vnuma/event/1`)."""

NotifiedEvent = Literal[
    "started",
    "trouble",
    "ended",
    "paused",
    "hours_missed",
    "not_at_baseline",
    "new_findings",
    "drift",
    "check_failed",
]
"""The events that are sent: those of a run, and of a recorded check."""
TEST = "test"

_TITLES = {
    "started": "{run} started",
    "trouble": "{run}: {vm} needs a person",
    "ended": "{run} ended",
    "paused": "{run} paused",
    "hours_missed": "{run} ended early: its allowed hours are over",
    "not_at_baseline": "{run}: a VM is not at its baseline",
    "new_findings": "new findings of the design check",
    "drift": "VMs are not as designed",
    "check_failed": "the design check could not be made",
    TEST: "a test of vnuma_notify",
}
_LONGEST_TITLE = 150


class Webhook(Strict):
    """An HTTPS address that takes JSON. Whoever knows it can post, so it is a secret."""

    url: Secret
    tls: Literal["verified", "none"] = "verified"
    ca_file: str | None = None


class Channel(Strict):
    """A notification channel, and the events it carries."""

    webhook: Webhook | None = None
    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    events: tuple[NotifiedEvent, ...] = Field(default=get_args(NotifiedEvent), min_length=1)

    @model_validator(mode="after")
    def _is_one_way(self) -> Channel:
        if (self.webhook is None) == (self.command is None):
            raise ValueError("give one of webhook, command")
        return self

    @property
    def name(self) -> str:
        """Its name in messages, without secrets."""
        return f"command {self.command[0]}" if self.command else "webhook"


@dataclass(frozen=True, repr=False)
class Ready:
    """A channel, with the address of its webhook."""

    channel: Channel
    url: str = ""

    @property
    def name(self) -> str:
        """As `Channel.name`, with a webhook's server."""
        return f"webhook {shown_url(self.url)}" if self.channel.webhook else self.channel.name


def shown_url(url: str) -> str:
    """A webhook's address without its secret parts: user, path and query."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(an invalid URL)"
    return f"{parts.scheme}://{parts.hostname}{port}/..." if parts.hostname else "(an invalid URL)"


def channels_of(inventory: Inventory, names: Iterable[str]) -> tuple[Channel, ...]:
    """The distinct channels of these hosts. Raises InputError with what is wrong with one."""
    found: dict[str, Channel] = {}
    for name in names:
        try:
            given = inventory.hosts[name].get(VARIABLE) if name in inventory.hosts else None
            own = TypeAdapter(tuple[Channel, ...]).validate_python(given or ())
        except ValidationError as error:
            where = f"{inventory}: host {name}: {VARIABLE}"
            what = [f"{'.'.join(map(str, (where, *it['loc'])))}: {message(it)}." for it in error.errors()]
            fix = "docs/notify.md has an example of each channel."
            raise InputError("\n".join(what), fix=fix) from None
        found |= {channel.model_dump_json(): channel for channel in own}
    return tuple(found.values())


def ready_channels(inventory: Inventory, names: Iterable[str]) -> tuple[tuple[Ready, ...], tuple[str, ...]]:
    """The channels with their addresses, and a sentence for each without. Raises as `channels_of`."""
    ready: dict[str, Ready] = {}
    lacking = []
    for channel in channels_of(inventory, names):
        try:
            url = resolve(channel.webhook.url) if channel.webhook else ""
        except VnumaError as error:
            lacking.append(f"webhook: {error.what}")
            continue
        ready[channel.model_dump_json(exclude={"webhook": {"url"}}) + url] = Ready(channel, url)
    return tuple(ready.values()), tuple(lacking)


def event_line(event: str, run: str | None, *, simulated: bool | None, **more: object) -> dict[str, object]:
    """An event with the present time; `simulated` None means unknown."""
    return {
        "schema": "vnuma/event/1",
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "run": run,
        "simulated": simulated,
        "event": event,
        **more,
    }


def title(event: Event) -> str:
    """A title of one line without control characters."""
    words = "vnuma: " + _TITLES[event["event"]].format_map(event)
    line = " ".join(escaped(words).split())[:_LONGEST_TITLE]
    return f"SIMULATED {line}" if event["simulated"] else line


def text(event: Event) -> str:
    """What happened, the state of each VM, and what to do next."""
    vms = [vm["words"] or "" for vm in event.get("vms", ())]
    vms += [f"{vm['name']} is not at its baseline." for vm in event.get("vms", ()) if not vm["at_baseline"]]
    lines = [
        "SIMULATED: not measured on hardware" if event["simulated"] else "",
        event["words"],
        *vms,
        f"Next: {event['next']}" if event.get("next") else "",
        f"Ticket: {event['ticket']}" if event.get("ticket") else "",
        f"At {event['at']}",
    ]
    return escaped("\n".join(filter(None, lines)))


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
    request = Request(url, data=json.dumps(event).encode(), headers=headers, method="POST")
    try:
        with build_opener(HTTPSHandler(context=context), _NoRedirect).open(request, timeout=ANSWER_S):
            pass
    except HTTPError as error:
        error.close()
        raise


def _by_command(command: tuple[str, ...], event: Event) -> None:
    """Run the command without a shell, shielded from Ctrl-C. At the time limit, kill it with its children."""
    nothing = subprocess.DEVNULL
    words = {"VNUMA_EVENT": event["event"], "VNUMA_TITLE": title(event), "VNUMA_TEXT": text(event)}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=nothing,
        stderr=nothing,
        start_new_session=True,
        env={**os.environ, **words},
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
        case VnumaError():
            return str(error)
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


class _Delivery(Thread):
    """One event sent by one channel, in a daemon thread."""

    def __init__(self, ready: Ready, event: Event) -> None:
        super().__init__(name="notify", daemon=True)
        self.ready, self.event = ready, event
        self.problem: str | None = None

    def run(self) -> None:
        """Send it; whatever fails is kept for `failure`."""
        channel = self.ready.channel
        try:
            if channel.webhook:
                _by_webhook(channel.webhook, self.ready.url, self.event)
            else:
                _by_command(channel.command or (), self.event)
        except Exception as error:  # noqa: BLE001 - a notification never harms a run; `failures` reports it
            self.problem = _why(error)

    def failure(self) -> str | None:
        """Why it was not sent, as a sentence; None if it was."""
        problem = "still being sent; vnuma waits no longer" if self.is_alive() else self.problem
        return f"{self.event['event']} by {self.ready.name}: {problem}." if problem else None


class Notifier:
    """Sends events by these channels. `lacking`: sentences about unusable channels."""

    def __init__(self, channels: Sequence[Ready], lacking: Sequence[str] = ()) -> None:
        self._channels = channels
        self._failures = list(lacking)
        self._under_way: list[_Delivery] = []

    def hear(self, event: Event) -> None:
        """Start sending it by each channel that carries it; returns at once."""
        for ready in self._channels:
            if event["event"] in (TEST, *ready.channel.events):
                delivery = _Delivery(ready, event)
                try:
                    delivery.start()
                except RuntimeError:
                    delivery.problem = "no thread could be started"
                self._under_way.append(delivery)

    def wait(self) -> None:
        """Wait for notifications in progress, at most BOUND_S."""
        until = time.monotonic() + BOUND_S
        for delivery in self._under_way:
            if delivery.ident is not None:
                delivery.join(max(0.0, until - time.monotonic()))

    def failures(self) -> list[str]:
        """A sentence for each notification that failed or is still in progress; each is returned once."""
        failures = [*self._failures, *filter(None, (one.failure() for one in self._under_way))]
        self._failures, self._under_way = [], []
        return failures
