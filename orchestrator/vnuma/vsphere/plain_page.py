"""Pages of a bulk read that hold only texts and enumerated words, read without an object for each element.

pyVmomi takes about 60 us for a VM with three such values; this takes a fifth of that. Only the form in which
a vCenter writes them is read here. A page with anything else on it, such as a property that the account may
not read, is left to pyVmomi, with its types and its errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

from pyVmomi.VmomiSupport import Enum, GetWsdlName

from vnuma.vsphere.declared import declared_type

_TEXT = r"[^<>\x00-\x1f]*"
_VALUE = rf"<val({_TEXT})>({_TEXT})</val>\s*"
_PROPERTY = rf"<propSet>\s*<name>({_TEXT})</name>\s*(?:{_VALUE})?</propSet>\s*"
_PROPERTIES = re.compile(_PROPERTY.encode())
_WITHOUT_GROUPS = _PROPERTY.replace(f"({_TEXT})", _TEXT)
_OBJECT = re.compile(
    rf'<objects>\s*<obj type="(\w+)">([\w-]+)</obj>\s*((?:{_WITHOUT_GROUPS})*)</objects>\s*'.encode()
)
_TYPE = re.compile(rb'[\s:]type="(?:[\w-]+:)?(\w+)"')


class PlainPages:
    """Takes objects of one kind with texts and enumerated words as properties out of answers.

    Raises TypeError for a property that is declared as anything else.
    """

    def __init__(self, kind: type, paths: Iterable[str]) -> None:
        self._kind = GetWsdlName(kind).encode()
        self._plain = {path.encode(): _plain(kind, path) for path in paths}
        self._taken: list[tuple[str, dict[str, str]]] = []

    def take(self, answer: bytes) -> bytes:
        """What is left of an answer: it without its objects, or the whole answer where one is not plain."""
        at = start = answer.find(b"<objects>")
        if start < 0 or b"<!" in answer:
            return answer
        read = []
        while (found := _OBJECT.match(answer, at)) is not None:
            values = self._values(found[1], found[3])
            if values is None:
                return answer
            read.append((found[2].decode(), values))
            at = found.end()
        if answer.startswith(b"<objects", at):
            return answer
        self._taken += read
        return answer[:start] + answer[at:]

    def taken(self) -> list[tuple[str, dict[str, str]]]:
        """The objects that were taken since the last call: their ids, and their values by path."""
        taken, self._taken = self._taken, []
        return taken

    def _values(self, kind: bytes, properties: bytes) -> dict[str, str] | None:
        """The values of an object; None where it is of another kind, or one is not as declared."""
        if kind != self._kind:
            return None
        values = {}
        for name, attributes, text in (found.groups() for found in _PROPERTIES.finditer(properties)):
            if text is None:
                continue  # not set
            plain = self._plain.get(name)
            if plain is None or _TYPE.findall(attributes) != [plain.name]:
                return None
            try:
                values[plain.path] = plain.value(text)
            except (KeyError, ValueError, ElementTree.ParseError):
                return None
        return values


@dataclass(frozen=True)
class _Plain:
    """A property: its path, its type's name in an answer, and what makes a value of a text."""

    path: str
    name: bytes
    value: Callable[[bytes], str]


def _plain(kind: type, path: str) -> _Plain:
    declared: Any = declared_type(kind, path)
    if declared is str:
        return _Plain(path, b"string", _text)
    if declared is None or not issubclass(declared, Enum):
        raise TypeError(f"{path} is neither a text nor an enumerated word")
    known = {word.encode(): getattr(declared, word) for word in declared.values}
    return _Plain(path, GetWsdlName(declared).encode(), known.__getitem__)


def _text(text: bytes) -> str:
    return _unescaped(text) if b"&" in text else text.decode()


@lru_cache(1024)
def _unescaped(text: bytes) -> str:
    """Many VMs have the same guest."""
    return ElementTree.fromstring(b"<text>" + text + b"</text>").text or ""
