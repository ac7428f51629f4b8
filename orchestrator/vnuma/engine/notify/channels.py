"""Whom a run notifies, and how: `vnuma_notify` in the inventory, a list of mails, webhooks and commands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from vnuma.domain.vm.validation import Strict, message
from vnuma.engine.access.inventory import read_variables
from vnuma.engine.access.secrets import Secret, resolve
from vnuma.errors import InputError, VnumaError

VARIABLE = "vnuma_notify"

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
"""The events of `vnuma/event/1` that are sent: those of a run, and of a recorded check."""

_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+")
_PORTS = {"starttls": 587, "implicit": 465, "none": 25}


class Mail(Strict):
    """Mail through an SMTP server with a verified certificate."""

    host: str = Field(pattern=r"^[^\s/{}@?#\\]+$")
    port: int | None = Field(default=None, ge=1, le=65535)
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    user: str = ""
    password: Secret | None = None
    sender: str = Field(alias="from")
    to: tuple[str, ...] = Field(min_length=1)
    ca_file: str | None = None

    @field_validator("sender", "to")
    @classmethod
    def _are_addresses(cls, given: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for address in (given,) if isinstance(given, str) else given:
            if not _ADDRESS.fullmatch(address):
                raise ValueError(f"{address!r} is not a valid mail address: give only NAME@DOMAIN")
        return given

    @model_validator(mode="after")
    def _logs_in_over_tls(self) -> Mail:
        if bool(self.user) != bool(self.password):
            raise ValueError("give user and password, or neither")
        if self.password and self.tls == "none":
            raise ValueError("a password is only sent over TLS: set tls to starttls or implicit")
        return self

    @property
    def server_port(self) -> int:
        """The given port, or the default one."""
        return self.port or _PORTS[self.tls]


class Webhook(Strict):
    """An HTTPS address that takes JSON. Whoever knows it can post, so it is a secret."""

    url: Secret
    shape: Literal["json", "teams", "slack"] = "json"
    tls: Literal["verified", "none"] = "verified"
    ca_file: str | None = None


class Channel(Strict):
    """A notification channel, and the events it carries."""

    mail: Mail | None = None
    webhook: Webhook | None = None
    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    events: tuple[NotifiedEvent, ...] = Field(default=get_args(NotifiedEvent), min_length=1)

    @model_validator(mode="after")
    def _is_one_way(self) -> Channel:
        if sum(channel is not None for channel in (self.mail, self.webhook, self.command)) != 1:
            raise ValueError("give one of mail, webhook, command")
        return self

    @property
    def secret(self) -> Secret | None:
        """Its password or the webhook's address; None if it needs no secret."""
        return self.webhook.url if self.webhook else self.mail.password if self.mail else None

    @property
    def name(self) -> str:
        """Its name in messages, without secrets."""
        if self.mail:
            return f"mail to {', '.join(self.mail.to)}"
        return f"webhook ({self.webhook.shape})" if self.webhook else f"command {(self.command or ('',))[0]}"


@dataclass(frozen=True, repr=False)
class Ready:
    """A channel with its secret's value."""

    channel: Channel
    secret: str | None = None

    @property
    def name(self) -> str:
        """As `Channel.name`, with a webhook's server."""
        return (
            f"{self.channel.name} {shown_url(self.secret or '')}"
            if self.channel.webhook
            else self.channel.name
        )


def shown_url(url: str) -> str:
    """A webhook's address without its secret parts: user, path and query."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(an invalid URL)"
    return f"{parts.scheme}://{parts.hostname}{port}/..." if parts.hostname else "(an invalid URL)"


def channels_of(inventory: Path, names: Iterable[str]) -> tuple[Channel, ...]:
    """The distinct channels of these hosts. Raises InputError with what is wrong with one."""
    hosts = read_variables(inventory)
    found = (
        channel
        for name in names
        if name in hosts
        for channel in _channels(inventory, name, hosts[name].get(VARIABLE))
    )
    return tuple({_identity(channel, None): channel for channel in found}.values())


def ready_channels(inventory: Path, names: Iterable[str]) -> tuple[tuple[Ready, ...], tuple[str, ...]]:
    """The channels with their secrets, and a sentence for each without its secret. Raises as
    `channels_of`.
    """
    ready: dict[str, Ready] = {}
    lacking = []
    for channel in channels_of(inventory, names):
        try:
            secret = resolve(channel.secret) if channel.secret else None
        except VnumaError as error:
            lacking.append(f"{channel.name}: {error.what}")
            continue
        ready[_identity(channel, secret)] = Ready(channel, secret)
    return tuple(ready.values()), tuple(lacking)


def _identity(channel: Channel, secret: str | None) -> str:
    """What identifies equal channels; for a lookup its result, whichever host it belongs to."""
    if secret is None:
        return channel.model_dump_json()
    return channel.model_dump_json(exclude={"mail": {"password"}, "webhook": {"url"}}) + secret


def _channels(inventory: Path, host: str, given: object) -> tuple[Channel, ...]:
    try:
        return TypeAdapter(tuple[Channel, ...]).validate_python(given or ())
    except ValidationError as error:
        where = f"{inventory}: host {host}: {VARIABLE}"
        lines = [f"{'.'.join(map(str, (where, *item['loc'])))}: {message(item)}." for item in error.errors()]
        raise InputError("\n".join(lines), fix="docs/notify.md has an example of each channel.") from None
