"""The TLS side of a connection: whom we trust, and what a rejected certificate says of itself."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from vnuma.errors import CertificateRejected, EnvironmentProblem, VCenterUnreachable
from vnuma.vsphere.vcenter import VCenter

# OpenSSL's numbers for what is wrong with a certificate (X509_V_ERR_*).
_EXPIRED = 10
_NAME_MISMATCH = (62, 64)


def context_for(vcenter: VCenter) -> ssl.SSLContext:
    """The explicit context for every connection: pyVmomi's own choice skips checks for localhost.

    Raises EnvironmentProblem when the CA file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=vcenter.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentProblem(
            f"vcenter.ca_file {vcenter.ca_file} cannot be used: {error.strerror or error}.",
            fix="Name a PEM file with the CA's certificate.",
        ) from error
    # Python 3.13 adds checks of optional extensions, which the certificates of a vCenter's own CA
    # may lack. Signature, dates and name are checked as ever.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not vcenter.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@dataclass(frozen=True)
class Shown:
    """The certificate that a server shows: whose it is, who signed it, and when it ends (UTC)."""

    name: str
    issuer: str
    expires: datetime


def shown(vcenter: VCenter) -> Shown | None:
    """The server's certificate as it is, trusted or not; None when it does not show one. Sends nothing."""
    certificate = _shown_certificate(vcenter)
    if certificate is None:
        return None
    return Shown(_common_name(certificate.subject), _issuer(certificate), certificate.not_valid_after_utc)


def rejected(vcenter: VCenter, error: ssl.SSLCertVerificationError) -> CertificateRejected:
    """The sentence for a certificate that failed its check. Asks the server once more for the
    certificate; sends nothing else.
    """
    certificate = _shown_certificate(vcenter)
    if certificate is None:
        return CertificateRejected(
            f"{vcenter.host} shows a certificate that is not trusted ({error.verify_message}). "
            "Nothing was sent.",
            fix="Name the CA that signed it in vcenter.ca_file.",
        )
    if error.verify_code == _EXPIRED:
        return CertificateRejected(
            f"{vcenter.host} shows a certificate that expired on {certificate.not_valid_after_utc:%Y-%m-%d}. "
            "Nothing was sent.",
            fix="Renew the certificate, or correct this machine's clock.",
        )
    if error.verify_code in _NAME_MISMATCH:
        return CertificateRejected(
            f"{vcenter.host} shows a certificate for {_names(certificate)}. Nothing was sent.",
            fix="Use a name of the certificate as vcenter.host.",
        )
    signer = Path(vcenter.ca_file).name if vcenter.ca_file else "no CA of this system"
    verb = "did not sign" if vcenter.ca_file else "signed"
    return CertificateRejected(
        f"{vcenter.host} shows a certificate that {signer} {verb} (issuer {_issuer(certificate)}). "
        "Nothing was sent.",
        fix="Add that CA to vcenter.ca_file.",
    )


def _shown_certificate(vcenter: VCenter) -> x509.Certificate | None:
    """The server's certificate, unchecked, or None when the server does not show it again."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((vcenter.host, vcenter.port), timeout=vcenter.timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=vcenter.host) as secured,
        ):
            der = secured.getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(der) if der else None
    except (OSError, ValueError):
        return None


def _issuer(certificate: x509.Certificate) -> str:
    return _common_name(certificate.issuer)


def _common_name(name: x509.Name) -> str:
    """`CN=Corp-CA2` where there is a common name, else the whole distinguished name."""
    names = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return f"CN={names[0].value!s}" if names else name.rfc4514_string() or "unnamed"


def _names(certificate: x509.Certificate) -> str:
    """The host names and addresses that a certificate is for."""
    try:
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return certificate.subject.rfc4514_string() or "no name"
    names = [*alternative.get_values_for_type(x509.DNSName)]
    names += [str(address) for address in alternative.get_values_for_type(x509.IPAddress)]
    return ", ".join(names) or "no name"


def unreachable(vcenter: VCenter, error: Exception) -> VCenterUnreachable:
    """The sentence for a connection that could not be made or broke."""
    fix = "Check vcenter.host and vcenter.port, and that no firewall is between."
    if isinstance(error, socket.gaierror):
        return VCenterUnreachable(f"The name {vcenter.host} is unknown here ({error.strerror}).", fix=fix)
    if isinstance(error, TimeoutError):
        return VCenterUnreachable(f"{vcenter.address} gave no answer in {vcenter.timeout_s:g} s.", fix=fix)
    if isinstance(error, ConnectionRefusedError):
        return VCenterUnreachable(f"Nothing answers at {vcenter.address} (connection refused).", fix=fix)
    if isinstance(error, ssl.SSLError):
        return VCenterUnreachable(
            f"{vcenter.address} does not speak TLS as expected ({error.reason}).", fix=fix
        )
    words = str(getattr(error, "strerror", None) or error or type(error).__name__)
    fix = f"Look whether vCenter is up, or just starting; else c{fix[1:]}"
    return VCenterUnreachable(f"The connection to {vcenter.address} failed ({words}).", fix=fix)
