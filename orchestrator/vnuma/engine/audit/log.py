"""The audit log: a line before each change to a VM and one after it, in a file and in the store.

The file is the record, from which the store has its rows. Lines contain settings, power states and names,
never secrets.

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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Value
from vnuma.engine.access.context import VmContext, holder
from vnuma.engine.access.places import audit_file, audit_home
from vnuma.errors import (
    AuditAltered,
    CertificateRejected,
    InputError,
    PrivilegeMissing,
    QuestionPending,
    ReadBackDiffers,
    StoreError,
    StoreUnwritable,
    UnreadableAnswer,
    VCenterUnreachable,
    VmNotFound,
    VnumaError,
    WaitTimeout,
    reading,
    write_fix,
)
from vnuma.file_lock import lock_within
from vnuma.store import audit, runs
from vnuma.store.audit import AuditLine, Outcome
from vnuma.store.open import Store
from vnuma.store.rows import Run
from vnuma.store.tables import canonical_json, iso, utc_now
from vnuma.words.plain_text import counted

NO_VM = "-"
"""In place of a VM, in a line about the whole run."""


_UNCERTAIN = (
    *(VCenterUnreachable, CertificateRejected, UnreadableAnswer),
    *(ReadBackDiffers, WaitTimeout, QuestionPending, VmNotFound, PrivilegeMissing),
)
"""Errors after which a change may have been made: they also come from waiting for it or reading it back."""


def _refuse(error: StoreError) -> None:
    raise error


@dataclass(frozen=True)
class Journal:
    """Records the changes to one VM.

    `run` is None for a role's work outside a run, which has its own `ticket`, and for a run unknown to this
    store, which has its `run_name`. `made` lists the changes in order. `on_store_error` handles a line that
    cannot be written; by default its StoreError prevents the change.
    """

    store: Store
    vm_key: str
    vm: str
    run: Run | None = None
    ticket: str | None = None
    on_store_error: Callable[[StoreError], None] = field(default=_refuse)
    made: list[Edit] = field(default_factory=list)
    run_name: str | None = None

    @contextmanager
    def change(self, action: str, edits: Iterable[Edit]) -> Iterator[None]:
        """Record a change, let the body make it, and record its outcome. Its failure is raised.

        Raises StoreError for a change that was not begun, and for one that was made but not recorded so.
        """
        edits = list(edits)
        change = [asdict(edit) for edit in edits]
        # Else its outcome would count as that of an earlier change, which a kill left without one.
        untold = () if self._write(action, "intended", None, change) else change
        try:
            yield
        except VnumaError as error:
            self._write(action, "unknown" if isinstance(error, _UNCERTAIN) else "failed", error.what, untold)
            raise
        self.made.extend(edits)
        self._write(action, "made", None, untold)

    def note(self, action: str, detail: str) -> None:
        """Record something that changes nothing."""
        self._write(action, "noted", detail)

    def _write(
        self, action: str, outcome: Outcome, detail: str | None, change: Sequence[dict[str, Any]] = ()
    ) -> bool:
        """Write a line. Returns whether that worked."""
        run = self.run
        line = AuditLine(
            utc_now(),
            holder(),
            self.vm,
            self.vm_key,
            run.name if run else self.run_name,
            run.ticket if run else self.ticket,
            action,
            change,
            detail,
            outcome,
            audit_home(),
        )
        try:
            with ExitStack() as finished, self.store.write() as connection:
                audit.add_line(connection, line, run.id if run else None)
                finished.enter_context(new_line(audit_file(self.store.place), line))
        except StoreError as error:
            self.on_store_error(error)
            return False
        return True


def note_of_run(store: Store, run: Run, action: str, detail: str) -> None:
    """Record something about a whole run that changed no VM. Raises StoreError."""
    Journal(store, NO_VM, NO_VM, run).note(action, detail)


PROGRAM = "program"
"""The action of a note about a program of the study, run in a guest or on a client."""


def journal_of(context: VmContext) -> Journal:
    """The journal of a cell's steps."""
    return Journal(context.store, context.vm.vm_key, context.vm.name, context.run, made=context.made)


