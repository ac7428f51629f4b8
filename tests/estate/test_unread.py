"""Which rules no check can evaluate: as docs/check.md lists them, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import LabFactory
from tests.estate.build import document
from tests.support.cli import vnuma
from tests.support.site import write_inventory

PAGE = Path(__file__).parents[2] / "docs" / "check.md"
TOOLS = (
    "familyName='Windows' buildNumber='14393' "
    "prettyName='Windows Server 2016 Standard, 64-bit (Build 14393.1)'"
)
NEEDS_A_NODE_SIZE = {"T23"}
"""Asked on hardware version 23 only."""
NEEDS_OTHER_CONNECTIONS = {"S18"}
"""Asked where clients' connections are seen on several nodes; here the check's own is the only one."""


def listed() -> set[str]:
    """The rules of the table of facts that no source has."""
    table = PAGE.read_text(encoding="utf-8").split("| rule | asks for |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    return {rule for row in rows for rule in re.findall(r"[A-Z]\d\d", row)}


def unread(ran: str) -> set[str]:
    """Rules that were not evaluated in a check's JSON."""
    return {rule for entry in document(ran)["not_evaluated"] for rule in entry["rules"]}


def test_the_page_lists_what_is_never_evaluated(lab: LabFactory, tmp_path: Path) -> None:
    """With everything given that a check can be given, these rules remain, and the page names each."""
    running = lab(
        {"name": "all", "esxi": {"version": "8.0.3"}, "vms": [{"name": "sql16"}]},
        vms=[{"name": "sql16", "extra_config": {"guestInfo.detailed.data": TOOLS}}],
    )
    running.wait_for("sql_listening")
    site = write_inventory(tmp_path, running)
    ran = vnuma("check", "--all", "--sql", "-i", site, "--format", "json")
    assert ran.code == 0, ran.text
    assert unread(ran.out) == listed() - NEEDS_A_NODE_SIZE | NEEDS_OTHER_CONNECTIONS


def test_tools_tell_windows_without_a_login(lab: LabFactory, tmp_path: Path) -> None:
    """The rules on Windows' build and edition need no SQL Server where Tools say them."""
    running = lab(
        vms=[
            {"name": "told", "extra_config": {"guestInfo.detailed.data": TOOLS}},
            {
                "name": "client",
                "extra_config": {"guestInfo.detailed.data": TOOLS.replace("Server 2016", "11 Pro")},
            },
        ]
    )
    ran = vnuma("check", "--all", "-i", write_inventory(tmp_path, running), "--format", "json")
    found = document(ran.out)
    assert not {"W01", "W04"} & unread(ran.out)
    assert [item["object"]["name"] for item in found["findings"] if item["rule"] == "W04"] == ["client"]
