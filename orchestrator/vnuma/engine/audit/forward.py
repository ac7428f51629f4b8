"""Forward the audit log's lines to a syslog collector, in order. The log file itself is the queue.

FILE.sent records the position up to which it was sent. Lines that the collector did not accept are sent again
later, so each arrives at least once. A failure never fails a run; it is reported.
"""

from __future__ import annotations

import json
import os
import ssl
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from vnuma.domain.vm.plain_text import counted
from vnuma.engine.audit.chain import locked, whole_line
from vnuma.engine.audit.syslog import TIMEOUT_S, Collector, collector, send
from vnuma.errors import VnumaError
from vnuma.store.types import iso, utc_now

_AGAIN_S = 60.0
"""Pause after a collector failed or was slow, since lines are written while a VM is changed."""

_SLOW_S = 1.0
_SLOW = "it is slow to close connections: lines are sent together, once a minute"

_AT_ONCE = 1000
"""Lines for one connection."""

_WIDTH = 512
"""Width of the position: it is overwritten in place, which needs no disk space and cannot be cut short."""


@dataclass(frozen=True)
class _Sent:
    """How far a log was sent: up to byte `end`, and since when and why the rest was not."""

    end: int
    failed_at: float = 0.0
    why: str = ""


def forward(log: Path, *, now: bool = False) -> None:
    """Send the lines not yet sent; after a recent failure only with `now`."""
    try:
        to = collector()
        if to and log.exists():
            _forward(log, to, now=now)
    except (VnumaError, OSError, ValueError):
        return  # `unsent` reports it, since the position did not move


def unsent(log: Path) -> str | None:
    """What was not sent, and why; None for nothing, or without a collector. Raises InputError and OSError."""
    to = collector()
    if to is None or not log.exists():
        return None
    sent = _Sent(0)
    with log.open("rb") as stream:
        with suppress(FileNotFoundError):
            sent = _parsed(_place(log).read_bytes(), _size(stream)) or sent
        stream.seek(sent.end)
        left = sum(line.endswith(b"\n") for line in stream)
    return (
        f"{counted(left, 'line')} of {log} not sent to {to}: {sent.why or 'not tried yet'}" if left else None
    )


def _forward(log: Path, to: Collector, *, now: bool) -> None:
    descriptor = os.open(_place(log), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with locked(descriptor, _place(log), 2 * TIMEOUT_S), log.open("rb") as stream:
            # A new collector gets only lines written from now on.
            sent = _parsed(os.pread(descriptor, _WIDTH, 0), _size(stream)) or _Sent(_start_of_last(stream))
            if sent.why and not now and 0 <= time.time() - sent.failed_at < _AGAIN_S:
                return
            while lines := _lines(stream, sent.end):
                began = time.monotonic()
                try:
                    send(to, [(_time_of(line), line) for line in lines])
                except OSError as error:
                    _write(descriptor, _Sent(sent.end, time.time(), _words(error)))
                    return
                end = sent.end + sum(map(len, lines)) + len(lines)
                is_slow = time.monotonic() - began > _SLOW_S
                sent = _Sent(end, time.time(), _SLOW) if is_slow else _Sent(end)
                _write(descriptor, sent)
                if is_slow and not now:
                    return
    finally:
        os.close(descriptor)


def _place(log: Path) -> Path:
    return log.with_name(f"{log.name}.sent")


def _size(stream: BinaryIO) -> int:
    return os.fstat(stream.fileno()).st_size


def _parsed(text: bytes, size: int) -> _Sent | None:
    """The stored position in a log of this size; None without one.

    A log that became shorter is sent from its start, and so is one with an unreadable position.
    """
    if not text.strip():
        return None
    try:
        found = json.loads(text)
        sent = _Sent(int(found["end"]), float(found["failed_at"]), str(found["why"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return _Sent(0)
    return sent if 0 <= sent.end <= size else _Sent(0)


def _write(descriptor: int, sent: _Sent) -> None:
    os.pwrite(descriptor, json.dumps(asdict(sent)).encode().ljust(_WIDTH), 0)


def _lines(stream: BinaryIO, start: int) -> list[bytes]:
    """The complete lines from there on, without newlines; as many as one connection takes."""
    stream.seek(start)
    return [line[:-1] for line in islice(stream, _AT_ONCE) if line.endswith(b"\n")]


def _start_of_last(stream: BinaryIO) -> int:
    """Reads the whole log: only before the first line is ever sent."""
    content = stream.read()
    return content.rfind(b"\n", 0, content.rfind(b"\n")) + 1


def _time_of(line: bytes) -> str:
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(whole_line(line.decode()))["at"])
    return iso(utc_now())


def _words(error: OSError) -> str:
    """The error in a few words of ours or of the system."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"[:200]
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_S:.0f} s"
    return (error.strerror or type(error).__name__).lower()[:200]
