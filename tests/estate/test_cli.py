"""`vnuma check` as a user runs it, by the same main function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.estate.build import document, estate_of, saved
from tests.estate.workbooks import export, write
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory, write_study


def test_a_snapshot_is_checked_and_fails_a_pipeline(tmp_path: Path) -> None:
    """Findings that block end in exit code 10, after the table was written."""
    file = saved(tmp_path, estate_of("sql-a"))
    ran = vnuma_here("check", "--snapshot", file, "--fail-on", "block")
    assert ran.code == 10
    waivers = tmp_path / "waivers.yml"
    entries = [f"{{rule: {rule}, object: '*', reason: CR-17, until: 2999-01-01}}" for rule in ("T11", "A02")]
    waivers.write_text(f"waivers: [{', '.join(entries)}]")
    rest = vnuma_here("check", "--snapshot", file, "--waivers", waivers, "--format", "json")
    assert {item["rule"] for item in document(rest.out)["findings"] if item["waived"]} == {"T11", "A02"}
    assert rest.code == 0


def test_a_page_is_written_from_an_export(tmp_path: Path) -> None:
    """With -o the file is written in the format of its ending, and the counts are shown."""
    workbook, page = write(tmp_path / "export.xlsx", export()), tmp_path / "check.html"
    ran = vnuma_here("check", "--rvtools", workbook, "-o", page)
    assert ran.code == 0, ran.text
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_running_vm_and_its_sql_server_are_checked(shared_lab: LabHandle, tmp_path: Path) -> None:
    """With --sql the rules on SQL Server are evaluated; the output says that the lab is simulated."""
    site = write_inventory(tmp_path, shared_lab)
    ran = vnuma_here("check", "--vm", "sql16", "--sql", "-i", site, "--format", "json")
    assert ran.code == 0, ran.text
    found = document(ran.out)
    assert (found["simulated"], found["scenario"]) == (True, "paper")
    assert "S14" in {item["rule"] for item in found["findings"]}
    assert "S04" not in {rule for item in found["not_evaluated"] for rule in item["rules"]}


def test_a_vm_that_waits_for_cpus_is_found_by_its_name(lab: Callable[..., LabHandle], tmp_path: Path) -> None:
    """The counters are read with --vm alone; of a VM that is off there are none."""
    waiting = {"name": "sql16", "around": {"cpu_ready_percent": 8, "co_stop_percent": 1}}
    site = write_inventory(tmp_path, lab(vms=[waiting, {"name": "spare", "power": "off"}]))

    one = document(vnuma_here("check", "--vm", "sql16", "-i", site, "--format", "json").out)
    off = document(vnuma_here("check", "--vm", "spare", "-i", site, "--format", "json").out)
    every = document(vnuma_here("check", "--all", "-i", site, "--format", "json").out)

    assert {"M09", "M10"} & {item["rule"] for item in one["findings"]} == {"M09"}
    assert {item["reason"] for item in off["not_evaluated"] if "M09" in item["rules"]} == {
        "the VM does not run"
    }
    assert any("M09" in item["rules"] and "--vm" in item["reason"] for item in every["not_evaluated"])


def test_a_study_is_checked_arm_by_arm(shared_lab: LabHandle, tmp_path: Path) -> None:
    """A study's rules are asked too, and a finding says in which arm it is."""
    site = write_inventory(tmp_path, shared_lab)
    ran = vnuma_here("check", "--study", write_study(tmp_path), "-i", site, "--format", "json")
    assert ran.code == 0, ran.text
    found = document(ran.out)
    assert "Q01" in found["rules"]
    assert {item["arm"] for item in found["findings"]} > {""}


def test_one_source_has_to_be_given(tmp_path: Path) -> None:
    """Two sources are a mistake on the command line."""
    assert vnuma_here("check", "--all", "--snapshot", tmp_path / "x.json").code == 2
    refused = vnuma_here("check", "--snapshot", tmp_path / "x.json")
    assert (refused.code, "cannot be read" in refused.err) == (3, True)


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (("--name", "sq-*"), "is named sq-*."),
        (("--folder", "Prod/Oracle"), "is in the folder Prod/Oracle."),
        (("--cluster", "gold"), "is in the cluster gold."),
        (("--name", "vm1", "--folder", "nowhere"), "is in the folder nowhere"),
    ],
)
def test_a_filter_that_no_vm_passes_is_refused(tmp_path: Path, filters: tuple[str, ...], words: str) -> None:
    """A mistyped name, folder or cluster checks nothing: an error that names it, not a clean estate."""
    ran = vnuma_here("check", "--rvtools", write(tmp_path / "export.xlsx", export()), *filters)
    assert ran.code == 3, ran.text
    assert words in " ".join(ran.err.split())


def test_filters_that_pass_vms_only_apart_are_named_together(tmp_path: Path) -> None:
    """Where each has VMs of its own, but no VM passes both, all of them are named."""
    sheets = export()
    sheets["vInfo"][0]["Folder"] = "Test"
    ran = vnuma_here(
        "check", "--rvtools", write(tmp_path / "export.xlsx", sheets), "--name", "vm1", "--folder", "Test"
    )
    assert ran.code == 3, ran.text


GOOD = "rule: T11, object: sql-a, reason: CR-17, until: 2027-03-31"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"waivers: [{{{GOOD.replace('T11', 'T99')}}}]", "waivers.yml: Rule T99 does not exist."),
        (
            f"waivers: [{{{GOOD.replace('03-31', '13-01')}}}]",
            "waivers.yml is not YAML: month must be in 1",
        ),
        (
            f"waivers: [{{{GOOD.replace('2027-03-31', 'soon')}}}]",
            "waivers.0.until: Input should be a valid date",
        ),
        (f"[{{{GOOD}}}]", "waivers.yml has no list `waivers:`."),
        ("name: quick", "waivers.yml has no list `waivers:`."),
        ("waivers: [", "waivers.yml is not YAML"),
    ],
)
def test_a_waiver_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """An unknown rule, a day that no month has, another shape: the file and the mistake are named."""
    file, waivers = saved(tmp_path, estate_of("sql-a")), tmp_path / "waivers.yml"
    waivers.write_text(text)
    ran = vnuma_here("check", "--snapshot", file, "--waivers", waivers)
    assert ran.code == 3, ran.text
    assert words in " ".join(ran.err.split())
    assert "Write each entry as {rule: T11" in ran.err or "--explain all" in ran.err


def test_a_baseline_of_another_estate_is_refused(tmp_path: Path) -> None:
    """Everything would be new, and everything of the other one gone; a renamed export is the same estate."""
    other, old = saved(tmp_path, estate_of("sql-a")), tmp_path / "old.json"
    assert vnuma_here("check", "--snapshot", other, "--format", "json", "-o", old).code == 0
    export_now = write(tmp_path / "november.xlsx", export())
    refused = vnuma_here("check", "--rvtools", export_now, "--baseline", old)
    assert refused.code == 3, refused.text
    earlier = write(tmp_path / "october.xlsx", export())
    assert vnuma_here("check", "--rvtools", earlier, "--format", "json", "-o", old).code == 0
    same = vnuma_here("check", "--rvtools", export_now, "--baseline", old)
    assert same.code == 0, same.text
    assert "0 new, 0 gone" in same.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--all", "--vm", "sql16"), "only one of"),
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
