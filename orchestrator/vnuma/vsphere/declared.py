"""Check answers against the types that the vSphere API declares.

pyVmomi checks an object's fields as it reads them, but not the type of a property's value, which the answer
names itself, nor whether required fields are present.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pyVmomi import vim, vmodl
from pyVmomi.VmomiSupport import F_OPTIONAL, DataObject, ManagedMethod

from vnuma.vsphere.http_response import BadAnswer

INFORMS = frozenset(
    {
        *("disabledMethod", "guest.guestFullName", "guest.guestDetailedData", "config.files"),
        *("config.powerSystemInfo.currentPolicy.shortName", "config.hyperThread", "hardware.biosInfo"),
        *("summary.hardware.cpuModel", "summary.currentEVCModeKey"),
    }
)
"""Properties that decide nothing: where one has another type, what it says is not evaluated."""


def wrong_type(kind: type, path: str, value: Any) -> str | None:
    """What arrived and what was declared, if an object of this kind cannot have that value there."""
    declared = declared_type(kind, path)
    if declared is None or _fits(value, declared):
        return None
    return f"vCenter answered {type(value).__name__} for property {path}, not {declared.__name__}"


def require_result(result: Any, info: Any) -> Any:
    """A method's result, checked for its declared type and that type's required fields.

    Checks only its own fields, since older vCenters omit some nested ones. Raises BadAnswer.
    """
    optional = getattr(info, "resultFlags", F_OPTIONAL) & F_OPTIONAL
    if not isinstance(result, info.result) and not (result is None and optional):
        raise BadAnswer(f"{info.wsdlName} answered with {type(result).__name__}")
    fields = result._GetPropertyList() if isinstance(result, DataObject) else []
    needed = [field.name for field in fields if not field.flags & F_OPTIONAL]
    lacking = [name for name in needed if getattr(result, name) is None]
    if lacking:
        raise BadAnswer(f"{info.wsdlName} answered without {', '.join(lacking[:3])}")
    return result


@cache
def declared_type(kind: type, path: str) -> type | None:
    """The type of a property; None if unknown or unrestricted."""
    found: Any = kind
    for name in path.split("."):
        try:
            found = found._GetPropertyInfo(name).type
        except AttributeError:
            return None
    return None if found is object or found is type else found


def _fits(value: Any, declared: Any) -> bool:
    if declared is ManagedMethod:  # vCenter sends its name
        return isinstance(value, str)
    if issubclass(declared, list):
        return isinstance(value, list) and all(_fits(one, declared.Item) for one in value)
    if issubclass(declared, int) and declared is not bool:  # XML's int, long, short: Python has one
        return isinstance(value, int) and not isinstance(value, bool)
    if issubclass(declared, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, declared)


_DEPTH = 3


def _roots() -> tuple[type, ...]:
    collector = vmodl.query.PropertyCollector
    return (
        *(vim.VirtualMachine, vim.HostSystem, vim.ComputeResource, vim.Task),
        *(vim.ServiceInstance, vim.ServiceInstanceContent, vim.view.ContainerView, vim.vm.ConfigSpec),
        *(collector.FilterSpec, collector.RetrieveResult, collector.RetrieveOptions, collector.UpdateSet),
        *(collector.TraversalSpec, collector.WaitOptions, vim.SessionManager.HttpServiceRequestSpec),
        *(vim.PerformanceManager.QuerySpec, vim.PerformanceManager.EntityMetric),
        *(vim.encryption.CryptoManagerKmip, vim.vslm.vcenter.VStorageObjectManager),  # vCenter's content
    )


def load_types() -> None:
    """Build the types of a VM, its host, a task and the service: some 300, in 50 ms.

    pyVmomi builds each type at its first use. For short-lived forked processes that is much of their work,
    which their parent can do once.
    """
    seen: set[type] = set()
    for root in _roots():
        _load(root, _DEPTH, seen)


def _load(kind: Any, depth: int, seen: set[type]) -> None:
    """Access a property's type, which builds it."""
    seen.add(kind)
    if depth == 0:
        return
    for info in getattr(kind, "_propInfo", {}).values():
        inner = getattr(info.type, "Item", info.type)
        if inner not in seen:
            _load(inner, depth - 1, seen)
