"""Verify that the audit log is unaltered: its chain, the store's own lines, and a hash kept elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnuma.engine.access.context import holder
from vnuma.engine.access.places import audit_file, audit_files, audit_home
from vnuma.engine.audit.log_file import Checked, as_json, check
from vnuma.errors import AuditAltered
from vnuma.store import audit, runs
from vnuma.store.audit import AuditLine
from vnuma.store.open import Store
from vnuma.store.types import canonical_json
from vnuma.words.plain_text import counted

_COMPARE = "Compare it with a backup, with the store (vnuma audit) or with a copy elsewhere."


@dataclass(frozen=True)
class Compared:
    """The lines of this home that the store or its file lacks.

    `earlier`: how many of the file are from before the store, which was lost or made anew.
    """

    only_in_store: Sequence[AuditLine]
    only_in_file: Sequence[AuditLine]
    earlier: int

    def contradiction(self, log: Path) -> str | None:
        """How store and file contradict each other: neither is so after a process was killed."""
        for lines, has, lacks, why in (
            (self.only_in_store, "The store", log, "removed from the file"),
            (self.only_in_file, log, "the store", "added to the file, or the store lost them"),
        ):
            if lines:
                return (
                    f"{has} has {counted(len(lines), 'line')} that {lacks} lacks, the first of "
                    f"{lines[0].at:%Y-%m-%dT%H:%M:%SZ} ({lines[0].vm}, {lines[0].action}): {why}."
                )
        return None


@dataclass(frozen=True)
class Verified:
    """The result; without `compared` where the store was not compared."""

    files: Mapping[Path, Checked]
    problem: AuditAltered | None
    compared: Compared | None = None

    def lines(self) -> Iterator[str]:
        """The same as text, without the problem."""
        for path, found in self.files.items():
            if not found.problem:
                last = f"; the last has hash {found.hashes[-1]}" if found.hashes else ""
                yield f"Checked   {path}: {counted(len(found.hashes), 'line')}{last}"
        if not self.files:
            yield "No audit log yet."
        if self.compared and self.compared.earlier:
            yield f"Note      {counted(self.compared.earlier, 'line')} are older than this store."
        if self.compared and not self.problem:
            yield "Store     has the same lines of this home."

    def as_json(self) -> dict[str, Any]:
        files = [
            {
                "file": str(path),
                "lines": len(found.hashes),
                "last_hash": found.hashes[-1] if found.hashes else None,
                "problem": found.problem,
            }
            for path, found in self.files.items()
        ]
        return {
            "intact": self.problem is None,
            "problem": self.problem.what if self.problem else None,
            "files": files,
            "lines_only_in_store": len(self.compared.only_in_store) if self.compared else None,
            "lines_only_in_file": len(self.compared.only_in_file) if self.compared else None,
        }


def verify_files(files: Iterable[Path], expected: str | None) -> Verified:
    """Check each file, and that one of them has a line with the hash `expected`. Raises InputError."""
    checked = {path: check(path) for path in files}
    what = [f"{path}: {found.problem}." for path, found in checked.items() if found.problem]
    if expected and not any(expected.lower() in found.hashes for found in checked.values()):
        what.append(f"No line has hash {expected}: lines were removed at the end, or the log was rewritten.")
    return Verified(checked, AuditAltered(what[0], fix=_COMPARE) if what else None)


def verify_store(store: Store, expected: str | None) -> Verified:
    """Check the store's files, and that file and store have the same lines of this home.

    Raises InputError and StoreError.
    """
    found = verify_files(audit_files(store.place), expected)
    if found.problem:
        return found
    compared = compare(store, found.files)
    what = compared.contradiction(audit_file(store.place))
    return Verified(found.files, AuditAltered(what, fix=_COMPARE) if what else None, compared)


def compare(store: Store, files: Mapping[Path, Checked]) -> Compared:
    """Compare the store's lines of this home with its files, all of them, both ways.

    Only this store's own file is compared with it, since 0.1.0 wrote the changes of all database servers to
    one.
    """
    with store.read() as connection:
        stored, begun = audit.lines(connection), runs.store_begun(connection)
    added, earlier, compared = list[AuditLine](), 0, False
    known = Counter(map(_content, stored))
    own = files.get(audit_file(store.place))
    for line in own.lines if own else ():
        if known[_content(line)]:
            known[_content(line)] -= 1
            compared = True
        elif compared or line.at >= begun:
            added.append(line)
        else:
            earlier += 1
    return Compared(_without_text(stored, files), added, earlier)


def _without_text(stored: Iterable[AuditLine], files: Mapping[Path, Checked]) -> list[AuditLine]:
    """The rows of this home that no file has, or has unfinished although their change went on.

    A row of 0.1.0 has no home: there it is its author's.
    """
    there = [line for found in files.values() for line in found.lines]
    homes = {line.home for line in there if line.home} | {audit_home()}
    people = {line.who for line in there} | {holder()}
    finished = Counter(map(_content, there))
    begun = Counter(_content(line) for found in files.values() for line in found.unfinished)
    missing, ended = list[AuditLine](), dict[tuple[str, str], AuditLine | None]()
    for row in stored:
        if not (row.home in homes if row.home else row.who in people):
            continue
        content, change = _content(row), (row.vm_key, row.action)
        if finished[content]:
            finished[content] -= 1
            if row.outcome not in ("intended", "noted") and (intent := ended.pop(change, None)):
                missing.append(intent)
            ended.pop(change, None)
        elif begun[content]:
            begun[content] -= 1
            if row.outcome == "intended":
                ended[change] = row
        else:
            missing.append(row)
    return missing


def _content(line: AuditLine) -> str:
    """A line without its run's name: the store has none for a run that only a file knows."""
    return canonical_json({key: value for key, value in as_json(line).items() if key != "run"})
