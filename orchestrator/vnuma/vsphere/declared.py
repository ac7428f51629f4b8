"""What the vSphere API declares of a value: a server that answers with anything else is not understood.

pyVmomi checks the fields of an object as it reads them, but not the value of a property, whose type an answer
names for itself, nor whether an answer has what it always has.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pyVmomi.VmomiSupport import F_OPTIONAL, DataObject

from vnuma.vsphere.http_response import BadAnswer


def require_property(kind: type, path: str, value: Any) -> None:
    """Raise BadAnswer unless an object of this kind may have that value there."""
    declared = _declared(kind, path)
    if declared is not None and not _fits(value, declared):
        raise BadAnswer(f"{path} is {type(value).__name__}, not {declared.__name__}")


def require_result(result: Any, info: Any) -> Any:
    """The result of a method, if it has the type that is declared, and what that type always has.

    Only its own fields: vCenters before the newest leave out some of what lies deeper. Raises BadAnswer.
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
def _declared(kind: type, path: str) -> type | None:
    """The type of a property; None for one that is not known, and for one of any type."""
    found: Any = kind
    for name in path.split("."):
        try:
            found = found._GetPropertyInfo(name).type
        except AttributeError:
            return None
    return None if found is object or found is type else found


def _fits(value: Any, declared: Any) -> bool:
    if issubclass(declared, list):
        return isinstance(value, list) and all(_fits(one, declared.Item) for one in value)
    if issubclass(declared, int) and declared is not bool:  # XML's int, long, short: Python has one
        return isinstance(value, int) and not isinstance(value, bool)
    if issubclass(declared, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, declared)
