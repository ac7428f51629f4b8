"""Building pyVmomi's types before they are needed."""

from __future__ import annotations

from typing import Any

from pyVmomi import vim, vmodl

_DEPTH = 3


def _roots() -> tuple[type, ...]:
    collector = vmodl.query.PropertyCollector
    return (
        *(vim.VirtualMachine, vim.HostSystem, vim.ComputeResource, vim.Task),
        *(vim.ServiceInstance, vim.ServiceInstanceContent, vim.view.ContainerView, vim.vm.ConfigSpec),
        *(collector.FilterSpec, collector.RetrieveResult, collector.RetrieveOptions, collector.UpdateSet),
    )


def load_types() -> None:
    """Build the types of what is read of a VM, its host, a task and the service: some 300, in 50 ms.

    pyVmomi builds each type when it first meets it. For processes that are forked and short-lived, that is
    a good part of their work, and their parent can do it once.
    """
    seen: set[type] = set()
    for root in _roots():
        _load(root, _DEPTH, seen)


def _load(kind: Any, depth: int, seen: set[type]) -> None:
    """Reading the type of a property builds it."""
    seen.add(kind)
    if depth == 0:
        return
    for info in getattr(kind, "_propInfo", {}).values():
        inner = getattr(info.type, "Item", info.type)
        if inner not in seen:
            _load(inner, depth - 1, seen)
