"""Connect to the ESXi host of a service ticket, after the host has proven its identity.

The proof is the certificate's chain, as for vCenter, or else the thumbprint in the ticket of the verified
vCenter, since hosts may have self-signed certificates.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ssl
from dataclasses import replace
from typing import Any

from vnuma.vsphere.tls import channel, context_for, unchecked
from vnuma.vsphere.vcenter import VCenter

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
    """A connection over which nothing was sent yet. Raises NotThatHost, and OSError as connecting does."""
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
