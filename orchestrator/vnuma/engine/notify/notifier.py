"""Send a run's events while it works. A failure never fails the run and delays it only briefly."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Thread

from vnuma.engine.notify.channels import Ready
from vnuma.engine.notify.message import TEST, Event
from vnuma.engine.notify.send import send

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
