"""Verify that the audit log is unaltered: its chain, the store's own lines, and a hash kept elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnuma.engine.access.context import holder
from vnuma.engine.access.places import audit_file, audit_files, audit_home
from vnuma.engine.audit.chain import Chain, read_chain
from vnuma.engine.audit.journal import as_json, read_audit_file
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


@dataclass(frozen=True)
class Verified:
    """The result; without `compared` where the store was not compared."""

    chains: dict[Path, Chain]
    problem: AuditAltered | None
    compared: Compared | None = None

    def lines(self) -> Iterator[str]:
        """The same as text, without the problem."""
        for path, chain in self.chains.items():
            if not chain.problem:
                last = f"; the last has hash {chain.hashes[-1]}" if chain.hashes else ""
                yield f"Checked   {path}: {counted(chain.lines, 'line')}{last}"
            if chain.without:
                yield f"Note      Lines 1 to {chain.without} have no hash: an earlier version wrote them."
            if chain.cut_short:
                numbers = ", ".join(map(str, chain.cut_short))
                yield f"Note      Incomplete text precedes line {numbers}: a failed write."
        if not self.chains:
            yield "No audit log yet."
        if self.compared and self.compared.earlier:
            yield f"Note      {counted(self.compared.earlier, 'line')} are older than this store."
        if self.compared and not self.problem:
            yield "Store     has the same lines of this home."

    def as_json(self) -> dict[str, Any]:
        files = [
            {
                "file": str(path),
                "lines": chain.lines,
                "lines_without_hash": chain.without,
                "cut_short": list(chain.cut_short),
                "last_hash": chain.hashes[-1] if chain.hashes else None,
                "problem": chain.problem,
            }
            for path, chain in self.chains.items()
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
    chains = {path: read_chain(path) for path in files}
    for path, chain in chains.items():
        if chain.problem:
            return Verified(chains, AuditAltered(f"{path}: {chain.problem}.", fix=_COMPARE))
    if expected and not any(expected.lower() in chain.hashes for chain in chains.values()):
        what = f"No line has hash {expected}: lines were removed at the end, or the log was rewritten."
        return Verified(chains, AuditAltered(what, fix=_COMPARE))
    return Verified(chains, None)


def verify_store(store: Store, expected: str | None) -> Verified:
    """Check the store's files, and that file and store have the same lines of this home.

    Raises InputError and StoreError.
    """
    found = verify_files(audit_files(store.place), expected)
    if found.problem:
        return found
    compared = compare(store)
    return Verified(found.chains, contradiction(compared, audit_file(store.place)), compared)


def contradiction(compared: Compared, log: Path) -> AuditAltered | None:
    """How store and file contradict each other."""
    sides = (
        (compared.only_in_store, "The store", str(log), "They were removed from the file"),
        (compared.only_in_file, str(log), "the store", "Somebody added them, or the store lost them"),
    )
    for lines, has, lacks, why in sides:
        if lines:
            first = lines[0]
            return AuditAltered(
                f"{has} has {counted(len(lines), 'line')} that {lacks} lacks, the first of "
                f"{first.at:%Y-%m-%dT%H:%M:%SZ} ({first.vm}, {first.action}).",
                fix=f"{why}; or a process was killed between the two. Compare with vnuma audit and a backup.",
            )
    return None


def compare(store: Store) -> Compared:
    """Compare the store's lines of this home with its files, both ways. Raises InputError.

    A line of 0.1.0 has no home: there it is its author's. Run names are not compared, since the store has
    none for a run that only a file knows. Only this store's own file is compared with it, since 0.1.0 wrote
    the changes of all database servers to one.
    """
    own = audit_file(store.place)
    by_file = {file: list(read_audit_file(file)) for file in audit_files(store.place)}
    there = [line for lines in by_file.values() for line in lines]
    homes, people = {line.home for line in there if line.home}, {line.who for line in there}
    with store.read() as connection:
        stored, begun = audit.lines(connection), runs.store_begun(connection)
    left = Counter(map(_content, there))
    missing = []
    for line in stored:
        ours = line.home in homes | {audit_home()} if line.home else line.who in people | {holder()}
        if ours and not left[_content(line)]:
            missing.append(line)
        left[_content(line)] -= 1
    known = Counter(map(_content, stored))
    added, earlier, compared = list[AuditLine](), 0, False
    for line in by_file.get(own, []):
        if known[_content(line)]:
            known[_content(line)] -= 1
            compared = True
        elif compared or line.at >= begun:
            added.append(line)
        else:
            earlier += 1
    return Compared(missing, added, earlier)


def _content(line: AuditLine) -> str:
    return canonical_json({key: value for key, value in as_json(line).items() if key != "run"})
