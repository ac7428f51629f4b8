"""Runs that another person has to approve: `vnuma_approval: required` in the inventory.

The approval covers the run as it was created: study, method, stopping rule, order, VMs, change ticket and the
inventory's path. Their hash is stored with it and compared before each VM is taken over, also by a play
without `vnuma run`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from vnuma.domain.study.declaration import SCOPE as DECLARED
from vnuma.domain.study.declaration import hash_of
from vnuma.domain.vm.change import Edit
from vnuma.engine.access.context import holder
from vnuma.engine.access.inventory import read_variables
from vnuma.engine.access.places import store_url
from vnuma.engine.audit.journal import NO_VM, Journal
from vnuma.engine.preflight.permit import Permit
from vnuma.errors import InputError, PreflightBlocked
from vnuma.store import facts, runs, vms
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Run, RunState
from vnuma.store.types import iso, utc_now

VARIABLE = "vnuma_approval"
SCOPE = "approval"
"""Scope of the run's facts: `asked_by` while it waits, `given` once it is approved."""


@dataclass(frozen=True)
class Approval:
    """The state of a run's approval. `by` and `ticket` are empty before; `valid`: it matches the
    store now.
    """

    asked_by: str
    by: str = ""
    ticket: str | None = None
    at: str = ""
    valid: bool = False

    @property
    def words(self) -> str:
        """The same for people, in one line."""
        if not self.by:
            return f"waits for approval by somebody other than {self.asked_by}"
        under = f", {self.ticket}" if self.ticket else ""
        given = f"approved by {self.by}{under}"
        return given if self.valid else f"{given}, but the run was altered since"


def is_required(inventory: Path, names: Iterable[str]) -> bool:
    """Whether one of these hosts requires another person's approval. Raises InputError."""
    hosts = read_variables(inventory)
    known = [name for name in names if name in hosts]
    return True in {_says_required(hosts[one].get(VARIABLE), f"{inventory}: host {one}") for one in known}


def refuse_by_hand(vm: str, given: object) -> None:
    """Raise PreflightBlocked for a VM that requires approval, since only a run can be approved.

    Raises InputError for an invalid value.
    """
    if _says_required(given, f"host {vm}"):
        raise PreflightBlocked(
            f"{vm} may only be changed with another person's approval ({VARIABLE}). Nothing was changed.",
            fix="vnuma run STUDY stores a run, which another person approves. Check mode needs no approval.",
        )


def _says_required(given: object, where: str) -> bool:
    value = "none" if given is None else given
    if value not in ("required", "none"):
        raise InputError(f"{where}: {VARIABLE} is {value!r}.", fix=f"{VARIABLE}: required, or none")
    return value == "required"


def ask_for_approval(connection: Connection, run: Run) -> None:
    """Record that the run needs an approval, and who asks for it."""
    facts.add_run_facts(connection, run.id, SCOPE, {"asked_by": holder()})


def approval_of(connection: Connection, run: Run) -> Approval | None:
    """The run's approval; None if it needs none."""
    found = {fact.key: fact.value for fact in facts.facts_of_run(connection, run.id, SCOPE)}
    if "asked_by" not in found:
        return None
    asked_by, given = str(found["asked_by"]), found.get("given")
    if not isinstance(given, dict):
        return Approval(asked_by)
    valid = given["sha256"] == _hash(connection, run)
    return Approval(asked_by, given["by"], given["ticket"], given["at"], valid)


def approve(name: str, *, ticket: str | None = None, by: str | None = None, url: str | None = None) -> str:
    """Approve a waiting run; returns a sentence. `by`: the approver, if not the process's own account.

    The audit log is written first: without its line nothing is approved. Raises InputError for a run that
    needs no approval, has every cell, or was created by the same person.
    """
    ticket = Permit.given(production=False, ticket=ticket).ticket
    who = by or holder()
    store = open_store(store_url(url), create=False)
    with store.read() as connection:
        run = runs.get_run(connection, name)
        runs.refuse_imported(connection, run.id)
        known, approved = approval_of(connection, run), _hash(connection, run)
    if known is None:
        raise InputError(
            f"{run.name} needs no approval.", fix=f"vnuma run --resume {run.name} starts or continues it."
        )
    if run.state is RunState.FINISHED:
        raise InputError(f"{run.name} has ended.", fix="vnuma status lists the runs that wait.")
    if known.valid:
        return f"{run.name} is {known.words} already."
    if _account(who) == _account(known.asked_by):
        raise InputError(
            f"{who} created {run.name} and cannot approve it.",
            fix=f"Ask another person: vnuma approve {run.name}",
        )
    given = {"sha256": approved, "by": who, "ticket": ticket, "at": iso(utc_now())}
    words = f"{who}{f', {ticket}' if ticket else ''}: {approved}"
    journal = Journal(store, NO_VM, NO_VM, run)
    with journal.change("approve", [Edit("approval", known.by or None, words)]), store.write() as connection:
        facts.add_run_facts(connection, run.id, SCOPE, {"given": given})
    return f"{run.name} is approved by {who}. Start it: vnuma run --resume {run.name}"


def approve_by(name: str, who: str | None, url: str, *, ticket: str | None = None) -> str:
    """The same for a user whom another program has authenticated. Raises InputError without a name."""
    if not who:
        raise InputError(
            f"{name} cannot be approved by somebody whose name is not proven.",
            fix=f"vnuma approve {name}, or vnuma serve behind a proxy that names who reads (--user-header).",
        )
    return approve(name, ticket=ticket, by=who, url=url)


def _account(who: str) -> str:
    r"""The account in USER@HOST, DOMAIN\USER or CN=USER,...: other spellings of it are the same person."""
    text = who.strip().casefold().removeprefix("cn=")
    return re.split(r"[@,]", text.rpartition("\\")[2], maxsplit=1)[0].strip()


def ask_where_required(store: Store, run: Run, inventory: Path, names: Iterable[str]) -> None:
    """Make a run wait for an approval that the inventory requires since its creation."""
    if not is_required(inventory, names):
        return
    with store.write() as connection:
        if approval_of(connection, run) is None:
            ask_for_approval(connection, run)


def refuse_unapproved(store: Store, run: Run) -> None:
    """Raise PreflightBlocked for a run whose required approval is missing or for another state of it."""
    with store.read() as connection:
        found = approval_of(connection, run)
    if found is None or found.valid:
        return
    raise PreflightBlocked(
        f"{run.name} {found.words}. Nothing was changed.",
        fix=f"Another person: vnuma approve {run.name} --ticket ID; then vnuma run --resume {run.name}",
    )


def _hash(connection: Connection, run: Run) -> str:
    """SHA-256 of what is approved: declaration, stored study, VMs, ticket, the inventory's path."""
    declared = {fact.key: fact.value for fact in facts.facts_of_run(connection, run.id, DECLARED)}
    return hash_of(
        {
            "declared": declared,
            "study": runs.get_study(connection, run.study_id).digest,
            "seed": run.seed,
            "ticket": run.ticket,
            "inventory": run.inventory,
            "vms": [[vm.vm_key, vm.name, vm.path] for vm in vms.vms_of_run(connection, run.id)],
        }
    )
