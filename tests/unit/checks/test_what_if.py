"""What-if: a question as text, an answer as JSON, by the same functions as predict, advise and check."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.what_if import rules
from vnuma.checks.what_if import DEFAULTS, answer
from vnuma.engine.design_check.dropped_file import judge


def test_the_answer_has_everything_a_page_shows() -> None:
    """Layouts per kind of host, broken rules, candidates with code for tools."""
    found = answer({"vcpus": "30", "per_socket": "15", "edition": "standard", "others": "4x14/256@7.0"})

    assert json.loads(json.dumps(found)) == found
    assert [(one["hosts"], one["sizes"]) for one in found["layouts"]] == [
        (["2x20/384@8.0"], [15, 15]),
        (["4x14/256@7.0"], [10, 10, 10]),
    ]
    assert {"T19", "S20"} <= {one["rule"] for one in found["findings"]}
    assert [one["worth"] for one in found["candidates"]][-1] == "avoiding"
    assert {"num_cpus = 30", "num_cores_per_socket = 15"} <= set(found["as"]["Terraform"].splitlines())


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("vcpus", "0", "vCPUs"),
        ("vcpus", "many", "vCPUs"),
        ("vcpus", "9" * 5000, "vcpus"),
        ("memory", "", "memory"),
        ("per_socket", "7", "T01"),
        ("nodes", "0", "NUMA nodes"),
        ("cores", "513", "cores"),
        ("others", "2x", "2x"),
        ("esxi", "eight", "eight"),
        ("hardware", "3", "hardware"),
        ("set", "numCPUs=4", "vCPUs"),
        ("set", "guestinfo.x=1", "guestinfo.x"),
        ("set", "numa.vcpu.min", "KEY=VALUE"),
        ("sql", "2018", "2018"),
        ("edition", "gold", "gold"),
        ("windows", "Windows Vista Starter", "Vista"),
    ],
)
def test_a_question_without_an_answer_gets_a_sentence(field: str, value: str, said: str) -> None:
    """It names what is wrong; nothing else is in the answer."""
    found = answer({field: value})

    assert found.keys() == {"error", "fix"}
    assert said in found["error"] + found["fix"]
    assert len(found["error"]) < 200


@pytest.mark.parametrize(
    ("asked", "stated"),
    [
        (
            {"vcpus": "24", "esxi": "7.0", "per_socket": "1"},
            {
                "PowerCLI": {
                    *("$spec.NumCPUs = 24", "$spec.NumCoresPerSocket = 1", "$spec.MemoryMB = 262144"),
                    "$spec.CpuHotAddEnabled = $false",
                },
                "govc": {
                    'govc session.login -r -X PATCH "/api/vcenter/vm/$vm/hardware/cpu" '
                    """<<<'{"count": 24, "cores_per_socket": 1}'""",
                    "govc vm.change -vm=sql-vm -cpu-hot-add-enabled=false -m=262144",
                },
                "Terraform": {
                    *("num_cpus = 24", "num_cores_per_socket = 1", "memory = 262144"),
                    "cpu_hot_add_enabled = false",
                },
            },
        ),
        (
            {"vcpus": "24", "hot_add": "on"},
            {
                "PowerCLI": {"$spec.NumCoresPerSocket = 0", "$spec.CpuHotAddEnabled = $true"},
                "govc": {
                    "govc vm.change -vm=sql-vm -cpu-hot-add-enabled=true -m=262144 -c=24",
                    "# numCoresPerSocket: automatic; govc vm.change has no option for it.",
                },
                "Terraform": {"num_cores_per_socket = 0", "cpu_hot_add_enabled = true"},
            },
        ),
    ],
)
def test_the_code_gives_any_vm_the_size_shown(asked: dict[str, str], stated: dict[str, set[str]]) -> None:
    """A VM that exists may have anything: what is at its default is stated too."""
    code = answer(asked)["as"]

    for tool, lines in stated.items():
        assert lines <= set(code[tool].splitlines())


def test_a_candidate_replaces_the_node_settings_of_an_earlier_one() -> None:
    """On ESXi 7.0 a shape that follows its sockets, then the shape of one socket, which sets nothing."""
    asked = {"vcpus": "16", "esxi": "7.0", "set": "latencySensitivity=high"}
    shapes = {one["topology"]: one for one in answer(asked)["candidates"]}
    added = set(shapes["2x8"]["set"].splitlines()) - {"latencySensitivity=high"}
    assert added == {"numa.vcpu.followcorespersocket=1"}

    again = answer({**asked, "per_socket": "8", "set": shapes["2x8"]["set"]})
    (one_socket,) = (one for one in again["candidates"] if one["topology"] == "1x16")
    assert one_socket["set"] == "latencySensitivity=high"


def test_a_hostile_name_stays_a_string_in_every_tool() -> None:
    """The name of the VM cannot end a quoted word or start a command."""
    name = "a'; Remove-VM *; $(reboot) `x` \u2019"
    found = answer({"name": name, "per_socket": "8"})

    assert found["as"]["PowerCLI"].count("\\u0027") > 0
    command = found["as"]["govc"].splitlines()[-1]
    assert [word.partition("=")[0] for word in shlex.split(command)] == [
        *("govc", "vm.change", "-vm", "-cpu-hot-add-enabled", "-m")
    ]


ANSWER = "from vnuma.checks.what_if import answer; given = answer({'vcpus': '30', 'edition': 'standard'})"
JUDGE = (
    "sys.modules['python_calamine'] = type('Calamine', (), {'CalamineWorkbook': None}); "
    "from vnuma.engine.design_check.dropped_file import judge; given = judge(sys.argv[2], {})"
)


@pytest.mark.parametrize("program", [ANSWER, JUDGE], ids=["a question", "a dropped file"])
def test_the_rules_of_the_page_need_nothing_but_the_standard_library(program: str, tmp_path: Path) -> None:
    """What the page gives to a browser answers as the installed package does; workbooks need a reader."""
    (tmp_path / "rules.zip").write_bytes(rules())
    (tmp_path / "sql16.vmx").write_text('numvcpus = "30"\nmemSize = "65536"\n', encoding="ascii")
    code = f"import json, sys; sys.path.insert(0, sys.argv[1]); {program}; print(json.dumps(given))"
    files = [str(tmp_path / name) for name in ("rules.zip", "sql16.vmx")]
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *files], capture_output=True, text=True, check=True
    )

    here = answer({"vcpus": "30", "edition": "standard"}) if program == ANSWER else judge(files[1], {})
    assert json.loads(run.stdout) == here


def test_sizes_beyond_every_limit_are_answered_quickly() -> None:
    """The largest VM that fits is found without judging those that no hardware version allows."""
    began = time.process_time()
    found = answer({"vcpus": "960", "memory": "4096", "nodes": "8", "cores": "120", "node_gb": "1024"})
    assert re.findall(r"(\d+) vCPUs and (\d+) GB", found["advice"][-1]) == [("768", "4096")]
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("asked", "impossible"),
    [
        ({"vcpus": "48"}, False),  # of 40 cores, 80 logical CPUs
        ({"vcpus": "96"}, True),
        ({"memory": "1000"}, False),
        ({"vcpus": "48", "threads": "1"}, True),
    ],
)
def test_a_vm_cannot_run_only_where_the_host_is_too_small_for_it(
    asked: dict[str, str], impossible: bool
) -> None:
    """More vCPUs than cores run, and are warned of; ESXi swaps memory that it does not have."""
    found = answer(asked)
    (layout,) = found["layouts"]

    assert layout["impossible"] is impossible
    assert layout["swaps"] is ("memory" in asked)
    assert found["advice"][0].count("cannot run on") == impossible


def test_unknown_fields_are_ignored() -> None:
    """An address may come from a later version."""
    assert answer({"colour": "red"}) == answer(dict(DEFAULTS))
