"""Answers that no vCenter gives: a proxy's page, XML cut short, another type. They pass, as 502 does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.lab import LabHandle
from tests.support.proxy import BAD_ANSWERS, Proxy, proxy_before
from tests.vsphere.support import vcenter_of
from vnuma.errors import VCenterUnreachable
from vnuma.vsphere.connect import Session, agreed_version, connect
from vnuma.vsphere.read import find_vm, find_vm_by_uuid, read_vm

CALLS: dict[str, Callable[[Session, Any, str], object]] = {
    "RetrievePropertiesEx": lambda session, ref, _uuid: read_vm(session, ref),
    "FindByUuid": lambda session, _ref, uuid: find_vm_by_uuid(session, uuid),
    "ShutdownGuest": lambda _session, ref, _uuid: ref.ShutdownGuest(),
}
"""A call that has a result, one that may have one, and one that never has."""


@pytest.fixture(scope="module")
def proxy(shared_lab: LabHandle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """One proxy for the module's tests."""
    with proxy_before(shared_lab, tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.mark.parametrize("kind", BAD_ANSWERS)
@pytest.mark.parametrize("call", CALLS)
def test_an_answer_that_is_not_vspheres_is_an_unreachable_vcenter(
    shared_lab: LabHandle, proxy: Proxy, kind: str, call: str
) -> None:
    """Named with its address, whether the call has a result, may have none, or never has one.

    The next call of the same session gets its answer.
    """
    with connect(vcenter_of(shared_lab, port=proxy.port, ca_file=proxy.ca_file)) as session:
        ref = find_vm(session, "sql16")
        uuid = read_vm(session, ref).instance_uuid
        proxy.turn(kind, 1, at=call)

        with pytest.raises(VCenterUnreachable, match=f"127.0.0.1:{proxy.port}"):
            CALLS[call](session, ref, uuid)

        assert read_vm(session, ref).instance_uuid == uuid


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_a_login_that_gets_such_an_answer_is_no_bug(shared_lab: LabHandle, proxy: Proxy, kind: str) -> None:
    """Neither the first contact, nor the login, nor the logout is a bug, and the logout hides nothing."""
    known = vcenter_of(shared_lab, port=proxy.port, ca_file=proxy.ca_file)
    for at in ("", "<RetrieveServiceContent", "<Login "):
        proxy.turn(kind, 1, at=at)
        with pytest.raises(VCenterUnreachable):
            connect(known)
    proxy.turn(kind, 1)
    with pytest.raises(VCenterUnreachable):
        agreed_version(known)
    with connect(known):
        proxy.turn(kind, 1, at="Logout")


def test_a_wrong_call_of_our_own_stays_a_bug(shared_lab: LabHandle, proxy: Proxy) -> None:
    """What fails before anything is sent is not vCenter's fault: it is not retried."""
    with connect(vcenter_of(shared_lab, port=proxy.port, ca_file=proxy.ca_file)) as session:
        ref = find_vm(session, "sql16")
        with pytest.raises(TypeError):
            ref.ReconfigVM_Task("no spec")
