"""Which rules a check can evaluate: all, once it is given what each of them asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.conftest import LabFactory
from tests.estate.build import check
from tests.support.cli import vnuma_here
from tests.support.site import write_inventory

TOOLS = (
    "familyName='Windows' buildNumber='14393' "
    "prettyName='Windows Server 2016 Standard, 64-bit (Build 14393.1)'"
)
SCREEN = """NUMA   /MB: 98304 (59527), 98304 (60520)
    GID NAME   NHN NMIG      NRMEM      NLMEM N%L
2404272 sql16    0    1   20000.00   45536.00  69
"""
NEEDS_OTHER_CONNECTIONS = {"S18"}
"""Asked where clients' connections are seen on several nodes; here the check's own is the only one."""


def unread(said: dict[str, Any]) -> set[str]:
    """Rules that were not evaluated in a check's JSON."""
    return {rule for entry in said["not_evaluated"] for rule in entry["rules"]}


def test_every_rule_is_evaluated_where_all_is_given(lab: LabFactory, tmp_path: Path) -> None:
    """One VM, its SQL Server and esxtop's screen: no rule lacks a fact, and the screen's figures count."""
    running = lab(
        {"name": "all", "esxi": {"version": "8.0.3"}, "vms": [{"name": "sql16"}]},
        vms=[{"name": "sql16", "extra_config": {"guestInfo.detailed.data": TOOLS}}],
    )
    running.wait_for("sql_listening")
    site = write_inventory(tmp_path, running)
    screen = tmp_path / "esxtop.txt"
    screen.write_text(SCREEN, encoding="utf-8")
    said = check("--vm", "sql16", "--sql", "--evidence", screen, "-i", site)
    assert unread(said) == NEEDS_OTHER_CONNECTIONS
    found = {item["rule"]: item["observed"] for item in said["findings"]}
    assert found["M05"] == {"N%L": "69"}
    assert found["M06"]["NMIG"] == "1"


def test_a_text_without_esxtops_screen_is_refused(lab: LabFactory, tmp_path: Path) -> None:
    """The message names the file and how to save the screen; nothing is checked."""
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("NUMA\n", encoding="utf-8")
    ran = vnuma_here("check", "--all", "--evidence", wrong, "-i", write_inventory(tmp_path, lab()))
    assert (ran.code, ran.out) == (3, "")
    assert str(wrong) in ran.err


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
    found = check("--all", "-i", write_inventory(tmp_path, running))
    assert not {"W01", "W04"} & unread(found)
    assert [item["object"]["name"] for item in found["findings"] if item["rule"] == "W04"] == ["client"]
