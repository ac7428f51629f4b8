"""Whom we talk to: certificates that are trusted and ones that are not."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import LabHandle
from tests.vsphere.support import vcenter_of
from tests.vsphere.tls_server import tls_server
from vnuma.errors import CertificateRejected, VCenterUnreachable, VnumaError
from vnuma.vsphere.connect import VCenter, connect


def test_a_certificate_of_another_ca_is_rejected(shared_lab: LabHandle, tmp_path: Path) -> None:
    """A certificate that our CA did not sign is rejected, naming its issuer and our file."""
    with (
        tls_server(tmp_path, name="Corp-CA2") as (_, other_ca),
        pytest.raises(CertificateRejected) as caught,
    ):
        connect(vcenter_of(shared_lab, ca_file=str(other_ca)))
    assert str(caught.value) == (
        "127.0.0.1 presents a certificate that Corp-CA2.pem did not sign (issuer CN=vnuma lab CA). "
        "Nothing was sent.\n  Add that CA to vnuma_vcenter.ca_file."
    )


def test_the_system_store_is_asked_without_a_ca_file(shared_lab: LabHandle) -> None:
    """Without a CA file the system's CAs decide, for loopback addresses too."""
    with pytest.raises(CertificateRejected):
        connect(vcenter_of(shared_lab, ca_file=None))


def test_only_verify_tls_false_accepts_any_certificate(shared_lab: LabHandle) -> None:
    """An untrusted certificate is accepted only where the check is turned off in writing."""
    with connect(vcenter_of(shared_lab, ca_file=None, verify_tls=False)) as session:
        assert session.about.is_vcenter


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"address": "192.0.2.7"}, CertificateRejected, r"a certificate for 192\.0\.2\.7\. Nothing was sent"),
        ({"expired": True}, CertificateRejected, r"expired on \d{4}-\d\d-\d\d\. Nothing was sent"),
        ({}, VCenterUnreachable, r"is neither a vCenter nor an ESXi host \(HTTP 404\)"),
    ],
    ids=["another name", "expired", "another web server"],
)
def test_a_server_of_a_trusted_ca_that_is_not_the_vcenter_gets_no_credentials(
    tmp_path: Path, wrong: dict[str, Any], error: type[VnumaError], says: str
) -> None:
    """The error names the certificate's addresses, the date on which it expired, or what the server is."""
    with tls_server(tmp_path, **wrong) as (port, ca), pytest.raises(error, match=says):
        connect(VCenter("127.0.0.1", "u", "p", port=port, ca_file=str(ca)))


def test_a_closed_port_is_unreachable() -> None:
    """A port where nobody listens is named with address and cause."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        with pytest.raises(VCenterUnreachable) as caught:
            connect(VCenter("127.0.0.1", "u", "p", port=port))
    assert caught.value.what == f"Nothing answers at 127.0.0.1:{port} (connection refused)."
    assert caught.value.fix


def test_a_silent_server_is_given_up_on() -> None:
    """A server that accepts and then says nothing is given up on after the time-out."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(VCenterUnreachable):
            connect(VCenter("127.0.0.1", "u", "p", port=port, timeout_s=0.2))
