"""A fix in the words of Terraform, Ansible, PowerCLI and govc: whatever a VM is called, it stays data."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.checks.cases import Case, read_cases
from vnuma.checks.evaluate import evaluate
from vnuma.checks.fix_as import ATTRIBUTES, Target, Tool, fix_as, fix_in_tools
from vnuma.checks.rule import Fix
from vnuma.checks.rules.catalogue import BY_ID
from vnuma.domain.vm.change import settings_after
from vnuma.domain.vm.setting import DERIVED, TYPED

BASH = shutil.which("bash") or "bash"
UUID = "5032a1b2-0000-4000-8000-00000000abcd"
NASTY = [
    "'; rm -rf ~; '",
    "$(reboot)",
    "`reboot`",
    "\u2018); Remove-VM *; (\u2019",
    "a\nb",
    '${file("/x")}',
    "%{ if }",
]
TEXTS = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20),
)
KEYS = TEXTS.filter(lambda text: "=" not in text).map(lambda text: f"numa.{text}")


def _fix(**wanted: object) -> Fix:
    return Fix("Do it.", settings=dict(wanted), current={"numCPUs": 16, "numCoresPerSocket": 1})  # type: ignore[arg-type]


@given(name=TEXTS, key=KEYS, value=TEXTS)
@settings(max_examples=40, deadline=None)
def test_a_shell_runs_govc_once_with_the_name_and_the_key(name: str, key: str, value: str) -> None:
    """bash sees one command; its words are the VM's name (as govc's pattern) and the key's value."""
    text = fix_as(Tool.GOVC, _fix(**{key: value}), Target(name))
    ran = subprocess.run(
        [BASH, "-c", f'govc() {{ printf "%s\\0" run "$@"; }}\n{text}'],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/nowhere"},
    )
    run, verb, vm, option = ran.stdout.decode().removesuffix("\0").split("\0")
    assert (run, verb, option) == ("run", "vm.change", f"-e={key}={value}")
    assert re.sub(r"\\(.)", r"\1", vm, flags=re.DOTALL) == f"-vm={name}"
    assert ran.stderr == b""


@given(name=TEXTS)
@settings(max_examples=20, deadline=None)
def test_govc_sets_cores_per_socket_by_the_rest_api(name: str) -> None:
    """With the vCPUs in one request, on the VM that it finds by name; nothing is sent if it finds none."""
    text = fix_as(Tool.GOVC, _fix(numCoresPerSocket=8), Target(name))
    govc = '[ $1 = find ] && { printf "%s\\0" "$@" >&2; echo vm-7; return; }; printf "%s " "$@"; cat'
    ran = subprocess.run(
        [BASH, "-c", f"govc() {{ {govc}; }}; PATH=/bin:/usr/bin\n{text}"], capture_output=True, check=True
    )
    sent = "session.login -r -X PATCH /api/vcenter/vm/vm-7/hardware/cpu"
    assert ran.stdout.decode() == f'{sent} {{"count": 16, "cores_per_socket": 8}}\n'
    *options, found = ran.stderr.decode().removesuffix("\0").split("\0")
    assert options == ["find", "/", "-type", "m", "-I", "-name"]
    assert re.sub(r"\\(.)", r"\1", found, flags=re.DOTALL) == name


_STRING = r"(?:'(?:[ -&(-~]|'')*'|\[regex\]::Unescape\('(?:[A-Za-z0-9_ -]|\\u[0-9a-f]{4})*'\))"
_POWERSHELL = (
    r"# [^\n]*",
    rf"\$vm = @\(Get-View -ViewType VirtualMachine -Filter @\{{ '[\w.]+' = {_STRING} \}}\)",
    r"\$spec = New-Object VMware\.Vim\.VirtualMachineConfigSpec",
    r"\$spec\.\w+ = New-Object VMware\.Vim\.\w+",
    rf"\$spec(?:\.\w+)+ = (?:\$true|\$false|-?\d+|\[int\[\]\]@\([\d, ]*\)|{_STRING})",
    r"\$spec\.ExtraConfig = @\(",
    rf"  New-Object VMware\.Vim\.OptionValue -Property @\{{ Key = {_STRING}; Value = {_STRING} \}}",
    r"\)",
    r"if \(\$vm\.Count -eq 1\) \{ \$vm\[0\]\.ReconfigVM\(\$spec\) \} else \{ throw '[^']*' \}",
)


