"""`vnuma check` as a user runs it, by the same main function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.estate.build import check, estate_of, rules_in, saved
from tests.estate.sources import TOOLS
from tests.estate.workbooks import export, write
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory, write_study


def test_a_snapshot_is_checked_and_fails_a_pipeline(tmp_path: Path) -> None:
    """Findings that block end in exit code 10, after the table was written."""
    file = saved(tmp_path, estate_of("sql-a"))
    waivers = tmp_path / "waivers.yml"
    entries = [f"{{rule: {rule}, object: '*', reason: CR-17, until: 2999-01-01}}" for rule in ("T11", "A02")]
    waivers.write_text(f"waivers: [{', '.join(entries)}]")
    found = check("--snapshot", file, "--waivers", waivers)["findings"]
    assert {item["rule"] for item in found if item["waived"]} == {"T11", "A02"}
    assert vnuma_here("check", "--snapshot", file, "--fail-on", "block").code == 10


def test_a_page_is_written_from_an_export(tmp_path: Path) -> None:
    """With -o the file is written in the format of its ending, and the counts are shown."""
    workbook, page = write(tmp_path / "export.xlsx", export()), tmp_path / "check.html"
    ran = vnuma_here("check", "--rvtools", workbook, "-o", page)
    assert ran.code == 0, ran.text
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def unread(said: dict[str, Any]) -> dict[str, str]:
    """Why each rule was not evaluated."""
    return {rule: one["reason"] for one in said["not_evaluated"] for rule in one["rules"]}


def test_a_running_vm_and_its_sql_server_are_checked(shared_lab: LabHandle, tmp_path: Path) -> None:
    """With --sql the rules on SQL Server are evaluated; the output says that the lab is simulated."""
    found = check("--vm", "sql16", "--sql", "-i", write_inventory(tmp_path, shared_lab))
    assert (found["simulated"], found["scenario"]) == (True, "paper")
    assert rules_in(found) >= {"S14"}
    assert unread(found).keys().isdisjoint({"S04"})


def test_a_vm_that_waits_for_cpus_is_found_by_its_name(lab: Callable[..., LabHandle], tmp_path: Path) -> None:
    """The counters are read with --vm alone; of a VM that is off there are none."""
    waiting = {"name": "sql16", "around": {"cpu_ready_percent": 8, "co_stop_percent": 1}}
    site = write_inventory(tmp_path, lab(vms=[waiting, {"name": "spare", "power": "off"}]))

    one, off, every = (
        check(*asked, "-i", site) for asked in (("--vm", "sql16"), ("--vm", "spare"), ("--all",))
    )

    assert {"M09", "M10"} & rules_in(one) == {"M09"}
    assert unread(off)["M09"] == "the VM does not run"
    assert unread(every)["M09"].count("--vm") == 1


def test_a_study_is_checked_arm_by_arm(shared_lab: LabHandle, tmp_path: Path) -> None:
    """A study's rules are asked too, and a finding says in which arm it is."""
    found = check("--study", write_study(tmp_path), "-i", write_inventory(tmp_path, shared_lab))
    assert set(found["rules"]) >= {"Q01"}
    assert {item["arm"] for item in found["findings"]} > {""}


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (("--name", "sq-*"), "is named sq-*."),
        (("--folder", "Prod/Oracle"), "is in the folder Prod/Oracle."),
        (("--cluster", "gold"), "is in the cluster gold."),
        (("--name", "vm1", "--folder", "nowhere"), "is in the folder nowhere"),
        (("--name", "vm1", "--folder", "Test"), "vm1"),  # each has VMs of its own, but no VM passes both
    ],
)
def test_a_filter_that_no_vm_passes_is_refused(tmp_path: Path, filters: tuple[str, ...], words: str) -> None:
    """A mistyped name, folder or cluster checks nothing: an error that names it, not a clean estate."""
    sheets = export()
    sheets["vInfo"][0]["Folder"] = "Test"
    ran = vnuma_here("check", "--rvtools", write(tmp_path / "export.xlsx", sheets), *filters)
    assert ran.code == 3, ran.text
    assert words in " ".join(ran.err.split())


def test_a_baseline_of_another_estate_is_refused(tmp_path: Path) -> None:
    """Everything would be new, and everything of the other one gone; a renamed export is the same estate."""
    other, old = saved(tmp_path, estate_of("sql-a")), tmp_path / "old.json"
    assert vnuma_here("check", "--snapshot", other, "--format", "json", "-o", old).code == 0
    export_now = write(tmp_path / "november.xlsx", export())
    assert vnuma_here("check", "--rvtools", export_now, "--baseline", old).code == 3
    earlier = write(tmp_path / "october.xlsx", export())
    assert vnuma_here("check", "--rvtools", earlier, "--format", "json", "-o", old).code == 0
    since = check("--rvtools", export_now, "--baseline", old)["baseline"]
    assert (since["new"], since["fixed"]) == (0, [])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--all", "--vm", "sql16"), "only one of"),
        (("--all", "--snapshot", "x.json"), "only one of"),
        (("--design", "plan.json", "--record"), "--record cannot be combined"),
        (
            ("--design", "plan.json", "--host-nodes", "2x16/256@8.0", "--cluster", "SQL"),
            "leave one of them out",
        ),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: tuple[str, ...], words: str) -> None:
    """None is silently ignored."""
    refused = vnuma_here("check", *options)

    assert (refused.code, words in " ".join(refused.err.split())) == (2, True), refused.err


SCREEN = """NUMA   /MB: 98304 (59527), 98304 (60520)
    GID NAME   NHN NMIG      NRMEM      NLMEM N%L
2404272 sql16    0    1   20000.00   45536.00  69
"""
NEEDS_OTHER_CONNECTIONS = {"S18"}
"""Asked where clients' connections are seen on several nodes; here the check's own is the only one."""


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
    assert unread(said).keys() == NEEDS_OTHER_CONNECTIONS
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
    assert not {"W01", "W04"} & unread(found).keys()
    assert [item["object"]["name"] for item in found["findings"] if item["rule"] == "W04"] == ["client"]
