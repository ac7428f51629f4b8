"""Which VM may be studied, and by whose word: a mark as a test clone, its owner's tag, or a change ticket."""

from __future__ import annotations

import pytest

from vnuma.engine.preflight.findings import Permit, Tagged
from vnuma.errors import InputError, PreflightBlocked

HAS, LACKS = Tagged(("study:yes",)), Tagged(("study:yes",), lacking=("study:yes",))
UNREADABLE = Tagged(("study:yes",), not_known="no answer")
TICKET = Permit(production=True, ticket="CHG0031234")


@pytest.mark.parametrize(
    ("permit", "tagged", "clone", "found"),
    [
        (Permit(), Tagged(), True, []),
        (Permit(), Tagged(), False, ["P07 block"]),
        (TICKET, Tagged(), False, ["P07 warn"]),
        (TICKET, Tagged(), True, []),
        (Permit(), HAS, False, []),
        (Permit(), LACKS, True, ["P34 block"]),
        (Permit(), LACKS, False, ["P34 block", "P07 block"]),
        (TICKET, LACKS, False, ["P34 block", "P07 warn"]),
        (Permit(), UNREADABLE, True, ["P34 block"]),
        (Permit(), UNREADABLE, False, ["P34 block", "P07 block"]),
    ],
)
def test_a_vm_is_studied_by_somebodys_word_and_never_against_its_owners(
    permit: Permit, tagged: Tagged, clone: bool, found: list[str]
) -> None:
    """A tag that lacks, or cannot be read, blocks (P34) whatever else permits; by hand as in a run."""
    findings = list(permit.findings("sql16", tagged, test_clone=clone))

    assert [f"{one.id} {one.severity}" for one in findings] == found
    if any("block" in one for one in found):
        with pytest.raises(PreflightBlocked):
            permit.require("sql16", tagged, test_clone=clone)
    else:
        permit.require("sql16", tagged, test_clone=clone)


@pytest.mark.parametrize(
    ("production", "ticket", "tag"),
    [(True, None, None), (False, "a ticket", None), (False, "?", None), (False, None, "no-category")],
)
def test_a_permit_that_cannot_be_meant_is_refused(
    production: bool, ticket: str | None, tag: str | None
) -> None:
    """Production without its ticket, a ticket or a tag that is none."""
    with pytest.raises(InputError):
        Permit.given(production, ticket, tag)
