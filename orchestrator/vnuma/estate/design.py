"""A design file, by its name: what `vnuma check --design` reads."""

from __future__ import annotations

from pathlib import Path

from vnuma.domain.vm.estate import Estate
from vnuma.estate.ovf import read_ovf
from vnuma.estate.terraform import read_terraform
from vnuma.estate.vmx import read_vmx

_READERS = {".vmx": read_vmx, ".ovf": read_ovf, ".ova": read_ovf}


def read_design(path: Path) -> Estate:
    """The VMs of a .vmx, .ovf or .ova; any other file is a Terraform plan or state. Raises InputError."""
    return _READERS.get(path.suffix.lower(), read_terraform)(path)
