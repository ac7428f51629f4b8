"""Files that break readers, or are of another kind: one sentence, exit 3, at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.estate.workbooks import export, rewrite, write
from tests.support.cli import vnuma_here
from vnuma.engine.design_check.dropped_file import judge
from vnuma.errors import InputError
from vnuma.estate.design import read_design
from vnuma.estate.rvtools import read_rvtools
from vnuma.estate.workbook import number

XXE = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><Envelope>&f;</Envelope>'
STUDY = "name: q\nreference: a\nvms: [{path: /dc/vm/x}]\narms: [{name: a}]\n"
OTHERS: dict[str, tuple[str, str | bytes, str]] = {
    "Terraform: cut JSON": ("plan.json", "{", "not a Terraform plan"),
    "Terraform: stream of plan -json": ("plan.json", '{"@level":"info"}\n' * 2, "not a Terraform plan"),
    "Terraform: other JSON": ("plan.json", '{"a": 1}', "terraform show -json"),
    "Terraform: a list": ("plan.json", "[1]", "govc vm.info"),
    "Terraform: format 2": ("plan.json", '{"format_version": "2.0", "planned_values": {}}', "format 2.0"),
    "Terraform: state file": ("plan.json", '{"version": 4, "serial": 3, "lineage": "x"}', "internal"),
    "Terraform: encrypted": ("plan.json", '{"encrypted_data": "c", "encryption_version": "v0"}', "encrypted"),
    "Terraform: nothing in it": (
        "plan.json",
        '{"format_version": "1.0", "values": {}}',
        "nothing of vSphere",
    ),
    "Terraform: deep": ("plan.json", "[" * 100_000, "nested"),
    "Terraform: the binary plan": ("plan.json", b"PK\x03\x04\xa1\x00plan", "empty, or binary"),
    "Terraform: empty": ("plan.json", "", "empty, or binary"),
    "Terraform: a mistake in line 2": ("plan.json", '{"a": \n !}', "line 2"),
    "Terraform: its configuration": ("main.tf", 'resource "a" "b" {}', "configuration"),
    "govc: no VMs": ("vm.json", '{"virtualMachines": []}', "govc vm.info"),
    "govc: a number": ("vm.json", '{"virtualMachines": 3}', "govc vm.info"),
    "vmx: text": ("vm.vmx", "hello\n", "not a .vmx"),
    "vmx: empty": ("vm.vmx", "", "not a .vmx"),
    "vmx: too large": ("vm.vmx", "x" * 1_000_001, "larger than"),
    "OVF: text": ("vm.ovf", "hello", "not XML"),
    "OVF: cut": ("vm.ovf", "<Envelope>", "not XML"),
    "OVF: other XML": ("vm.ovf", "<html/>", "not OVF"),
    "OVF: no VM": ("vm.ovf", "<Envelope/>", "no VM"),
    "OVF: external entity": ("vm.ovf", XXE, "document type"),
    "OVF: external entity in UTF-16": ("vm.ovf", XXE.encode("utf-16"), "document type"),
    "OVF: deep": ("vm.ovf", "<a>" * 100_000, "nested"),
    "OVF: unknown encoding": ("vm.ovf", '<?xml version="1.0" encoding="x-none"?><Envelope/>', "not XML"),
    "OVA: text": ("vm.ova", "hello", "OVA"),
    "Ansible: no VM": ("play.yml", "- hosts: x\n  tasks: [{debug: {msg: hi}}]\n", "nothing of vSphere"),
    "Ansible: a mapping": ("play.yml", "a: b\n", "nothing of vSphere"),
    "Ansible: empty": ("play.yml", "", "nothing of vSphere"),
    "Ansible: a vault": ("play.yml", "$ANSIBLE_VAULT;1.1;AES256\n6134\n", "Vault"),
    "Ansible: not YAML": ("play.yml", "a: [\n", "not YAML"),
    "Ansible: deep": ("play.yml", "[" * 5_000, "nested"),
    "Ansible: a study": ("play.yml", STUDY, "is a study"),
    "table: empty": ("list.csv", "", "vCPU"),
    "table: no sizes": ("list.csv", "name;memory\nsql01;64\n", "vCPU"),
    "table: other columns": ("list.csv", "a;b\n1;2\n", "vCPU"),
    "table: an open quote": ("list.csv", '"', "vCPU"),
    "table: a long quote": ("list.csv", "name;vCPU\n" + '"x' * 90_000, "vCPU"),
    "table: a list without rows": ("list.yml", "[]\n", "lists no VMs"),
    "table: VMs without rows": ("list.yml", "vms: []\n", "lists no VMs"),
    "workbook: text": ("export.xlsx", "VM;CPUs\n", "not a readable Excel workbook"),
    "workbook: cut": ("export.xlsx", b"PK\x03\x04 no workbook", "not a readable Excel workbook"),
}


@pytest.mark.parametrize(("name", "content", "words"), OTHERS.values(), ids=OTHERS)
def test_another_file_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    """What it is, where, and what to do; the what-if page says the same of a file that is dropped on it."""
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        read_design(file)
    dropped = judge(str(file), {})

    assert words in str(caught.value)
    assert name in caught.value.what
    assert caught.value.fix
    assert dropped.keys() == {"error", "fix"}
    assert [text for text in dropped.values() if str(tmp_path) in text] == []


@pytest.mark.parametrize("options", [("--design", "plan.json"), ("--snapshot", "plan.json")])
def test_such_a_file_ends_a_check_before_anything_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, str]
) -> None:
    """A pipeline would take a check of nothing for well. A pipe is refused too, and not waited for."""
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_text('{"schema": "vnuma/inventory/99", "estates": []}')
    os.mkfifo("sql.ova")

    for ran in (vnuma_here("check", *options), vnuma_here("check", "sql.ova")):
        assert (ran.code, ran.out) == (3, "")


_FIRST = "xl/worksheets/sheet1.xml"
_FAR_CELL = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
_ROWS = b"<row><c><v>1</v></c></row>" * 3_000_000 + b"</sheetData>"
LARGE = {"many rows", "endless text"}
WORKBOOKS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a far cell": (_FIRST, lambda sheet: sheet.replace(b"</sheetData>", _FAR_CELL)),
    "many rows": (_FIRST, lambda sheet: sheet.replace(b"</sheetData>", _ROWS)),
    "endless text": (_FIRST, lambda sheet: sheet.replace(b"vm0", b"x" * 200_000_000)),
    "a long cell": (_FIRST, lambda sheet: sheet.replace(b"vm0", b"x" * 40_000)),
    "damaged XML": (_FIRST, lambda sheet: sheet.replace(b'r="A1"', b'r="0"')),
    "cut XML": (_FIRST, lambda sheet: sheet[: len(sheet) // 2]),
    "deep XML": (_FIRST, lambda sheet: b"<a>" * 1_000_000),
    "no sheet": (_FIRST, lambda _sheet: b""),
    "damaged workbook": ("xl/workbook.xml", lambda book: book[:-20]),
}


@pytest.mark.parametrize(
    ("part", "change"),
    [
        pytest.param(*how, id=name, marks=pytest.mark.long if name in LARGE else ())
        for name, how in WORKBOOKS.items()
    ],
)
def test_a_broken_workbook_costs_a_sentence(
    tmp_path: Path, part: str, change: Callable[[bytes], bytes]
) -> None:
    """Whatever it would take of memory and time, and whether or not its reader survives it."""
    path = rewrite(write(tmp_path / "export.xlsx", export()), part, change)
    with pytest.raises(InputError) as caught:
        read_rvtools(path)
    assert caught.value.fix


@pytest.mark.parametrize("count", [-16, -1, 10**9, 10**30, 1e300, "-16", "9" * 5_000])
def test_a_count_that_no_machine_has_is_named(tmp_path: Path, count: object) -> None:
    """A VM or host with it is left out, and said; the others are read."""
    sheets = export(vms=2, hosts=2)
    sheets["vInfo"][0]["CPUs"] = sheets["vHost"][0]["# CPU"] = sheets["vHost"][0]["# Cores"] = count
    sheets["vCPU"][1]["Sockets"] = sheets["vCPU"][1]["Cores p/s"] = count
    estate = read_rvtools(write(tmp_path / "export.xlsx", sheets))

    assert [vm.facts.name for vm in estate.vms] == ["vm1"]
    assert {"vm0", "esx0"} <= {item.name for item in estate.unseen}


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "inf", "nan", "1" + "0" * 5_000])
def test_an_endless_count_is_not_a_number(value: object) -> None:
    """A cell of a workbook may hold it."""
    assert number(value) is None
