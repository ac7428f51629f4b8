"""What a user allows a study, or a role by hand, to touch: a test clone, or with a change ticket a
production VM too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vnuma.engine.findings import Finding
from vnuma.errors import InputError, PreflightBlocked

_TICKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#-]{1,63}")


@dataclass(frozen=True)
class Permit:
    """`production` VMs may be studied; `ticket` is the change under which it is done."""

    production: bool = False
    ticket: str | None = None

    @classmethod
    def given(cls, production: bool, ticket: str | None) -> Permit:
        """From the command line. Raises InputError for production without a ticket, or one that is none."""
        if ticket is not None and not _TICKET.fullmatch(ticket):
            raise InputError(
                f"'{ticket}' is no change ticket's id.",
                fix="Give it as CHG0031234: letters, digits, . _ / # -",
            )
        if production and ticket is None:
            raise InputError(
                "--production needs the change ticket under which the VM may be changed.",
                fix="vnuma run STUDY --production --ticket CHG0031234; a role outside a run has options "
                "production and ticket.",
            )
        return cls(production, ticket)

    def findings(self, name: str, *, test_clone: bool) -> Iterator[Finding]:
        """A VM that is no test clone blocks the study, or is named with its ticket."""
        if test_clone:
            return
        if self.production:
            yield Finding(
                "P07",
                "warn",
                f"{name} is no test clone: it is power-cycled under change ticket {self.ticket}.",
                "Quote the ticket with the result.",
            )
            return
        yield Finding(
            "P07",
            "block",
            f"{name} is not marked as a test clone; a study power-cycles it again and again.",
            "Study a clone, marked in the inventory by vnuma_test_clone: true. "
            "A production VM needs --production --ticket CHG...",
        )

    def require(self, name: str, *, test_clone: bool) -> None:
        """For a role outside a run. Raises PreflightBlocked unless it is a test clone or permitted."""
        if not test_clone and not self.production:
            raise PreflightBlocked(
                f"P07 {name} is not marked as a test clone.",
                fix="Mark a clone in the inventory: vnuma_test_clone: true. A production VM needs the role's "
                "options production: true and ticket: CHG...",
            )
