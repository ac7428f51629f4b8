"""What the vSphere adapter's tests share."""

from __future__ import annotations

import hmac
import os
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from tests.support.lab import LabHandle
from vnuma.domain.vm.change import Change, change_to
from vnuma.domain.vm.setting import Value
from vnuma.vsphere.connect import Session, VCenter
from vnuma.vsphere.read import read_vm


class LabFactory(Protocol):
    """`lab(scenario, **overrides)`, as the tests' common fixture gives it."""

    def __call__(self, scenario: str | dict[str, Any] = "paper", **overrides: Any) -> LabHandle: ...


class Login(Protocol):
    """`login(lab, **account)`: a session that ends with the test."""

    def __call__(self, lab: LabHandle, **account: Any) -> Session: ...


def vcenter_of(lab: LabHandle, **changed: Any) -> VCenter:
    """The lab's vCenter and administrator, with some fields changed."""
    end = lab.vcenter
    fields = {
        "host": end.host,
        "port": end.port,
        "user": end.user,
        "password": end.password,
        "ca_file": str(end.ca_file),
    }
    return VCenter(**{**fields, **changed})


def saml(lab: LabHandle, minutes: float = 5, method: str = "bearer", key: str | None = None) -> str:
    """A token of the lab's administrator that is good for so long; `key` is not the lab's own."""
    until = (datetime.now(UTC) + timedelta(minutes=minutes)).replace(microsecond=0)
    text = until.isoformat().replace("+00:00", "Z")
    signed = hmac.new((key or lab.vcenter.password).encode(), f"{lab.vcenter.user} {text}".encode(), "sha256")
    return (
        '<saml2:Assertion xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion" ID="_1" Version="2.0">'
        '<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#">'
        f"<ds:SignatureValue>{signed.hexdigest()}</ds:SignatureValue></ds:Signature>"
        f"<saml2:Subject><saml2:NameID>{lab.vcenter.user}</saml2:NameID>"
        f'<saml2:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:{method}"/></saml2:Subject>'
        f'<saml2:Conditions NotOnOrAfter="{text}"/></saml2:Assertion>'
    )


def change(session: Session, ref: Any, **desired: Value) -> Change:
    """The change that takes a VM to some settings; `__` means a dot."""
    wanted = {name.replace("__", "."): value for name, value in desired.items()}
    return change_to(read_vm(session, ref).settings, wanted)


def vm(name: str = "sql16", **fields: Any) -> dict[str, Any]:
    """A VM of a scenario."""
    return {"name": name, **fields}


def fault(kind: str, **fields: Any) -> dict[str, Any]:
    """A fault of a scenario."""
    return {"kind": kind, **fields}


def govc_environment(lab: LabHandle) -> dict[str, str]:
    """What tells govc the lab's vCenter, its login and its certificate."""
    end = lab.vcenter
    return {
        **os.environ,
        "GOVC_URL": f"https://{end.host}:{end.port}/sdk",
        "GOVC_USERNAME": end.user,
        "GOVC_PASSWORD": end.password,
        "GOVC_TLS_CA_CERTS": str(end.ca_file),
        "GOVC_PERSIST_SESSION": "false",
        "GOMAXPROCS": "2",
    }
