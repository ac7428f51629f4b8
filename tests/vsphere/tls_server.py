"""A TLS server with a certificate made for a test, which answers every request with 404."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class _NotFound(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def tls_server(
    folder: Path, *, name: str = "Corp-CA2", address: str = "127.0.0.1", expired: bool = False
) -> Iterator[tuple[int, Path]]:
    """Serve on a free port; yields the port and the certificate, which is its own CA."""
    certificate = self_signed(folder, name, address, expired)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _NotFound)
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port, certificate
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def self_signed(folder: Path, name: str, address: str = "127.0.0.1", expired: bool = False) -> Path:
    """A certificate and its key in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    until = datetime.now(UTC) + timedelta(days=-1 if expired else 1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - timedelta(days=30))
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    file.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return file
