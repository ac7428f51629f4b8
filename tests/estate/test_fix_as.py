"""`vnuma check --fix-as`: what it prints mends what it found."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.estate.build import check, checked, document, estate_of, saved, waiver
from tests.support.cli import vnuma_here
from vnuma.checks.fix_as import Tool
from vnuma.report.check.as_fixes import as_fixes

EXAMPLE = Path(__file__).parents[2] / "examples" / "terraform" / "plan.json"
ON = ("--host-nodes", "2x16/256@7.0")


def _attributes(text: str) -> dict[str, Any]:
    """The attributes of a block, as the provider would read them; the values are JSON."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    keys = dict(re.findall(r'^  "(.+)" = "(.*)"$', body, re.M))
    plain = re.findall(r"^(\w+) = ([^{\n]+)$", body, re.M)
    return {name: json.loads(value) for name, value in plain} | ({"extra_config": keys} if keys else {})


def test_the_example_goes_from_red_to_green(tmp_path: Path) -> None:
    """The attributes that are printed, set in the plan, leave nothing that blocks or warns."""
    red = vnuma_here("check", "--design", EXAMPLE, *ON, "--fail-on", "warn")
    assert red.code == 10
    plan, planned = json.loads(EXAMPLE.read_text(encoding="utf-8")), tmp_path / "plan.json"
    for _ in range(3):  # a fix can wait for another one
        printed = vnuma_here(
            "check", "--design", planned if planned.exists() else EXAMPLE, *ON, "--fix-as", "terraform"
        )
        assert printed.code == 0, printed.text
        (resource,) = plan["planned_values"]["root_module"]["resources"]
        resource["values"] |= _attributes(printed.out)
        planned.write_text(json.dumps(plan), encoding="utf-8")
    green = vnuma_here("check", "--design", planned, *ON, "--fail-on", "warn")
    assert green.code == 0, green.text


def test_the_example_is_declared_in_its_code() -> None:
    """Findings name the line of main.tf, which sets what the plan says."""
    found = check("--design", EXAMPLE, *ON)["findings"]
    at = next(item["declared"] for item in found if item.get("declared"))
    code = EXAMPLE.with_name("main.tf").read_text(encoding="utf-8")
    assert Path(at["file"]).name == "main.tf"
    assert code.splitlines()[at["line"] - 1].startswith('resource "vsphere_virtual_machine" "sql"')
    (resource,) = document(EXAMPLE.read_text(encoding="utf-8"))["planned_values"]["root_module"]["resources"]
    said = {
        name: json.loads(value) for name, value in re.findall(r"^  (\w+) += (\d+|true|false)$", code, re.M)
    }
    assert said.keys() >= {"num_cpus", "num_cores_per_socket", "cpu_hot_add_enabled"}
    assert said.items() <= resource["values"].items()


def test_a_waived_finding_is_not_fixed() -> None:
    """Somebody accepted it: the tool leaves it as it is."""
    estate = estate_of("sql-a", cpuHotAddEnabled=True)
    texts = [as_fixes(checked(estate, waivers=waivers), Tool.GOVC) for waivers in ((), (waiver(),))]
    assert [text.count("-cpu-hot-add-enabled=false") for text in texts] == [1, 0]


@pytest.mark.parametrize("tool", list(Tool))
def test_json_has_each_tools_text(tmp_path: Path, tool: Tool) -> None:
    """`fix.as` of a finding on a VM has all tools; of a host's none."""
    file = saved(tmp_path, estate_of("sql-a", cpuHotAddEnabled=True))
    found = check("--snapshot", file)["findings"]
    assert all(item["fix"]["as"][tool] for item in found if item["rule"] == "T11")
    assert all(not item["fix"]["as"] for item in found if item["object"]["kind"] != "vm")


def test_fixes_are_no_format() -> None:
    """Two outputs at once are a mistake on the command line."""
    ran = vnuma_here("check", "--design", EXAMPLE, "--fix-as", "govc", "--format", "json")
    assert ran.code == 2, ran.text


@pytest.mark.parametrize(
    ("lines", "printed"),
    [
        # Case means nothing in a .vmx file's keys; a finding on one has its lines in each tool.
        (
            ["numvcpus = 8", "memSize = 65536", 'numa.nodeAffinity = "0"', "cpuid.coresPerSocket = 8"],
            "numa.nodeAffinity=",
        ),
        # A file is called otherwise than the VM in it.
        (["numvcpus = 24", "vcpu.hotadd = TRUE"], "# sql-prod (disk-copy): "),
    ],
)
def test_a_vmx_file_s_fix_names_its_key_and_its_vm(tmp_path: Path, lines: list[str], printed: str) -> None:
    """As the file spells the one, and by the name in it."""
    vmx = tmp_path / "disk-copy.vmx"
    whole = ['displayName = "sql-prod"', "virtualHW.version = 19", *lines]
    vmx.write_text("\n".join(whole), encoding="utf-8")
    assert printed in vnuma_here("check", vmx, *ON, "--fix-as", "govc").out
