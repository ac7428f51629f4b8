"""Resolve Ansible's YAML values as far as possible without running Ansible; nothing is executed.

A template may name variables, take their parts, calculate with numbers and use a few filters. Lookups, tests
and statements stay unresolved, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

_DEEPEST = 20
_LONGEST = 2_000
_ENVIRONMENT = Environment(autoescape=False)  # only parses here


class Unresolved(ValueError):
    """A value known only when Ansible runs; the message says what is missing."""


def resolved(value: object, variables: Mapping[str, Any], depth: int = 0) -> Any:
    """The value with its templates resolved. Raises Unresolved."""
    if depth > _DEEPEST:
        raise Unresolved("its variables refer to each other")
    if isinstance(value, Mapping):
        return {str(key): resolved(item, variables, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item, variables, depth + 1) for item in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    if len(value) > _LONGEST:
        raise Unresolved("its template is too long")
    try:
        parts = [part for output in _ENVIRONMENT.parse(value).body for part in _parts(output)]
    except (TemplateSyntaxError, RecursionError) as error:
        raise Unresolved(f"its template cannot be read: {value[:40]}") from error
    found = [_value(part, variables, depth) for part in parts]
    return found[0] if len(found) == 1 else "".join(map(str, found))


def _parts(output: nodes.Node) -> list[nodes.Expr]:
    if not isinstance(output, nodes.Output):
        raise Unresolved("its template has statements")
    return output.nodes


def _value(node: nodes.Node, variables: Mapping[str, Any], depth: int) -> Any:
    """One expression. Raises Unresolved for anything unknown."""

    def of(inner: nodes.Node) -> Any:
        return _value(inner, variables, depth)

    match node:
        case nodes.TemplateData():
            return node.data
        case nodes.Const():
            return node.value
        case nodes.Name():
            if node.name not in variables:
                raise Unresolved(f"the variable {node.name} is not defined here")
            return resolved(variables[node.name], variables, depth + 1)
        case nodes.Getattr():
            return _part(of(node.node), node.attr)
        case nodes.Getitem():
            return _part(of(node.node), of(node.arg))
        case nodes.Filter() if node.node is not None:
            return _filtered(node, of)
        case nodes.Neg():
            return -_numeric(of(node.node))
        case nodes.BinExpr() if type(node) in _ARITHMETIC:
            return _ARITHMETIC[type(node)](_numeric(of(node.left)), _numeric(of(node.right)))
    raise Unresolved("its template needs a value that only Ansible knows")


def _part(whole: object, key: object) -> Any:
    if isinstance(whole, Mapping) and key in whole:
        return whole[key]
    if isinstance(whole, list) and isinstance(key, int) and -len(whole) <= key < len(whole):
        return whole[key]
    raise Unresolved(f"{str(key)[:40]} is not defined here")


def _filtered(node: nodes.Filter, of: Callable[[nodes.Node], Any]) -> Any:
    if node.name in {"default", "d"} and node.args and node.node:
        try:
            return of(node.node)
        except Unresolved:
            return of(node.args[0])
    filters: Mapping[str, Callable[[Any], Any]] = {
        "int": lambda value: int(_numeric(value)),
        "string": str,
        "bool": lambda value: str(value).strip().lower() in {"true", "yes", "on", "1"},
        "lower": lambda value: str(value).lower(),
        "upper": lambda value: str(value).upper(),
        "trim": lambda value: str(value).strip(),
    }
    if node.name not in filters or node.args or node.node is None:
        raise Unresolved(f"the filter {node.name} needs Ansible")
    return filters[node.name](of(node.node))


def _numeric(value: object) -> float | int:
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value) if "." in value else int(value[:18])
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e12:
        raise Unresolved(f"{str(value)[:20]!r} is not a number")
    return value


def _divided(left: float, right: float) -> float:
    if not right:
        raise Unresolved("it divides by zero")
    return left / right


_ARITHMETIC: Mapping[type, Callable[[float, float], float]] = {
    nodes.Add: lambda left, right: left + right,
    nodes.Sub: lambda left, right: left - right,
    nodes.Mul: lambda left, right: left * right,
    nodes.Div: _divided,
    nodes.FloorDiv: lambda left, right: int(_divided(left, right)),
}
