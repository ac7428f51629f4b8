"""The TLS side of a connection: trusted CAs, the details of a rejected certificate, and a host's identity."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import socket
import ssl
from dataclasses import replace
from typing import Any

from cryptography import x509

from vnuma.domain.vm.certificates import rejection
from vnuma.errors import CertificateRejected, EnvironmentProblem, VCenterUnreachable
from vnuma.tls_contexts import checking, unchecked
from vnuma.vsphere.http_response import BadAnswer, BoundedResponse
from vnuma.vsphere.vcenter import VCenter

_SYSTEM = ssl.get_default_verify_paths()
"""This system's CAs at process start, unaffected by the files of SQL Server's driver."""


def context_for(vcenter: VCenter) -> ssl.SSLContext:
    """An explicit context for every connection, since pyVmomi skips checks for localhost.

    Raises EnvironmentProblem when the CA file cannot be used.
    """
    trusted = (vcenter.ca_file,) if vcenter.ca_file is not None else (_SYSTEM.cafile, _SYSTEM.capath)
    try:
        checks = checking(*trusted)
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentProblem(
            f"vcenter.ca_file {vcenter.ca_file} cannot be used: {error.strerror or error}.",
            fix="Name a PEM file with the CA's certificate.",
        ) from error
    return checks if vcenter.verify_tls else unchecked()


def channel(
    vcenter: VCenter, context: ssl.SSLContext, to: tuple[str, int] | None = None
) -> http.client.HTTPSConnection:
    """An unopened connection to vCenter, or to one of its ESXi hosts, through the proxy if there is one."""
    host, port = to or (vcenter.host, vcenter.port)
    first, first_port = vcenter.proxy or (host, port)
    connection = http.client.HTTPSConnection(first, first_port, timeout=vcenter.timeout_s, context=context)
    connection.response_class = BoundedResponse
    if vcenter.proxy:
        connection.set_tunnel(host, port)
    return connection


def failed(
    vcenter: VCenter, error: OSError | http.client.HTTPException
) -> CertificateRejected | VCenterUnreachable:
    """The error for a call that did not get an answer."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_code, error.verify_message
        return rejection(vcenter.host, shown(vcenter), *why, vcenter.ca_file, "vnuma_vcenter")
    return unreachable(vcenter, error)


def shown(vcenter: VCenter) -> x509.Certificate | None:
    """The server's certificate, trusted or not; None if it shows none. Sends nothing."""
    connection = channel(vcenter, unchecked())
    try:
        connection.connect()
        der = connection.sock.getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(der) if der else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def unreachable(vcenter: VCenter, error: Exception) -> VCenterUnreachable:
    """The error for a connection that failed or broke, with a proxy's reason for refusing a tunnel."""
    if vcenter.proxy:
        host, port = vcenter.proxy
        return VCenterUnreachable(
            f"{vcenter.address} cannot be reached through the proxy {host}:{port} ({_words(error)}).",
            fix="Check vnuma_vcenter.proxy, and that it may connect to that host and port without a login.",
        )
    fix = "Check vnuma_vcenter.host and its port, and that no firewall blocks it."
    match error:
        case socket.gaierror():
            what = f"The name {vcenter.host} cannot be resolved here ({error.strerror})."
        case TimeoutError():
            what = f"{vcenter.address} did not answer within {vcenter.timeout_s:g} s."
        case ConnectionRefusedError():
            what = f"Nothing answers at {vcenter.address} (connection refused)."
        case ssl.SSLError():
            what = f"{vcenter.address} does not speak TLS as expected ({error.reason})."
        case BadAnswer():
            what = f"{vcenter.address} answered, but not as the vSphere API does ({error})."
            fix = "Look whether vCenter is just starting, and whether a proxy answers in its place."
        case _:
            what = f"The connection to {vcenter.address} failed ({_words(error)})."
            fix = f"Look whether vCenter is up, or just starting; else c{fix[1:]}"
    return VCenterUnreachable(what, fix=fix)


def _words(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


# A thumbprint's hexadecimal length and hash. Before 7.0.3 vCenter gives only SHA-1.
_ALGORITHMS = {40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}


class NotThatHost(ssl.SSLError):
    """The certificate is neither signed by a trusted CA nor the one that vCenter names."""


def thumbprint_of(ticket: Any) -> str | None:
    """The strongest thumbprint in a ticket, in hexadecimal; None without any."""
    named = [entry.thumbprint for entry in ticket.certThumbprintList or ()]
    prints = [(text or "").replace(":", "").lower() for text in (*named, ticket.sslThumbprint)]
    return max((text for text in prints if len(text) in _ALGORITHMS), key=len, default=None)


def connect_to_host(
    vcenter: VCenter, host: str, port: int, thumbprint: str | None, timeout_s: float
) -> http.client.HTTPSConnection:
    """A connection to a service ticket's ESXi host, which has proven its identity; nothing was sent yet.

    The proof is the certificate's chain, as for vCenter, or else the thumbprint in the ticket of the verified
    vCenter, since hosts may have self-signed certificates.
    Raises NotThatHost, and OSError as connecting does.
    """
    there = replace(vcenter, timeout_s=timeout_s)
    try:
        return _connected(there, host, port, context_for(vcenter))
    except ssl.SSLCertVerificationError as error:
        if thumbprint is None:
            raise NotThatHost(f"{host} presents a certificate that is not trusted") from error
    connection = _connected(there, host, port, unchecked())
    shown = connection.sock.getpeercert(binary_form=True) or b""
    if hmac.compare_digest(hashlib.new(_ALGORITHMS[len(thumbprint)], shown).hexdigest(), thumbprint):
        return connection
    connection.close()
    raise NotThatHost(f"{host} presents another certificate than the one that vCenter names")


def _connected(
    vcenter: VCenter, host: str, port: int, context: ssl.SSLContext
) -> http.client.HTTPSConnection:
    connection = channel(vcenter, context, (host, port))
    try:
        connection.connect()
    except BaseException:
        connection.close()
        raise
    return connection
