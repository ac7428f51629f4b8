"""A vCenter that turns hostile after the login: an answer is bounded and valid, or it is an error."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.support.lab import LabHandle
from tests.support.proxy import STREAMS, Proxy, proxy_before
from tests.vsphere.support import vcenter_of
from vnuma.errors import UnreadableAnswer, VCenterUnreachable, VnumaError
from vnuma.vsphere import http_response
from vnuma.vsphere import session as session_module
from vnuma.vsphere.connect import Session, VmRef, agreed_version, connect
from vnuma.vsphere.estate import read_estate
from vnuma.vsphere.read import find_vm, read_power, read_vm, read_vm_on_host
from vnuma.vsphere.run_mark import read_mark
from vnuma.vsphere.surroundings import read_surroundings
from vnuma.vsphere.wait import settle, wait_for

TIMEOUT_S = 0.5


@pytest.fixture(scope="module")
def hostile(shared_lab: LabHandle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A hostile server in vCenter's place, for the module's tests."""
    with proxy_before(shared_lab, tmp_path_factory.mktemp("hostile")) as running:
        yield running


@pytest.fixture
def session(shared_lab: LabHandle, hostile: Proxy) -> Iterator[Session]:
    """A session through it, for one test that alters answers on their way."""
    genuine = hostile.alter
    with connect(vcenter_of(shared_lab, port=hostile.port, ca_file=hostile.ca_file)) as session:
        yield session
        hostile.alter = genuine


@pytest.mark.parametrize("kind", STREAMS)
def test_an_answer_is_bounded_in_time_and_size(
    shared_lab: LabHandle, hostile: Proxy, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Whatever is sent: vCenter counts as out of reach within four time-outs, and memory stays small."""
    monkeypatch.setattr(http_response, "MOST_BYTES", 4_000_000)
    known = vcenter_of(shared_lab, port=hostile.port, ca_file=hostile.ca_file)
    with connect(known) as session:
        ref = find_vm(session, "sql16")
        session.transport.schemeArgs["timeout"] = TIMEOUT_S
        session.transport.close()
        hostile.turn(kind, 1, at="RetrievePropertiesEx")
        tracemalloc.start()
        began = time.monotonic()

        with pytest.raises(VCenterUnreachable):
            read_vm(session, ref)

        assert time.monotonic() - began < http_response.PATIENCES * TIMEOUT_S + 10
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
        tracemalloc.stop()
        session.transport.schemeArgs["timeout"] = 30
        assert read_vm(session, ref).name == "sql16"


@pytest.mark.parametrize("kind", ["headers that drip", "a body that drips", "gigabytes"])
def test_the_first_contact_is_bounded_too(
    shared_lab: LabHandle, hostile: Proxy, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The list of versions comes before any login."""
    monkeypatch.setattr(http_response, "MOST_BYTES", 4_000_000)
    hostile.turn(kind, 1)

    with pytest.raises(VCenterUnreachable):
        agreed_version(
            vcenter_of(shared_lab, port=hostile.port, ca_file=hostile.ca_file, timeout_s=TIMEOUT_S)
        )


_VALUE = (
    b'<val xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns:x="http://www.w3.org/2001/XMLSchema"'
    b' i:type="%s" %s>%s</val>'
)


def _typed(name: str, kind: bytes, value: bytes) -> Callable[[bytes], bytes]:
    """Give the property `name` another type and value, wherever it is."""
    pattern = re.compile(rb"(<name>" + re.escape(name.encode()) + rb"</name>)<val .*?</val>", re.DOTALL)
    other = _VALUE % (kind, b'type="VirtualMachine"', value)
    return lambda body: pattern.sub(lambda found: found[1] + other, body)


def _without(name: str) -> Callable[[bytes], bytes]:
    """Leave the property `name` out."""
    pattern = re.compile(
        rb"<propSet><name>" + re.escape(name.encode()) + rb"</name>.*?</val></propSet>", re.DOTALL
    )
    return lambda body: pattern.sub(b"", body)


def _own_parent(body: bytes) -> bytes:
    """Every folder contains itself."""
    return re.sub(
        rb'(<obj type="Folder">)([^<]*)(</obj>(?:(?!</objects>).)*<name>parent</name>)<val [^>]*>[^<]*</val>',
        rb"\1\2\3" + _VALUE % (b"ManagedObjectReference", b'type="Folder"', rb"\2"),
        body,
        flags=re.DOTALL,
    )


ALTERED: dict[str, Callable[[bytes], bytes]] = {
    "vCPUs that are text": _typed("config.hardware.numCPU", b"x:string", b"many"),
    "vCPUs that are a VM": _typed("config.hardware.numCPU", b"ManagedObjectReference", b"vm-1"),
    "a name that is a number": _typed("name", b"x:int", b"7"),
    "a parent that is text": _typed("parent", b"x:string", b"up"),
    "a host that is text": _typed("runtime.host", b"x:string", b"esx"),
    "a power state that is none": _typed("runtime.powerState", b"VirtualMachinePowerState", b"maybe"),
    "a power state that is text": _typed("runtime.powerState", b"x:string", b"maybe"),
    "options that are a number": _typed("config.extraConfig", b"x:int", b"7"),
    "a hardware version that is none": _typed("config.version", b"x:string", b"vmx-none"),
    "no name": _without("name"),
    "no instance UUID": _without("config.instanceUuid"),
    "no power state": _without("runtime.powerState"),
    "no change version": _without("config.changeVersion"),
    "folders in themselves": _own_parent,
    "objects of no type": lambda body: body.replace(b'type="VirtualMachine"', b'type="Nobody"'),
    "other objects": lambda body: body.replace(b'type="VirtualMachine"', b'type="HostSystem"'),
}

READERS: dict[str, Callable[[Session, VmRef], object]] = {
    "a VM": read_vm,
    "a VM with its host": read_vm_on_host,
    "power": read_power,
    "the mark": read_mark,
    "surroundings": read_surroundings,
    "the estate": lambda session, _ref: read_estate(session),
    "its name": lambda session, _ref: find_vm(session, "sql16"),
    "a wait": lambda session, ref: wait_for(
        session, ref, ("name", "runtime.powerState"), lambda seen: "name" in seen, 0.5, "it was not seen"
    ),
    "tasks": lambda session, ref: settle(session, ref, 0.5),
}


@pytest.mark.parametrize("case", ALTERED)
def test_what_is_not_as_the_api_declares_is_no_answer(
    session: Session, ref: VmRef, hostile: Proxy, case: str
) -> None:
    """Each reader understands it all the same, or says in vnuma's own words that it does not."""
    touched: list[str] = []

    def alter(body: bytes) -> bytes:
        other = ALTERED[case](body)
        touched.extend([case] if other != body else [])
        return other

    hostile.alter = alter
    for reader in READERS.values():
        with suppress(VnumaError):
            reader(session, ref)
    assert touched


@pytest.mark.parametrize("name", ["config.hardware.numCPU", "runtime.powerState"])
def test_a_property_that_decides_is_refused_by_its_name(
    session: Session, ref: VmRef, hostile: Proxy, name: str
) -> None:
    """The connection works: the error says which property, and what arrived for it."""
    hostile.alter = _typed(name, b"x:boolean", b"true")

    with pytest.raises(UnreadableAnswer, match=f"answered bool for property {name}") as caught:
        read_vm(session, ref)

    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    "name",
    ["disabledMethod", "config.files", "guest.guestFullName", "hardware.biosInfo", "config.hyperThread"],
)
def test_a_property_that_only_informs_is_not_evaluated(
    session: Session, ref: VmRef, hostile: Proxy, name: str
) -> None:
    """The VM and its host are read all the same, with the reason for a VM's property."""
    hostile.alter = _typed(name, b"x:boolean", b"true")
    vm, host = read_vm_on_host(session, ref)

    assert (vm.name, host.cores) == ("sql16", 32)
    of_host = name.startswith(("hardware", "config.hyperThread"))
    assert [name in why for why in vm.unread] == ([] if of_host else [True])


