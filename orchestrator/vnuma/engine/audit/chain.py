"""The audit file as a chain: each line has its number and the SHA-256 of the line before it.

The hash covers the line's bytes in the file, including its newline, so anybody can verify it: `sed -n 4p FILE
| sha256sum` prints line 5's `previous`. In line 1 it is null.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnuma.errors import StoreError, reading, write_fix
from vnuma.file_lock import lock_within

BEGIN = '{"at": '
"""How each line of the file begins."""

LINE, PREVIOUS = "line", "previous"
"""The two keys of the chain, last in each line."""

_WAIT_S = 10.0
"""Writing a line takes no time, so a process that holds the file for longer has been suspended."""

_BLOCK = 1 << 16


def append(path: Path, document: Mapping[str, Any]) -> None:
    """Append a line with the hash of the previous one. Concurrent processes take turns.

    It is on the disk afterwards. Raises StoreError, also after a partial write: the next line then follows
    the partial one.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with locked(descriptor, path, _WAIT_S):
                number, previous = _last(descriptor)
                line = {**document, LINE: number + 1, PREVIOUS: previous}
                rest = f"{json.dumps(line)}\n".encode()
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(
            f"The audit log {path} cannot be written ({error.strerror}).", fix=write_fix(error, path.parent)
        ) from error


@contextmanager
def locked(descriptor: int, path: Path, wait_s: float) -> Iterator[None]:
    """Lock the open file. Raises StoreError if another process holds it for longer than `wait_s`."""
    if not lock_within(descriptor, wait_s):
        raise StoreError(
            f"Another process has held {path} for {wait_s:.0f} s.", fix=f"End it if it hangs: fuser -v {path}"
        )
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _last(descriptor: int) -> tuple[int, str | None]:
    """Number and hash of the last complete line; 0 and None without one."""
    end = os.fstat(descriptor).st_size
    start, tail = end, b""
    while start and tail.count(b"\n") < 2:
        size = min(_BLOCK, start)
        start -= size
        tail = os.pread(descriptor, size, start) + tail
    whole = tail[: tail.rfind(b"\n") + 1]
    if not whole:
        return 0, None
    line = whole[whole.rfind(b"\n", 0, -1) + 1 :]
    number = _document(line).get(LINE)
    if not isinstance(number, int):  # written by a version without the chain, or damaged
        number = sum(block.count(b"\n") for block in _blocks(descriptor, end))
    return number, digest(line)


def _blocks(descriptor: int, end: int) -> Iterator[bytes]:
    for start in range(0, end, _BLOCK):
        yield os.pread(descriptor, min(_BLOCK, end - start), start)


def digest(line: bytes) -> str:
    """The hash of a line with its newline, which the next line contains."""
    return hashlib.sha256(line).hexdigest()


def whole_line(text: str) -> str:
    """The line without a partial line before it, which a full disk leaves on the same line of the file."""
    return text[max(text.rfind(BEGIN), 0) :]


def _document(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(whole_line(line.decode()))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class Chain:
    """The result of checking a log. `problem` describes the first line that was altered.

    `without` counts leading lines without a hash. `cut_short` lists lines that begin with a partial one.
    """

    lines: int
    without: int
    hashes: tuple[str, ...]
    cut_short: tuple[int, ...]
    problem: str | None


def read_chain(path: Path) -> Chain:
    """Check a log from its first line to its last. Raises InputError for an unreadable file."""
    with reading(path, "The audit log", fix="Check its path."):
        content = path.read_bytes()
    return check_chain(content)


def check_chain(content: bytes) -> Chain:
    """Check a log. A partial line at its end (without a newline) is ignored."""
    lines = [line + b"\n" for line in content.split(b"\n")[:-1]]
    documents = [_document(line) for line in lines]
    hashes = tuple(map(digest, lines))
    without = next((n for n, found in enumerate(documents) if PREVIOUS in found or not found), len(lines))
    cut_short = tuple(n for n, line in enumerate(lines, 1) if line.rfind(BEGIN.encode()) > 0)
    problems = (_problem(index, documents, hashes, without) for index in range(len(lines)))
    return Chain(len(lines), without, hashes, cut_short, next(filter(None, problems), None))


def _problem(
    index: int, documents: list[dict[str, Any]], hashes: tuple[str, ...], without: int
) -> str | None:
    """What is wrong with this line, the first that does not follow from the one before it."""
    found, number = documents[index], index + 1
    if not found:
        return f"line {number} is not a line of an audit log"
    if index < without:
        return None
    if PREVIOUS not in found:
        return f"line {number} was inserted, or its hash was removed"
    said, at = found[PREVIOUS], found.get(LINE)
    if said == (hashes[index - 1] if index else None):
        return None if at == number else f"line {number} was changed: it has the number {at}"
    if said in hashes[:index]:
        return _inserted(hashes.index(said) + 2, index)
    after = documents[index + 1].get(PREVIOUS) if index + 1 < len(documents) else hashes[index]
    if index and after == hashes[index - 1]:
        return _inserted(number, number)
    if isinstance(at, int) and at > number:
        gone = "1 line was" if at - number == 1 else f"{at - number} lines were"
        return f"{gone} removed before line {number}, which was line {at}"
    if after != hashes[index]:
        return f"line {number} was changed" + (f", or line {index}" if index else "")
    return f"line {max(index, 1)} was changed"


def _inserted(first: int, last: int) -> str:
    return f"line {first} was inserted" if first == last else f"lines {first} to {last} were inserted"
