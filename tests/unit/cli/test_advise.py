"""`vnuma advise`: reasons for people, a study file that the product takes."""

from __future__ import annotations

import re
from base64 import b64decode
from pathlib import Path

import pytest

from tests.support.cli import in_json, vnuma_here
from vnuma.domain.study.study_file import parse_study

PAPER = ("advise", "--vcpus", "16", "--memory", "64", "--host-nodes", "2x16/96", "--esxi", "7.0")


def test_advice_is_shown_and_its_study_written(tmp_path: Path) -> None:
    """Best first; the file names the VM and the advised reference, and is never overwritten.

    A study of a VM without a name asks for one before its plan, which only the person knows.
    """
    file = tmp_path / "advised.yml"

    named = vnuma_here(*PAPER, "--vm", "sql16", "--write", file)
    unnamed = vnuma_here(*PAPER, "--write", tmp_path / "unnamed.yml")

    assert named.code == 0, named.text
    study = parse_study(file.read_text(encoding="utf-8"), str(file))
    assert (study.vms, study.reference, study.labels) == (("sql16",), "1x16", ("1x16", "2x8", "4x4"))
    assert ["host of the inventory" in ran.out for ran in (named, unnamed)] == [False, True]
    assert vnuma_here(*PAPER, "--write", file).code == 3
    document = in_json(*PAPER)
    candidates = {one["topology"]: one for one in document["candidates"]}
    assert (document["schema"], next(iter(candidates))) == ("vnuma/advise/1", "1x16")
    assert candidates["2x8"]["settings"] == {"numa.vcpu.followcorespersocket": "1"}
    assert candidates["16x1"]["worth"] == "avoiding"


def test_the_best_shape_is_printed_for_a_tool() -> None:
    """Attributes to paste, with comments only; JSON has every shape's."""
    printed = vnuma_here(*PAPER, "--fix-as", "terraform").out
    assert printed.splitlines()[-2:] == ["num_cpus = 16", "num_cores_per_socket = 16"]
    first = in_json(*PAPER)["candidates"][0]
    assert first["as"]["terraform"] == printed.rstrip("\n")


def test_code_for_a_vm_without_a_name_says_what_to_replace(tmp_path: Path) -> None:
    """Only where the code holds the stand-in; the page names the size instead of a VM that nobody named."""
    page = tmp_path / "advice.html"
    (unnamed, named, terraform) = (
        vnuma_here(*PAPER, *vm, "--fix-as", tool).out
        for vm, tool in [((), "powercli"), (("--vm", "sql16"), "powercli"), ((), "terraform")]
    )

    assert ["# Replace sql-clone " in code for code in (unnamed, named, terraform)] == [True, False, False]
    assert vnuma_here(*PAPER, "-o", page).code == 0
    assert vnuma_here(*PAPER, "-o", tmp_path / "advice.pdf").code == 0
    assert page.is_file()
    assert (tmp_path / "advice.pdf").read_bytes()[:5] == b"%PDF-"


LARGE = ("advise", "--vcpus", "80", "--memory", "512", "--host-nodes", "2x16/96@8.0")


def test_a_vm_that_no_such_host_runs_is_said_to_be_too_large_first() -> None:
    """More vCPUs than logical CPUs, or more memory than the host has: no number of nodes helps."""
    document = in_json(*LARGE)
    assert document["runs_nowhere"] is True
    assert document["hosts_too_small"] == {"2x16/96@8.0": "64 logical CPUs and 192 GB"}


def test_a_vm_that_its_hardware_version_does_not_allow_is_said_to_be_impossible(tmp_path: Path) -> None:
    """ESXi 6.5 gives 128 vCPUs at most; the host's size does not matter, and nothing is written."""
    wide = ("advise", "--vcpus", "200", "--memory", "1024", "--host-nodes", "4x64/1024")
    shown = vnuma_here(*wide, "--esxi", "6.5").out
    document = in_json(*wide, "--esxi", "6.5")
    assert document["beyond_hardware_version"]
    assert {one["worth"] for one in document["candidates"]} == {"avoiding"}
    assert shown.count("R08") == shown.partition("To avoid")[2].count(" nodes  ")
    assert vnuma_here(*wide, "--esxi", "6.5", "--write", tmp_path / "advised.yml").code == 3
    assert not list(tmp_path.iterdir())
    # Update 1 of 7.0 raised it to 768: its VMs get hardware version 18 and later.
    assert in_json(*wide, "--esxi", "7.0U2")["candidates"][0]["topology"] == "4x50"


