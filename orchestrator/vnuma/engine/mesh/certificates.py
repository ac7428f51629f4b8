"""The mesh's private certificate authority, node certificates, and keys for signing work.

A node's certificate has its node ID as an otherName of the subject alternative name
(https://docs.ansible.com/projects/receptor/en/latest/user_guide/tls.html).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS = 3650
NODE_DAYS = 1825

_NODE_ID = x509.ObjectIdentifier("1.3.6.1.4.1.2312.19.1")
_KEY_BITS = 3072
_UTF8_STRING = 0x0C
_Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
_CLOCKS = timedelta(hours=1)
"""Certificates are valid from this long ago, in case another node's clock is behind."""


@dataclass(frozen=True, repr=False)
class KeyPair:
    """A private key with its certificate or public key, both PEM."""

    private: str
    public: str


def new_authority(now: datetime) -> KeyPair:
    key = _tls_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vnuma mesh")])
    certificate = (
        _dated(x509.CertificateBuilder(), now, AUTHORITY_DAYS)
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(_pem(key), certificate.public_bytes(Encoding.PEM).decode())


def node_certificate(authority: KeyPair, node: str, hosts: Iterable[str], now: datetime) -> KeyPair:
    """A node's key and certificate; `hosts` are the names and addresses at which others dial it."""
    issuer = x509.load_pem_x509_certificate(authority.public.encode())
    signer = load_pem_private_key(authority.private.encode(), None)
    assert isinstance(signer, _Key)  # an earlier version made RSA keys
    key = _tls_key()
    names = x509.SubjectAlternativeName([_node_id(node), *map(_host, hosts)])
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        _dated(x509.CertificateBuilder(), now, NODE_DAYS)
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node)]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return KeyPair(_pem(key), certificate.public_bytes(Encoding.PEM).decode())


def signing_keys() -> KeyPair:
    """The controller's private key for signing work units, and the public key that nodes verify them with."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(_pem(key), public.decode())


def _tls_key() -> ec.EllipticCurvePrivateKey:
    """Each connection through the mesh costs both sides a signature: RSA's take a hundred times as long."""
    return ec.generate_private_key(ec.SECP256R1())


def _pem(key: _Key) -> str:
    """RSA as PKCS #1, the only form in which Receptor reads signing keys; else as SEC 1 (RFC 5915)."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()


def _dated(builder: x509.CertificateBuilder, now: datetime, days: int) -> x509.CertificateBuilder:
    return (
        builder.serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS)
        .not_valid_after(now + timedelta(days=days))
    )


def _node_id(node: str) -> x509.OtherName:
    """A node name has at most 63 ASCII characters, so that its DER length is one byte."""
    text = node.encode("ascii")
    return x509.OtherName(_NODE_ID, bytes([_UTF8_STRING, len(text)]) + text)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_encipherment=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
