"""`vnuma advise`: reasons for people, a study file that the product takes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import vnuma_here
from vnuma.domain.study.study_file import parse_study

PAPER = ("advise", "--vcpus", "16", "--memory", "64", "--host-nodes", "2x16/96", "--esxi", "7.0")


def test_advice_is_shown_and_its_study_written(tmp_path: Path) -> None:
    """Best first; the file names the VM and the advised reference, and is never overwritten."""
    file = tmp_path / "advised.yml"

    shown = vnuma_here(*PAPER, "--vm", "sql16", "--write", file)

    assert shown.code == 0, shown.text
    assert shown.out.index("Worth having\n  1x16") < shown.out.index("To avoid\n  16x1")
    study = parse_study(file.read_text(encoding="utf-8"), str(file))
    assert (study.vms, study.reference, study.labels) == (("sql16",), "1x16", ("1x16", "2x8", "4x4"))
    again = vnuma_here(*PAPER, "--write", file)
    assert (again.code, "exists already" in again.err) == (3, True)


def test_scripts_get_every_candidate_as_json() -> None:
    """With what has to be set for it."""
    document = json.loads(vnuma_here(*PAPER, "--format", "json").out)

    candidates = {one["topology"]: one for one in document["candidates"]}
    assert document["schema"] == "vnuma/advise/1"
    assert candidates["2x8"]["settings"] == {"numa.vcpu.followcorespersocket": "1"}
    assert candidates["16x1"]["worth"] == "avoiding"


def test_the_best_shape_is_printed_for_a_tool() -> None:
    """Attributes to paste, nothing beside comments and them; JSON has every shape's."""
    printed = vnuma_here(*PAPER, "--fix-as", "terraform").out
    assert "num_cpus = 16\n" in printed
    assert "num_cores_per_socket = 16\n" in printed
    first = json.loads(vnuma_here(*PAPER, "--format", "json").out)["candidates"][0]
    assert first["as"]["terraform"] == printed.rstrip("\n")
