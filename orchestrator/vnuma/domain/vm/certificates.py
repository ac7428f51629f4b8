"""A server's certificate: its names, and the message for one that is not trusted."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509

from vnuma.errors import CertificateRejected

# OpenSSL's codes for certificate errors (X509_V_ERR_*).
_EXPIRED = 10
_NAME_MISMATCH = (62, 64)


def rejection(
    where: str,
    certificate: x509.Certificate | None,
    verify_code: int,
    verify_message: str,
    ca_file: str | None,
    section: str,
) -> CertificateRejected:
    """The error for OpenSSL's `verify_code`. `certificate` is None if the server does not show it again;
    `section` of the inventory has `ca_file` and `host`.
    """
    if certificate is None:
        return CertificateRejected(
            f"{where} presents a certificate that is not trusted ({verify_message}). Nothing was sent.",
            fix=f"Name the CA that signed it in {section}.ca_file.",
        )
    if verify_code == _EXPIRED:
        return CertificateRejected(
            f"{where} presents a certificate that expired on "
            f"{certificate.not_valid_after_utc:%Y-%m-%d}. Nothing was sent.",
            fix="Renew the certificate, or correct this machine's clock.",
        )
    if verify_code in _NAME_MISMATCH:
        return CertificateRejected(
            f"{where} presents a certificate for {names(certificate)}. Nothing was sent.",
            fix=f"Use a name from the certificate as {section}.host.",
        )
    signer = Path(ca_file).name if ca_file else "no CA of this system"
    verb = "did not sign" if ca_file else "signed"
    return CertificateRejected(
        f"{where} presents a certificate that {signer} {verb} (issuer "
        f"{common_name(certificate.issuer)}). Nothing was sent.",
        fix=f"Add that CA to {section}.ca_file.",
    )


def common_name(name: x509.Name) -> str:
    """`CN=Corp-CA2` if there is a common name, else the whole distinguished name."""
    names = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return f"CN={names[0].value!s}" if names else name.rfc4514_string() or "unnamed"


def names(certificate: x509.Certificate) -> str:
    """The host names and addresses in a certificate."""
    try:
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return certificate.subject.rfc4514_string() or "no name"
    found = [*alternative.get_values_for_type(x509.DNSName)]
    found += [str(address) for address in alternative.get_values_for_type(x509.IPAddress)]
    return ", ".join(dict.fromkeys(found)) or "no name"
