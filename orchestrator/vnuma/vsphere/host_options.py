"""A host's advanced options for NUMA, which decide layouts as much as a VM's own keys."""

from __future__ import annotations

from typing import Any

from pyVmomi import vim, vmodl

from vnuma.errors import PrivilegeMissing, VmNotFound

OPTIONS = "configManager.advancedOption"
"""The property path of a host's option manager."""


def numa_options(manager: Any) -> dict[str, str] | None:
    """The host's advanced options Numa.*, None where the account may not read them.

    One call for each host: as a property they come only together with a thousand others.
    """
    try:
        options = manager.QueryOptions("Numa.") if manager else None
    except vim.fault.InvalidName:
        return {}
    except (PrivilegeMissing, VmNotFound, vmodl.MethodFault):
        return None
    return None if options is None else {option.key: str(option.value) for option in options}
