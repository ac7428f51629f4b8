"""Verify that the audit log is unaltered: its chain, the store's own lines, and a hash kept elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnuma.domain.vm.plain_text import counted
from vnuma.engine.access.context import holder
from vnuma.engine.access.places import audit_file, audit_files
from vnuma.engine.audit.chain import Chain, read_chain
from vnuma.engine.audit.journal import as_json, audit_lines, read_audit_file
from vnuma.errors import AuditAltered
from vnuma.store.audit import AuditLine
from vnuma.store.open import Store
from vnuma.store.types import canonical_json

_COMPARE = "Compare it with a backup, with the store (vnuma audit) or with a copy elsewhere."


@dataclass(frozen=True)
class Verified:
    """The result. `missing`: lines that only the store has; None where the store was not compared."""

    chains: dict[Path, Chain]
    problem: AuditAltered | None
    missing: int | None = None

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
        if self.missing == 0:
            yield "Store     has no other lines of the same people."

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
            "lines_only_in_store": self.missing,
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
    """Check the store's files, and that they have all of its lines. Raises InputError and StoreError."""
    files, log = audit_files(store.place), audit_file(store.place)
    found = verify_files(files, expected)
    if found.problem:
        return found
    missing, problem = lines_without_file(store, files), None
    if missing:
        first = missing[0]
        problem = AuditAltered(
            f"The store has {counted(len(missing), 'line')} that {log} lacks, the first of "
            f"{first.at:%Y-%m-%dT%H:%M:%SZ} ({first.vm}, {first.action}).",
            fix="They were removed, or not written: the disk was full, the process was killed, or VNUMA_HOME "
            "was another. vnuma audit shows them.",
        )
    return Verified(found.chains, problem, len(missing))


def lines_without_file(store: Store, files: Iterable[Path]) -> tuple[AuditLine, ...]:
    """Lines of the store that are in none of its files.

    Run names are not compared, since the store has none for a run that only a file knows. Raises InputError.
    """
    there = [line for file in files for line in read_audit_file(file)]
    people = {line.who for line in there} | {holder()}
    left = Counter(map(_content, there))
    missing = []
    for line in audit_lines(store, None):
        if line.who in people and not left[_content(line)]:
            missing.append(line)
        left[_content(line)] -= 1
    return tuple(missing)


def _content(line: AuditLine) -> str:
    return canonical_json({key: value for key, value in as_json(line).items() if key != "run"})