def test_a_vm_of_an_estate_with_a_wrong_property_is_named_and_the_others_are_read(
    session: Session, hostile: Proxy
) -> None:
    """One odd answer does not end the reading of a whole vCenter."""
    hostile.alter = _typed("config.hardware.numCPU", b"x:boolean", b"true")
    estate = read_estate(session)

    assert [(item.kind, item.name) for item in estate.unseen] == [("vm", "sql16")]
    assert estate.hosts


def test_a_vm_whose_folders_lie_in_themselves_is_not_read_for_ever(
    session: Session, ref: VmRef, hostile: Proxy
) -> None:
    """Its path has no end: that is said."""
    hostile.alter = _own_parent

    with pytest.raises(VCenterUnreachable):
        read_vm(session, ref)


def test_pages_without_end_are_not_read_for_ever(
    session: Session, ref: VmRef, hostile: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page promises another one, and is the same again."""
    monkeypatch.setattr(session_module, "_MOST_PAGES", 20)
    page: list[bytes] = []

    def again(body: bytes) -> bytes:
        if b"<RetrievePropertiesExResponse" in body:
            page[:] = [body.replace(b"<returnval>", b"<returnval><token>1</token>", 1)]
        return page[0].replace(b"RetrieveP", b"ContinueRetrieveP") if b"Fault" in body else page[0]

    hostile.alter = again

    with pytest.raises(VCenterUnreachable):
        read_vm(session, ref)


def test_an_answer_in_the_second_thread_that_is_not_vspheres_ends_the_reading(
    session: Session, hostile: Proxy
) -> None:
    """Hosts are read in parallel with the VMs, on their own connection: its failures are not lost."""
    earlier, genuine = read_estate(session), hostile.alter
    hostile.alter = lambda body: b"<broken" if b'<obj type="HostSystem">' in body else body

    with pytest.raises(VCenterUnreachable):
        read_estate(session, earlier=earlier)

    hostile.alter = genuine
    assert read_estate(session, earlier=earlier).taken_over == len(earlier.vms)
