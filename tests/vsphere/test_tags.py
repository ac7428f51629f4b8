"""Tags over vCenter's REST API, and VMs chosen by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.estate.build import document
from tests.support.cli import vnuma_here
from tests.support.site import write_inventory, write_study
from tests.vsphere.support import LabFactory, vcenter_of, vm
from vnuma.errors import CertificateRejected, EnvironmentProblem, LoginRefused, VCenterUnreachable
from vnuma.vsphere.tags import read_tags

TAGGED = {
    "name": "tagged",
    "vms": [vm("sql01"), vm("sql02"), vm("web01")],
    "tags": [
        {"category": "Tier", "name": "Gold", "vms": ["sql01", "sql02"]},
        {"category": "App", "name": "SAP / R3", "vms": ["sql02"]},
        {"category": "Tier", "name": "Nobody's", "vms": []},
    ],
}


def test_tags_of_vms_have_category_and_name(lab: LabFactory) -> None:
    """Every VM's tags come with their category; a VM without any is not among them."""
    found = read_tags(vcenter_of(lab(TAGGED)))
    assert sorted(found.values()) == [("App:SAP / R3", "Tier:Gold"), ("Tier:Gold",)]


def test_a_vcenter_without_tags_answers_with_none(lab: LabFactory) -> None:
    """Empty lists are answers, not faults."""
    assert read_tags(vcenter_of(lab("paper"))) == {}


def test_what_keeps_tags_from_being_read_is_said(lab: LabFactory) -> None:
    """A server without the API, a refused login, a certificate and a dead address are distinguished."""
    here = lab(TAGGED)
    with pytest.raises(EnvironmentProblem, match=r"has no API for tags \(HTTP 404\)"):
        read_tags(vcenter_of(lab({"name": "alone", "standalone": True})))
    with pytest.raises(LoginRefused):
        read_tags(vcenter_of(here, user="nobody"))
    with pytest.raises(CertificateRejected):
        read_tags(vcenter_of(here, ca_file=None))
    here.stop()
    with pytest.raises(VCenterUnreachable):
        read_tags(vcenter_of(here))


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [("Tier:Gold", {"sql01", "sql02"}), ("gold*", set()), ("SAP*", {"sql02"}), ("*:*", {"sql01", "sql02"})],
)
def test_vms_are_chosen_by_tag(lab: LabFactory, tmp_path: Path, pattern: str, chosen: set[str]) -> None:
    """By category and name or by name alone, as they are written; one that nobody has is refused."""
    site = write_inventory(tmp_path, lab(TAGGED))
    ran = vnuma_here("check", "--all", "--tag", pattern, "-i", site, "--format", "json")
    if not chosen:
        assert ran.code == 3
        return
    found = document(ran.out)
    assert {item["name"] for entry in found["findings"] for item in entry["vms"]} == chosen
    assert found["summary"]["vms_left_out"] == 3 - len(chosen)


def test_a_snapshot_keeps_tags(lab: LabFactory, tmp_path: Path) -> None:
    """What was saved is chosen by tag without a vCenter."""
    running, file = lab(TAGGED), tmp_path / "estate.json"
    saved = vnuma_here("inventory", "save", file, "-i", write_inventory(tmp_path, running))
    assert saved.code == 0, saved.text
    running.stop()
    ran = vnuma_here("check", "--snapshot", file, "--tag", "App:*", "--format", "json")
    assert document(ran.out)["summary"]["vms"] == 1


def test_vms_whose_tags_cannot_be_read_are_not_chosen_silently(lab: LabFactory, tmp_path: Path) -> None:
    """Without an API for tags a snapshot names that; a choice by tag is refused with the reason."""
    site = write_inventory(tmp_path, lab({"name": "alone", "standalone": True}))
    file = tmp_path / "estate.json"
    assert vnuma_here("inventory", "save", file, "-i", site).code == 0
    for source in (("--all", "-i", site), ("--snapshot", file)):
        ran = vnuma_here("check", *source, "--tag", "Gold")
        assert ran.code == 3


@pytest.mark.parametrize(
    ("tag", "clone", "blocked"),
    [("Tier:Gold", False, False), ("App:SAP / R3", True, True), ("Nobody:Has", True, True)],
)
def test_a_vm_may_be_studied_if_its_owner_has_tagged_it(
    lab: LabFactory, tmp_path: Path, tag: str, clone: bool, blocked: bool
) -> None:
    """A tag permits as the inventory's mark does; a missing required one blocks in spite of it."""
    site = write_inventory(tmp_path, lab(TAGGED), ["sql01"])
    text = site.read_text(encoding="utf-8")
    site.write_text(text.replace('"vnuma_test_clone": true', f'"vnuma_test_clone": {str(clone).lower()}'))
    study = write_study(tmp_path, vms=["sql01"])

    by_option = vnuma_here("plan", study, "-i", site, "--checks", "--require-tag", tag)
    marked = site.read_text(encoding="utf-8").replace(
        '"vnuma_vm"', f'"vnuma_require_tag": "{tag}", "vnuma_vm"'
    )
    site.write_text(marked, encoding="utf-8")
    by_inventory = vnuma_here("plan", study, "-i", site, "--checks")

    assert [ran.code for ran in (by_option, by_inventory)] == [5 if blocked else 0] * 2, by_option.text
    if not blocked:
        assert f"--require-tag {tag}" in by_option.out  # the command to start it