WIDE = ("advise", "--vcpus", "80", "--memory", "512", "--host-nodes", "2x96/1024@8.0U3", "--sql", "2019")


@pytest.mark.parametrize(
    ("windows", "best"),
    [
        ("Server 2016", "2x40"),
        ("2019", "2x40"),
        ("Windows Server 2022", "1x80"),
        *((name, None) for name in ("Sever 2022", "Server 2024", "Windows", "Windows 11")),
    ],
)
def test_nodes_that_windows_would_split_are_not_advised(windows: str, best: str | None) -> None:
    """Before Server 2022 a NUMA node has at most the 64 CPUs of a processor group.

    A name that no rule knows is refused: its limits would silently be left out.
    """
    if best is None:
        assert vnuma_here(*WIDE, "--windows", windows).code == 2
        return
    document = in_json(*WIDE, "--windows", windows)
    first = document["candidates"][0]
    assert (first["topology"], first["worth"]) == (best, "having")
    assert document["several_processor_groups"] is (best == "2x40")


@pytest.mark.parametrize(
    "name", ["Windows 10 Enterprise LTSC 2019", "Microsoft Windows Server 2016 or later (64-bit)"]
)
def test_a_windows_whose_year_names_no_build_is_known(name: str) -> None:
    """The year of a client, and a name of several releases as vCenter shows it."""
    assert vnuma_here(*WIDE, "--windows", name).code == 0


def test_the_highest_maxdop_is_of_the_cpus_that_the_edition_uses() -> None:
    """Express uses four of eight: MAXDOP 8 would be more than it has schedulers."""
    small = ("advise", "--vcpus", "8", "--memory", "64", "--host-nodes", "2x16/256", "--edition", "express")
    assert set(re.findall(r"MAXDOP up to (\d+)", " ".join(vnuma_here(*small).out.split()))) == {"4"}


def test_a_vm_with_more_vcpus_than_cores_is_told_so() -> None:
    """ESXi runs it, on shared cores; a further, larger host does not hide it."""
    larger = ("advise", "--vcpus", "48", "--memory", "100", "--host-nodes", "2x16/96@8.0")
    for other in ((), ("--host-nodes", "2x24/96@8.0")):
        assert in_json(*larger, *other)["hosts_too_small"] == {"2x16/96@8.0": "32 cores"}


@pytest.mark.parametrize("use", [("--fix-as", "govc"), ("--write", "advised.yml")])
def test_no_shape_is_written_for_a_vm_that_runs_nowhere(tmp_path: Path, use: tuple[str, str]) -> None:
    """The reason is the message; nothing is written."""
    option, value = use
    target = str(tmp_path / value) if option == "--write" else value
    ended = vnuma_here(*LARGE, option, target)
    assert ended.code == 3
    assert not list(tmp_path.iterdir())


def test_the_editions_limit_is_part_of_the_answer() -> None:
    """Before any shape: what Standard uses of the VM by release, and a size that it uses whole."""
    big = ("advise", "--vcpus", "40", "--memory", "256", "--host-nodes", "2x20/256", "--edition", "standard")
    for year, used in (("2019", 24), ("2022", 24), ("2025", 32)):
        document = in_json(*big, "--sql", year)
        assert (document["nodes_needed"], document["usable_cores"]) == (2, used)
        assert document["edition_limit"]["cores"] == used
    limit = in_json(*PAPER, "--edition", "standard")["edition_limit"]  # one that is not reached
    assert (limit["sockets"], limit["cores"]) == (4, 24)
    assert in_json(*PAPER)["edition_limit"] is None


def test_a_page_has_the_answer_and_the_best_shape_drawn(tmp_path: Path) -> None:
    """On each kind of host; the text is printed too."""
    page = tmp_path / "advice.html"
    shown = vnuma_here(*PAPER, "--host-nodes", "4x8/64@8.0", "-o", page)

    text = page.read_text(encoding="utf-8")
    pictures = [b64decode(found).decode() for found in re.findall(r"svg\+xml;base64,([^\"]+)", text)]
    assert shown.code == 0
    assert [re.findall(r"on ([^:]+):", picture)[0] for picture in pictures] == ["2x16/96@7.0", "4x8/64@8.0"]
