"""What is taken out of a page, and what is left to pyVmomi, are together what pyVmomi reads alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyVmomi import vim, vmodl
from pyVmomi.SoapAdapter import SoapResponseDeserializer

from vnuma.vsphere.plain_page import PlainPages

PATHS = ("config.changeVersion", "runtime.powerState", "guest.guestDetailedData")

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<soapenv:Envelope '
    'xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n<soapenv:Body>\n'
    '<RetrievePropertiesExResponse xmlns="urn:vim25"><returnval><token>7</token>'
)
TAIL = "</returnval></RetrievePropertiesExResponse></soapenv:Body></soapenv:Envelope>"
MISSING = (
    "<missingSet><path>guest.guestDetailedData</path><fault><fault "
    'xsi:type="NoPermission"><object type="VirtualMachine">vm-1</object>'
    "<privilegeId>System.Read</privilegeId></fault><localizedMessage></localizedMessage></fault></missingSet>"
)


@dataclass(frozen=True)
class Vm:
    """A VM on a page."""

    moid: str
    values: dict[str, str]
    beside: str = ""

    @property
    def xml(self) -> str:
        """As vCenter writes it."""
        properties = "".join(
            f"<propSet><name>{path}</name>"
            f'<val xsi:type="{"VirtualMachinePowerState" if "power" in path else "xsd:string"}">'
            f"{escape(value, {chr(39): '&#39;'})}</val></propSet>"
            for path, value in self.values.items()
        )
        return f'<objects><obj type="VirtualMachine">{self.moid}</obj>{properties}{self.beside}</objects>'


def page(objects: Sequence[str]) -> bytes:
    """An answer with these objects."""
    return (HEAD + "".join(objects) + TAIL).encode()


def by_pyvmomi(answer: bytes) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """The token and the objects that pyVmomi reads."""
    result: Any = SoapResponseDeserializer(None).Deserialize(
        BytesIO(answer), vmodl.query.PropertyCollector.RetrieveResult
    )
    return result.token, [
        (one.obj._GetMoId(), {item.name: item.val for item in one.propSet}) for one in result.objects
    ]


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30)
vms = st.builds(
    Vm,
    st.from_regex(r"vm-[0-9]{1,6}", fullmatch=True),
    st.fixed_dictionaries(
        {},
        optional={
            PATHS[0]: texts,
            PATHS[1]: st.sampled_from(["poweredOn", "poweredOff", "suspended"]),
            PATHS[2]: texts,
        },
    ),
    st.sampled_from(["", "", MISSING]),
)


@given(st.lists(vms, max_size=5))
def test_nothing_is_lost_or_altered(some: list[Vm]) -> None:
    """Whatever the values: the same ids and values, and the token is still there."""
    whole = page([vm.xml for vm in some])
    plain = PlainPages(vim.VirtualMachine, PATHS)
    token, left = by_pyvmomi(plain.take(whole))
    assert (token, [*plain.taken(), *left]) == by_pyvmomi(whole)
    assert plain.taken() == []


ON = Vm("vm-1", {PATHS[0]: "2026", PATHS[1]: "poweredOn"}).xml
HOST = '<objects><obj type="HostSystem">host-1</obj></objects>'


@pytest.mark.parametrize("objects", [[ON], [ON, Vm("vm-2", {}).xml], [ON.replace("><", ">\n <")]])
def test_a_plain_page_is_taken_whole(objects: list[str]) -> None:
    """pyVmomi is left the frame of the answer."""
    plain = PlainPages(vim.VirtualMachine, PATHS)
    assert b"<obj" not in plain.take(page(objects))
    assert len(plain.taken()) == len(objects)


@pytest.mark.parametrize(
    "odd",
    [
        HOST,
        Vm("vm-1", {}, MISSING).xml,
        ON.replace("poweredOn", "glowing"),
        ON.replace("poweredOn", "values"),
        ON.replace("vm-1", "vm-\u00e9"),
        ON.replace('"VirtualMachinePowerState"', '"xsd:string"'),
        ON.replace('xsi:type="xsd:string"', 'xsi:type="xsd:int"'),
        ON.replace(PATHS[0], "config.name"),
        ON.replace("2026", "<![CDATA[2026]]>"),
        ON.replace("2026", "&unknown;"),
        ON.replace('"VirtualMachine"', '"VirtualMachine" serverGuid="1"'),
        f"<!-- {ON} -->",
        ON.removesuffix("</objects>"),
    ],
)
def test_a_page_with_anything_else_is_left_as_it_is(odd: str) -> None:
    """Before or behind plain objects: none of the page is taken, so that nothing is read twice."""
    for whole in (page([ON, odd]), page([odd, ON])):
        plain = PlainPages(vim.VirtualMachine, PATHS)
        assert plain.take(whole) == whole
        assert plain.taken() == []


def test_a_property_that_is_not_plain_is_refused() -> None:
    """The mistake would be ours."""
    with pytest.raises(TypeError, match=r"runtime\.host"):
        PlainPages(vim.VirtualMachine, ["runtime.host"])