def edits_of(changes: Iterable[AuditLine]) -> list[Edit]:
    """The edits of those changes that were made, or may have been."""
    return [
        Edit(edit["setting"], from_json(edit["before"]), from_json(edit["after"]))
        for line in changes
        if line.may_be_made
        for edit in line.change
    ]


def from_json(stored: Any) -> Value:
    """A setting's value as JSON stores it, which has no tuples."""
    return tuple(stored) if isinstance(stored, list) else stored


def noted_here(store: Store, run: Run, vm_key: str, action: str) -> Iterator[AuditLine]:
    """The run's lines of one action on a VM that this machine wrote, oldest first.

    A file or line that cannot be read is left out: a restore must not need it.
    """
    wanted = (vm_key, run.name, action)
    with suppress(InputError):
        for line in (one.line for one in read_log(audit_file(store.place))):
            if line and (line.vm_key, line.run, line.action) == wanted and line.at >= run.created_at:
                yield line


def audit_lines(store: Store, run: str | None) -> tuple[AuditLine, ...]:
    """The changes of one run, or of all, each with its outcome. Raises InputError for an unknown run."""
    with store.read() as connection:
        return audit.changes(audit.lines(connection, runs.get_run(connection, run).id if run else None))


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
class Stored:
    """A line of the file: what it says, None if nothing; its hash, None at the end without a newline.

    `unfinished` are the texts before it that a kill or a full disk left without a newline. `problem` is what
    was altered there.
    """

    line: AuditLine | None
    hash: str | None
    unfinished: tuple[AuditLine, ...]
    problem: str | None = None


def read_log(path: Path) -> Iterator[Stored]:
    """Each line of a file, one by one: it may be larger than the memory. Raises InputError for a file that
    cannot be read.
    """
    with reading(path, "The audit log", fix="Check its path."), path.open("rb") as lines:
        yield from _chained(lines)


def _chained(lines: Iterable[bytes]) -> Iterator[Stored]:
    previous, begun, cut = None, set[object](), set[object]()
    for number, raw in enumerate(lines, 1):
        *before, last = [_document(text) for text in raw.split(_BEGIN)[1:]] or [{}]
        unfinished, line = tuple(filter(None, map(_line_of, before))), _line_of(last)
        if not raw.endswith(b"\n"):
            ours = raw.startswith(_BEGIN[:1])  # a process was killed while it wrote
            problem = None if ours else f"line {number} is not a line of this version's audit log"
            yield Stored(None, None, (*unfinished, *([line] if line else [])), problem)
            return
        cut |= {_change_of(one) for one in unfinished if one.outcome == "intended"}
        problem = None
        if line is None:
            problem = f"line {number} is not a line of this version's audit log"
        elif last.get(PREVIOUS) != previous:
            problem = f"line {number} does not follow: a line was changed, inserted or removed"
        elif line.ends_change:
            # A log that was moved away between a change's two lines has the first of them elsewhere.
            if _change_of(line) in cut - begun:
                problem = f"line {number} ends a change whose line before is missing"
            begun.discard(_change_of(line))
        elif line.outcome == "intended":
            begun.add(_change_of(line))
        previous = digest(raw)
        yield Stored(line, previous, unfinished, problem)


def _change_of(line: AuditLine) -> tuple[str, str | None, str]:
    return line.vm_key, line.run, line.action


def read_audit_file(path: Path) -> Iterator[AuditLine]:
    """The finished lines of an audit file. Raises InputError naming the first line that has another form."""
    for one in read_log(path):
        if one.hash and one.line is None:
            raise InputError(
                f"{path}: {one.problem}.", fix="Check its path. A log of 0.1.0 is to be moved away."
            )
        if one.line:
            yield one.line