@given(name=TEXTS, key=KEYS, value=TEXTS)
def test_powershell_reads_names_and_values_as_strings(name: str, key: str, value: str) -> None:
    """Each line is one of the forms that are meant; no quote, of whatever kind, ends a string early."""
    wanted = _fix(**{"cpuAffinity": (0, 2), "coresPerNumaNode": 8, "cpuHotAddEnabled": False, key: value})
    for line in fix_as(Tool.POWERCLI, wanted, Target(name)).split("\n"):
        assert any(re.fullmatch(form, line) for form in _POWERSHELL), line


@given(key=KEYS, value=TEXTS)
def test_terraform_reads_keys_and_values_as_plain_strings(key: str, value: str) -> None:
    """Nothing in them begins a template or ends the string; unescaped, they are what was asked for."""
    lines = fix_as(Tool.TERRAFORM, _fix(**{key: value}), Target("vm")).split("\n")
    (pair,) = [line for line in lines if line.startswith("  ")]
    match = re.fullmatch(r'  "([^"$%]*)" = "([^"$%]*)"', pair)
    assert match, pair
    assert [part.encode("ascii").decode("unicode_escape") for part in match.groups()] == [key, value]


@given(key=KEYS)
def test_no_comment_ends_early(key: str) -> None:
    """What a tool cannot change becomes a comment of one line, whatever the key's name."""
    fix = Fix("Remove it.", settings={key: None}, current={key: "1"})
    (line,) = fix_as(Tool.TERRAFORM, fix, Target("vm")).splitlines()
    assert line.startswith("# ")


def test_ansible_gets_the_variables_of_the_role() -> None:
    """YAML that reads back as the arm, with the words that YAML takes for truth values in quotes."""
    fix = Fix(
        "Off.",
        {"cpu_hot_add": "off"},
        {"cpuHotAddEnabled": False},
        topology="4x4",
        current={"cpuHotAddEnabled": True},
    )
    read = yaml.safe_load(fix_as(Tool.ANSIBLE, fix, Target("vm")))
    assert read == fix.ansible
    assert read["vm_topology_arm"]["cpu_hot_add"] == "off"


def test_a_vm_is_named_by_its_uuid_where_it_has_one() -> None:
    """A name can be another VM's; an instance UUID is this VM's, on whatever vCenter."""
    for tool in (Tool.GOVC, Tool.POWERCLI):
        text = fix_as(tool, _fix(numCPUs=8, numCoresPerSocket=8), Target("sql16", UUID))
        assert UUID in text
        assert "sql16" not in text


@pytest.mark.parametrize("name", sorted(TYPED.keys() - DERIVED))
def test_every_setting_is_written_or_said_to_be_left_out(name: str) -> None:
    """No tool drops a setting silently."""
    fix = _fix(**{name: 3})
    for tool in Tool:
        assert fix_as(tool, fix, Target("vm")), tool
    assert (ATTRIBUTES.get(name, f"# {name}:")) in fix_as(Tool.TERRAFORM, fix, Target("vm"))


def _mendable(case: Case) -> bool:
    """Whether a setting of the VM mends it, and nothing that the guest shows has to change with it."""
    if case.expect != "fail" or {"study", "superseded_by", "sql"} & case.data.keys():
        return False
    return any(map(fix_in_tools, next(evaluate([case.subject()], [BY_ID[case.rule]])).failures))


@pytest.mark.parametrize("case", [case for case in read_cases() if _mendable(case)], ids=lambda case: case.id)
def test_after_the_change_the_rule_passes(case: Case) -> None:
    """The change that the tools are given, made to the VM that failed, mends it."""
    subject = case.subject()
    (found,) = next(evaluate([subject], [BY_ID[case.rule]])).failures
    assert subject.vm
    assert found.fix
    after = replace(subject.vm, settings=settings_after(subject.vm.settings, found.fix.change.desired))
    assert next(evaluate([replace(subject, vm=after)], [BY_ID[case.rule]])).failures == []


def test_terraforms_lock_to_all_memory_comes_with_its_reservation() -> None:
    """Without it the provider drops the lock: the fix would change nothing."""
    current = {"memoryMB": 65536, "memoryReservation": 0, "memoryReservationLockedToMax": False}
    fix = Fix("Lock it.", settings={"memoryReservationLockedToMax": True}, current=current)
    lines = fix_as(Tool.TERRAFORM, fix, Target("vm")).splitlines()
    assert {"memory_reservation_locked_to_max = true", "memory_reservation = 65536"} <= set(lines)
