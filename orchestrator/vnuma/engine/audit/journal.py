"""The audit log: a line before each change to a VM, and one after it, in a file and in the store.

Lines contain settings, power states and names, never secrets; see `log_file`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Value
from vnuma.engine.access.context import VmContext, holder
from vnuma.engine.access.places import audit_file, audit_files, audit_home
from vnuma.engine.audit.log_file import new_line, read_log
from vnuma.errors import (
    CertificateRejected,
    InputError,
    PrivilegeMissing,
    QuestionPending,
    ReadBackDiffers,
    StoreError,
    UnreadableAnswer,
    VCenterUnreachable,
    VmNotFound,
    VnumaError,
    WaitTimeout,
)
from vnuma.store import audit, runs
from vnuma.store.audit import AuditLine, Outcome
from vnuma.store.open import Store
from vnuma.store.rows import Run
from vnuma.store.types import utc_now

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
        change = [{"setting": e.setting, "before": e.before, "after": e.after} for e in edits]
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


def journal_of(context: VmContext) -> Journal:
    """The journal of a cell's steps."""
    return Journal(context.store, context.vm.vm_key, context.vm.name, context.run, made=context.made)


def edits_of(changes: Iterable[AuditLine]) -> list[Edit]:
    """The edits of those changes that were made, or may have been."""
    return [
        Edit(edit["setting"], _value(edit["before"]), _value(edit["after"]))
        for line in changes
        if line.may_be_made
        for edit in line.change
    ]


def _value(stored: Any) -> Value:
    """Restore a value from JSON, which has no tuples."""
    return tuple(stored) if isinstance(stored, list) else stored


def noted_here(store: Store, run: Run, vm_key: str, action: str) -> Iterator[AuditLine]:
    """The run's lines of one action on a VM that this machine wrote, oldest first.

    A file or line that cannot be read is left out: a restore must not need it.
    """
    for file in audit_files(store.place):
        with suppress(InputError):
            for line in (one.line for one in read_log(file)):
                wanted = (vm_key, run.name, action)
                if line and (line.vm_key, line.run, line.action) == wanted and line.at >= run.created_at:
                    yield line


def audit_lines(store: Store, run: str | None) -> tuple[AuditLine, ...]:
    """The changes of one run, or of all, each with its outcome. Raises InputError for an unknown run."""
    with store.read() as connection:
        return audit.changes(audit.lines(connection, runs.get_run(connection, run).id if run else None))
