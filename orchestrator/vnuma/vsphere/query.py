"""What vCenter's property collector is asked for: properties of objects, and of those that they refer to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyVmomi import vmodl

Query = vmodl.query.PropertyCollector

Wanted = Mapping[Any, Iterable[str]]
"""Property paths by the kind of object that has them."""


def along(
    kind: type, path: str, *onward: Query.SelectionSpec, name: str | None = None, skip: bool = False
) -> Query.TraversalSpec:
    """The objects to which `path` of a `kind` refers (with `skip`, without them), and those `onward`.

    The property collector recurses where an `onward` refers to a `name`.
    """
    return Query.TraversalSpec(name=name, type=kind, path=path, skip=skip, selectSet=list(onward))


def starting(ref: object, *onward: Query.SelectionSpec, wanted: bool = True) -> Query.ObjectSpec:
    """An object and those `onward` from it; itself only if `wanted`."""
    return Query.ObjectSpec(obj=ref, skip=not wanted, selectSet=list(onward))


def ask(wanted: Wanted, *objects: Query.ObjectSpec, or_gone: bool = False) -> Query.FilterSpec:
    """The properties `wanted` of these objects; `or_gone`: objects that are gone are left out."""
    kinds = [Query.PropertySpec(type=kind, pathSet=list(paths)) for kind, paths in wanted.items()]
    return Query.FilterSpec(
        objectSet=list(objects), propSet=kinds, reportMissingObjectsInResults=or_gone or None
    )