def _document(rest: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads((_BEGIN + rest).decode())
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
            outcome=document["outcome"],
            home=document["home"],
            **{key: str(document[key]) for key in ("who", "vm", "vm_key", "action")},
        )
    except (ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True)
class Verified:
    """A log's finished lines with their hashes, those that only begun, and its first problem.

    `only_in_store` and `only_in_file` are the lines of this home that the other lacks; None where the store
    was not compared. `earlier`: how many lines of the file are from before the store, which was lost or made
    anew.
    """

    path: Path
    lines: Sequence[AuditLine]
    hashes: Sequence[str]
    unfinished: Sequence[AuditLine]
    problem: AuditAltered | None
    only_in_store: Sequence[AuditLine] | None = None
    only_in_file: Sequence[AuditLine] | None = None
    earlier: int = 0


def verify_file(path: Path, expected: str | None = None) -> Verified:
    """Read a file whole, check its chain, and that it has a line with the hash `expected`.

    Raises InputError for a file that cannot be read.
    """
    return _verified(path, list(read_log(path)), expected)


def _verified(path: Path, found: Sequence[Stored], expected: str | None) -> Verified:
    hashes = [one.hash for one in found if one.hash]
    what = next((f"{path}: {one.problem}." for one in found if one.problem), None)
    if not what and expected and expected.lower() not in hashes:
        what = f"No line has hash {expected}: lines were removed at the end, or the log was rewritten."
    return Verified(
        path,
        [one.line for one in found if one.line],
        hashes,
        [line for one in found for line in one.unfinished],
        _altered(what) if what else None,
    )


def verify_store(store: Store, expected: str | None = None) -> Verified:
    """Check the store's file, and that file and store have the same lines of this home.

    A row that has only an unfinished text is not missing: its process was killed. Raises InputError and
    StoreError.
    """
    path = audit_file(store.place)
    found = _verified(path, list(read_log(path)) if path.exists() else [], expected)
    if found.problem:
        return found
    with store.read() as connection:
        stored, begun = audit.lines(connection), runs.store_begun(connection)
    homes = {line.home for line in found.lines} | {audit_home()}
    here = [row for row in stored if row.home in homes]
    missing = [row for row, there in _looked_up(here, [*found.lines, *found.unfinished]) if not there]
    known = list(_looked_up(found.lines, stored))
    earlier = list(takewhile(lambda one: not one[1] and one[0].at < begun, known))
    added = [line for line, there in known[len(earlier) :] if not there]
    problem = None
    if missing:
        problem = _altered(_contradiction("The store", path, missing, "removed from the file"))
    elif added:
        why = "added to the file, or the store lost them"
        problem = _altered(_contradiction(str(path), "the store", added, why))
    return replace(found, problem=problem, only_in_store=missing, only_in_file=added, earlier=len(earlier))


def _altered(what: str) -> AuditAltered:
    return AuditAltered(what, fix="Compare it with a backup, the store (vnuma audit) or a copy elsewhere.")


def _contradiction(has: str, lacks: object, lines: Sequence[AuditLine], why: str) -> str:
    first = f"{lines[0].at:%Y-%m-%dT%H:%M:%SZ} ({lines[0].vm}, {lines[0].action})"
    return f"{has} has {counted(len(lines), 'line')} that {lacks} lacks, the first of {first}: {why}."


def _looked_up(lines: Iterable[AuditLine], there: Iterable[AuditLine]) -> Iterator[tuple[AuditLine, bool]]:
    """Each line, and whether it is there, as often. A run that only a file knows has no name in the store."""

    def content(line: AuditLine) -> str:
        return canonical_json({key: value for key, value in as_json(line).items() if key != "run"})

    left = Counter(map(content, there))
    for line in lines:
        key = content(line)
        yield line, left[key] > 0
        left[key] -= 1
