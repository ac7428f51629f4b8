"""Read a design file of any format: `vnuma check --design`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from vnuma.domain.vm.estate import Estate, EstateVm, Unseen
from vnuma.errors import InputError
from vnuma.estate.ansible import is_ansible, line_of, read_ansible, yaml_of
from vnuma.estate.api_json import is_api_json, read_api_json
from vnuma.estate.design_vm import mappings
from vnuma.estate.ovf import read_ovf
from vnuma.estate.rvtools import read_sheets
from vnuma.estate.table import estate_of_table, is_table, sheet_of_mappings
from vnuma.estate.terraform import read_terraform
from vnuma.estate.vmx import read_vmx

_READERS = {
    ".vmx": read_vmx,
    **dict.fromkeys((".ovf", ".ova"), read_ovf),
    **dict.fromkeys((".csv", ".tsv", ".xlsx", ".xlsm", ".xls", ".ods"), read_sheets),
}


_A_ROW = "Write a line for each VM, such as: - {name: sql16, vcpus: 16, memory: 64}"
_A_STUDY = {"arms", "reference"}
_MOST_SHOWN = 4
"""Most settings named in a sentence."""


def read_design(path: Path) -> Estate:
    """The VMs of a design: .vmx, .ovf, .ova, a table (CSV, workbook, YAML), Ansible's YAML or a folder of it.

    Also of an RVTools export. Any other file is JSON: govc's, or a Terraform plan or state. Raises
    InputError.
    """
    suffix = path.suffix.lower()
    if path.is_dir():
        return read_ansible(path)
    if suffix in {".yml", ".yaml"}:
        return _of_yaml(path)
    if suffix not in _READERS and is_api_json(path):
        return read_api_json(path)
    return _READERS.get(suffix, read_terraform)(path)


def with_contradictions(estates: Sequence[Estate]) -> list[Estate]:
    """The same designs; where two describe a VM differently, the later one says so (unseen)."""
    first: dict[str, tuple[Estate, EstateVm]] = {}
    found = []
    for estate in estates:
        told = []
        for vm in estate.vms:
            earlier, known = first.setdefault(vm.facts.name, (estate, vm))
            unlike = _differing_settings(known, vm) if earlier is not estate else []
            if unlike:
                told.append(Unseen("vm", vm.facts.name, _both(earlier, estate, known, vm, unlike)))
        found.append(replace(estate, unseen=(*estate.unseen, *told)))
    return found


def _differing_settings(one: EstateVm, other: EstateVm) -> list[str]:
    """The settings that both designs give with different values."""
    stated = [name for name in one.facts.settings if name in other.facts.settings]
    return [
        name
        for name in stated
        if name not in one.absent
        and name not in other.absent
        and one.facts.settings[name] != other.facts.settings[name]
    ]


def _both(earlier: Estate, later: Estate, one: EstateVm, other: EstateVm, unlike: Sequence[str]) -> str:
    shown = ", ".join(f"{name} {json.dumps(one.facts.settings[name])}" for name in unlike[:_MOST_SHOWN])
    here = ", ".join(json.dumps(other.facts.settings[name]) for name in unlike[:_MOST_SHOWN])
    more = f" and {len(unlike) - _MOST_SHOWN} more" if len(unlike) > _MOST_SHOWN else ""
    return f"{earlier.source} has {shown}; {later.source} has {here}{more}: each is checked as it is"


def _of_yaml(path: Path) -> Estate:
    """A table as a list of mappings, alone or under a name; else Ansible's."""
    document = yaml_of(path)
    lists = document.values() if isinstance(document, Mapping) else [document]
    for rows in lists:
        if not is_ansible(rows) and (found := mappings(rows)):
            sheet = sheet_of_mappings(found)
            if is_table(sheet):
                return estate_of_table(path, sheet, list(map(line_of, found)), has_lines=True)
    if isinstance(document, Mapping) and document.keys() >= _A_STUDY:
        raise InputError(
            f"{path} is a study, not a design.",
            fix=f"Check its VMs as each arm shapes them: vnuma check --study {quote(str(path))}",
        )
    if document == [] or (document and all(rows == [] for rows in lists)):
        raise InputError(f"{path} lists no VMs: its list is empty.", fix=_A_ROW)
    return read_ansible(path)
