"""The audit log's file: the record of every change, from which the store has its rows.

A line is written in three steps, under the file's lock: its text, then its row in the store, then its
newline, each durable before the next. The change begins only after the third. So a process that is killed
anywhere leaves no contradiction: a finished line had its row first, so one without a row was added by
somebody else; a row had its text first, so one without a text was removed. A text without a newline and
without a row never counted.

Each line has as `previous` the SHA-256 of the line before it with its newline, so that anybody can check the
file alone: `sed -n 4p FILE | sha256sum` prints line 5's. In line 1 it is null.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from vnuma.errors import InputError, StoreError, StoreUnwritable, reading, write_fix
from vnuma.file_lock import lock_within
from vnuma.store.audit import AuditLine
from vnuma.store.types import iso

_BEGIN = b'{"at": '
"""How each text begins; inside one, quotes are escaped."""

PREVIOUS = "previous"

_WAIT_S = 10.0
"""Writing a line takes no time, so a process that holds the file for longer has been suspended."""

_BLOCK = 1 << 16


@contextmanager
def new_line(path: Path, line: AuditLine) -> Iterator[None]:
    """Write the text of a line, let the body commit its row, and finish it. Raises StoreError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not lock_within(descriptor, _WAIT_S):
                raise StoreError(
                    f"Another process has held {path} for {_WAIT_S:.0f} s.",
                    fix=f"End it if it hangs: fuser -v {path}",
                )
            text = json.dumps({**as_json(line), PREVIOUS: _last_hash(descriptor)})
            _append(descriptor, text.encode())
            yield
            _append(descriptor, b"\n")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreUnwritable(
            f"The audit log {path} cannot be written ({error.strerror}).", fix=write_fix(error, path.parent)
        ) from error


def _append(descriptor: int, rest: bytes) -> None:
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def _last_hash(descriptor: int) -> str | None:
    """The hash of the last finished line; None without one."""
    start, tail = os.fstat(descriptor).st_size, b""
    while start and tail.count(b"\n") < 2:
        size = min(_BLOCK, start)
        start -= size
        tail = os.pread(descriptor, size, start) + tail
    finished = tail[: tail.rfind(b"\n") + 1]
    return digest(finished[finished.rfind(b"\n", 0, -1) + 1 :]) if finished else None


def digest(line: bytes) -> str:
    """The hash of a line with its newline and what may precede it there, which the next line contains."""
    return hashlib.sha256(line).hexdigest()


def as_json(line: AuditLine) -> dict[str, Any]:
    """A line as in the file and in `vnuma audit --format json`."""
    return {**vars(line), "at": iso(line.at), "change": list(line.change)}


@dataclass(frozen=True)
class Checked:
    """What is in a file: its finished lines, those that only begun, and the first that was altered."""

    lines: tuple[AuditLine, ...]
    unfinished: tuple[AuditLine, ...]
    hashes: tuple[str, ...]
    problem: str | None


def check(path: Path) -> Checked:
    """Read a file whole and check its chain. Lines of 0.1.0, at its beginning, have no hash.

    Raises InputError for a file that cannot be read.
    """
    lines: list[AuditLine] = []
    unfinished: list[AuditLine] = []
    hashes: list[str] = []
    problem, chained = None, False
    for number, line in enumerate(_stored(path), 1):
        *before, last = [_document(text) for text in _texts(line)] or [{}]
        found = _line_of(last)
        unfinished += filter(None, map(_line_of, before))
        if not line.endswith(b"\n"):
            unfinished += [found] if found else []
            break
        if found is None:
            problem = problem or f"line {number} is not a line of an audit log"
        elif (chained or PREVIOUS in last) and last.get(PREVIOUS) != (hashes[-1] if hashes else None):
            problem = problem or f"line {number} does not follow: a line was changed, inserted or removed"
        chained = chained or PREVIOUS in last
        lines += [found] if found else []
        hashes.append(digest(line))
    return Checked(tuple(lines), tuple(unfinished), tuple(hashes), problem)


def read_audit_file(path: Path) -> Iterator[AuditLine]:
    """The finished lines of an audit file, one by one: it may be larger than the memory.

    Raises InputError naming the first line that does not belong to an audit log.
    """
    for number, found in enumerate(_finished(path), 1):
        if found is None:
            raise InputError(f"{path}: line {number} is not a line of an audit log.", fix="Check its path.")
        yield found


def legible_lines(path: Path) -> Iterator[AuditLine]:
    """The finished lines that can be read. Raises InputError for a file that cannot."""
    return (line for line in _finished(path) if line)


def _finished(path: Path) -> Iterator[AuditLine | None]:
    return (
        _line_of(_document((_texts(line) or [b""])[-1])) for line in _stored(path) if line.endswith(b"\n")
    )


def _stored(path: Path) -> Iterator[bytes]:
    with reading(path, "The audit log", fix="Check its path."), path.open("rb") as lines:
        yield from lines


def _texts(line: bytes) -> list[bytes]:
    """The texts in a line of the file: before its own, those that a kill or a full disk left unfinished."""
    return [_BEGIN + text for text in line.split(_BEGIN)[1:]]


def _document(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text.decode())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _line_of(document: Mapping[str, Any]) -> AuditLine | None:
    try:
        run = document["run"]
        return AuditLine(
            at=datetime.fromisoformat(document["at"]),
            change=[
                {key: edit[key] for key in ("setting", "before", "after")} for edit in document["change"]
            ],
            detail=document["detail"],
            run=None if run is None else str(run),
            ticket=document["ticket"],
            outcome=document.get("outcome"),
            home=document.get("home"),
            **{key: str(document[key]) for key in ("who", "vm", "vm_key", "action")},
        )
    except (ValueError, KeyError, TypeError):
        return None
