"""Files that a driver reads besides its connection string: trusted CAs, and a FreeTDS section.

They are in memory where the system allows it, so that a full disk prevents no login.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from vnuma.errors import EnvironmentProblem

CA_PLACE = "{ca}"
"""Placeholder in a section of freetds.conf for the path of the CA file."""

_FREETDS = "FREETDSCONF"
_OPENSSL = "SSL_CERT_FILE"


@dataclass(frozen=True)
class DriverFiles:
    """CAs in PEM, and a section of freetds.conf, empty for Microsoft's driver; both may be empty.

    Microsoft's driver uses OpenSSL, whose variable SSL_CERT_FILE applies to the process: CAs of one server
    are then trusted for all servers of that driver. https://docs.openssl.org/3.0/man7/openssl-env/
    """

    ca: str = ""
    section: str = ""


def read_ca(path: str) -> str:
    """The certificates of a PEM file. Raises EnvironmentProblem without any."""
    try:
        text = Path(path).expanduser().read_text(encoding="ascii")
        x509.load_pem_x509_certificates(text.encode())
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it contains no PEM certificate"
        raise EnvironmentProblem(
            f"vnuma_sql.ca_file {path} cannot be used: {why}.",
            fix="Name a PEM file with the certificate of the CA that signed SQL Server's certificate.",
        ) from error
    return text


def install(files: DriverFiles) -> None:
    """Make them available to this process's drivers."""
    with _lock:
        if _kept.process != os.getpid():  # a fork: its parent's files may be removed first
            _kept.begin()
        if files.section:
            ca = _kept.path(files.ca) if files.ca else "system"
            _kept.add(_FREETDS, files.section.replace(CA_PLACE, ca))
        elif files.ca:
            _kept.add(_OPENSSL, files.ca)


class _Kept:
    """The files of this process. A changed text gets a new file, since others may read the old one."""

    def __init__(self) -> None:
        self.process = 0
        self._open: list[object] = []

    def begin(self) -> None:
        """Forget a parent's files, but keep their texts."""
        self._paths: dict[str, str] = {}
        self._parts: dict[str, list[str]] = {_FREETDS: [], _OPENSSL: [self._trusted_so_far()]}
        self.process = os.getpid()

    def path(self, text: str) -> str:
        """A file with this text."""
        if text not in self._paths:
            self._paths[text] = self._write(text)
        return self._paths[text]

    def add(self, variable: str, part: str) -> None:
        """Set a variable to a file that includes this part."""
        parts = self._parts[variable]
        if part not in parts:
            parts.append(part)
            os.environ[variable] = self.path("\n".join(parts))

    def _write(self, text: str) -> str:
        if hasattr(os, "memfd_create"):
            number = os.memfd_create("vnuma")
            with os.fdopen(os.dup(number), "w", encoding="utf-8") as stream:
                stream.write(text)
            return f"/proc/{self.process}/fd/{number}"
        file = tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="vnuma-")  # noqa: SIM115 - kept open
        file.write(text)
        file.flush()
        self._open.append(file)
        return file.name

    @staticmethod
    def _trusted_so_far() -> str:
        """The CAs in OpenSSL's present file, which another file must not lose."""
        file = ssl.get_default_verify_paths().cafile
        with suppress(OSError):
            return Path(file).read_text(encoding="utf-8", errors="replace") if file else ""
        return ""


_kept = _Kept()
_lock = threading.Lock()
