"""Findings of preflight, worst first, and the error that lists the blocking ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.target import Target, is_tag
from vnuma.errors import EnvironmentProblem, InputError, PreflightBlocked
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.vsphere.tags import read_tags_of

Severity = Literal["block", "warn", "info"]


@dataclass(frozen=True)
class Finding:
    """A finding: its rule's id, severity, what is wrong and what helps."""

    id: str
    severity: Severity
    what: str
    fix: str = ""

    @classmethod
    def block(cls, id_: str, what: str, fix: str = "") -> Finding:
        """One that keeps the study from starting."""
        return cls(id_, "block", what, fix)

    @classmethod
    def warn(cls, id_: str, what: str, fix: str = "") -> Finding:
        """One that may spoil what is measured."""
        return cls(id_, "warn", what, fix)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The distinct findings: blocking before warning, then by id."""
    order = {"block": 0, "warn": 1, "info": 2}
    return sorted(dict.fromkeys(findings), key=lambda finding: (order[finding.severity], finding.id))


def blocking(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that prevent the study from starting."""
    return [finding for finding in findings if finding.severity == "block"]


def refuse_blocked(findings: Iterable[Finding]) -> None:
    """Raise PreflightBlocked with every blocking finding."""
    blocks = blocking(findings)
    if blocks:
        lines = [
            f"{finding.id} {finding.what}" + (f"\n  {finding.fix}" if finding.fix else "")
            for finding in blocks
        ]
        raise PreflightBlocked("\n".join(lines) + "\nNothing was changed.")


def refuse_shown(findings: Iterable[Finding], command: str) -> None:
    """Raise PreflightBlocked for findings that were already printed. `command` is what to repeat."""
    ids = list(dict.fromkeys(finding.id for finding in blocking(findings)))
    if ids:
        raise PreflightBlocked(
            f"{', '.join(ids)} {'blocks' if len(ids) == 1 else 'block'} the study. Nothing was changed.",
            fix=f"Apply the fixes listed above, then run: {command}",
        )


_TICKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#-]{1,63}")


TAG_RULE = "P34"


@dataclass(frozen=True)
class Tagged:
    """The vSphere tags that a VM needs before it may be changed, and those it lacks or why they are unknown.

    The VM's owner sets tags, not the author of the inventory.
    """

    wanted: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    not_known: str | None = None

    @property
    def permits(self) -> bool:
        """Whether the owner's tags allow studying it."""
        return bool(self.wanted) and not self.refusal

    @property
    def refusal(self) -> str | None:
        """Why they do not, as the end of a sentence about the VM."""
        named = ", ".join(self.lacking or self.wanted)
        if self.not_known:
            return f"must have the vSphere tag {named}, which cannot be read: {self.not_known}"
        return f"does not have the vSphere tag {named}" if self.lacking else None


@dataclass(frozen=True)
class Permit:
    """`production` VMs may be studied; `ticket` is the change ticket; `tag` is required of every VM, as
    `CATEGORY:NAME`.
    """

    production: bool = False
    ticket: str | None = None
    tag: str | None = None

    @classmethod
    def given(cls, production: bool, ticket: str | None, tag: str | None = None) -> Permit:
        """From the command line. Raises InputError for production without a ticket, or an invalid value."""
        if ticket is not None and not _TICKET.fullmatch(ticket):
            raise InputError(
                f"'{ticket}' is not a valid change ticket.",
                fix="Give it as CHG0031234: letters, digits, . _ / # -",
            )
        if production and ticket is None:
            raise InputError(
                "--production needs the change ticket that allows changing the VM.",
                fix="vnuma run STUDY --production --ticket CHG0031234; a role outside a run has the "
                "options production and ticket.",
            )
        if tag is not None and not is_tag(tag):
            raise InputError(f"'{tag}' is not a valid vSphere tag.", fix="--require-tag CATEGORY:NAME")
        return cls(production, ticket, tag)

    def tagged(self, target: Target, moid: str) -> Tagged:
        """The tags that command line and inventory require of this VM, and those it lacks."""
        wanted = tuple(dict.fromkeys(tag for tag in (self.tag, target.require_tag) if tag))
        if not wanted:
            return Tagged()
        try:
            found = read_tags_of(vcenter(target), moid)
        except EnvironmentProblem as error:
            return Tagged(wanted, not_known=error.what)
        return Tagged(wanted, tuple(tag for tag in wanted if tag not in found))

    def findings(self, name: str, tagged: Tagged, *, test_clone: bool) -> Iterator[Finding]:
        """A VM that may not be studied blocks the study; one that may under a ticket is listed."""
        if tagged.refusal:
            yield Finding.block(
                TAG_RULE,
                f"{name} {tagged.refusal}.",
                "Its owner sets the tag in vSphere, if the VM may be power-cycled repeatedly.",
            )
        if test_clone or tagged.permits:
            return
        if self.production:
            yield Finding.warn(
                "P07",
                f"{name} is not a test clone: it is power-cycled under change ticket {self.ticket}.",
                "Quote the ticket with the result.",
            )
            return
        yield Finding.block(
            "P07",
            f"{name} is not marked as a test clone; a study power-cycles it many times.",
            "Study a clone. Mark it with vnuma_test_clone: true in the inventory, or let its owner tag "
            "it: --require-tag CATEGORY:NAME. A production VM needs --production --ticket CHG...",
        )

    def require(self, name: str, tagged: Tagged, *, test_clone: bool) -> None:
        """For changes outside a run: raise PreflightBlocked unless the VM is a test clone or permitted."""
        if tagged.refusal:
            raise PreflightBlocked(
                f"{TAG_RULE} {name} {tagged.refusal}.", fix="Its owner sets the tag in vSphere."
            )
        if not (test_clone or tagged.permits or self.production):
            raise PreflightBlocked(
                f"P07 {name} is not marked as a test clone.",
                fix="Mark a clone in the inventory: vnuma_test_clone: true. A production VM needs "
                "--production --ticket CHG..., or the role's options production: true and ticket: CHG...",
            )

    def require_of(self, target: Target) -> None:
        """`require` for a VM that was not read yet; asks its vCenter only if a tag is needed."""
        tagged = Tagged()
        if self.tag or target.require_tag:
            with connect(vcenter(target)) as session:
                tagged = self.tagged(target, read_vm(session, find_vm(session, target.vm)).moid)
        self.require(target.name, tagged, test_clone=target.test_clone)
