"""Ansible's files: their YAML with line numbers, the variables of hosts, and values as far as they resolve.

Nothing is executed. A template may name variables, take their parts, calculate with numbers and use a few
filters. Lookups, tests and statements stay unresolved, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from vnuma.errors import InputError
from vnuma.estate.design_vm import bounded_bytes, decoded
from vnuma.words.bounded_input import NotYaml, read_yaml

ARM = "vm_topology_arm"
HINT = "Name a playbook, a file of tasks or variables, or a host_vars folder."

_MOST_BYTES = 1_000_000
_MOST_FILES = 2_000


@dataclass(frozen=True)
class HostVars:
    """A host's variables, and the file and line where they describe its VM.

    `contradiction` says how two of its files differ about the VM; empty if they do not.
    """

    host: str
    variables: Mapping[str, Any]
    at: tuple[Path, int]
    contradiction: str = ""


def yaml_of(path: Path) -> Any:
    """The document of a YAML file. Raises InputError."""
    text = decoded(bounded_bytes(path, _MOST_BYTES, "a file of Ansible's"))
    if text.startswith("$ANSIBLE_VAULT"):
        raise InputError(f"{path} is encrypted with Ansible Vault, so it is not read.", fix=HINT)
    try:
        return read_yaml(text)
    except NotYaml as error:
        raise InputError(f"{path} is not YAML: {error} (line {error.line}).", fix=HINT) from error


def host_vars(folder: Path) -> Iterator[HostVars]:
    """Each host's variables, from HOST.yml or from HOST's files, the last by name winning.

    https://docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html#organizing-host-and-group-variables
    """
    files: dict[str, list[Path]] = {}
    for file in sorted(folder.rglob("*"))[:_MOST_FILES]:
        inside = file.relative_to(folder)
        if file.suffix in {".yml", ".yaml"} and file.is_file() and len(inside.parts) <= 2:
            files.setdefault(inside.parts[0] if len(inside.parts) == 2 else file.stem, []).append(file)
    for host, some in files.items():
        read = [(file, document) for file in some if isinstance(document := yaml_of(file), Mapping)]
        merged = {name: value for _, document in read for name, value in document.items()}
        stated = [(file, document) for file, document in read if ARM in document]
        at = [(file, line_of(document, ARM)) for file, document in stated]
        yield HostVars(host, merged, (at or [(some[0], 1)])[-1], _contradiction(folder, stated))


def _contradiction(folder: Path, stated: Sequence[tuple[Path, Mapping[str, Any]]]) -> str:
    if all(document[ARM] == stated[0][1][ARM] for _, document in stated):
        return ""
    places = (f"{file.relative_to(folder).as_posix()}:{line_of(document, ARM)}" for file, document in stated)
    return f"{ARM} is not the same in {' and '.join(places)}: the last is checked"


def line_of(item: object, key: str | None = None) -> int:
    """The line at which a mapping, or one of its keys, begins."""
    position = getattr(item, "lc", None)
    if position is None:
        return 1
    if key is not None and position.data and key in position.data:
        return int(position.data[key][0]) + 1
    return int(position.line) + 1


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
        case nodes.Name(name="omit"):
            raise Unresolved("the option is omitted")
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
        except Unresolved as error:
            if isinstance(node.args[0], nodes.Name) and node.args[0].name == "omit":
                raise Unresolved(f"{error}, and the option is omitted without it") from error
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
