"""Connect to SQL Server, and explain a login that fails."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from cryptography import x509

from vnuma.errors import (
    DriverMissing,
    EnvironmentProblem,
    InputError,
    LoginRefused,
    SqlUnreachable,
    VnumaError,
)
from vnuma.logins import Logins
from vnuma.sqlserver.client.certificate import LoginTimeoutError, addresses_of, log_in, why_refused
from vnuma.sqlserver.client.deadline import STATEMENT_TIMEOUT_S, Address, Link, known
from vnuma.sqlserver.client.driver import Driver
from vnuma.sqlserver.client.failures import (
    counts_against_account,
    driver_not_loaded,
    natives,
    sentence,
    translate,
)
from vnuma.sqlserver.client.kerberos import no_login, ticket_refused, windows_account_refused
from vnuma.sqlserver.client.odbc import pyodbc

PORT = 1434
_ASK_INSTANCE, _ANSWER = 0x04, 0x05
_LARGEST = 4096
_AGAIN_S = 0.5
"""Interval for asking again, since a datagram may be lost."""
_GIVE_PORT = "Open UDP 1434, or give the instance a fixed port and write vnuma_sql.port instead of instance."


def port_of(host: str, instance: str, timeout_s: float) -> int:
    """The present port of an instance. Raises SqlUnreachable if it is unknown."""
    where = f"{host}\\{instance}"
    question = bytes([_ASK_INSTANCE]) + instance.encode("ascii") + b"\0"
    until = time.monotonic() + timeout_s
    try:
        (family, kind, protocol, _name, address), *_ = socket.getaddrinfo(host, PORT, type=socket.SOCK_DGRAM)
        with socket.socket(family, kind, protocol) as link:
            link.connect(address)
            while (left := until - time.monotonic()) > 0:
                link.settimeout(min(left, _AGAIN_S))
                with suppress(TimeoutError):
                    link.send(question)
                    return _port(link.recv(_LARGEST), where)
    except ConnectionRefusedError:
        pass  # nobody listens there
    except (socket.gaierror, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a valid name"
        raise SqlUnreachable(f"{where}: the name cannot be resolved here ({why}).") from error
    except OSError as error:
        raise SqlUnreachable(
            f"{where}: UDP {PORT} cannot be reached from here ({error.strerror}).", fix=_GIVE_PORT
        ) from error
    raise SqlUnreachable(
        f"{where}: SQL Server Browser (UDP {PORT}) does not return the instance's port.",
        fix=f"Start the service SQL Server Browser, and check the instance's name. {_GIVE_PORT}",
    )


def _port(answer: bytes, where: str) -> int:
    """The port in an answer. Raises SqlUnreachable without one."""
    text = answer[3:].decode("latin-1") if answer[:1] == bytes([_ANSWER]) else ""
    words = text.split(";")
    facts = dict(zip(words[::2], words[1::2], strict=False))
    port = facts.get("tcp", "")
    if re.fullmatch(r"[0-9]{1,5}", port) and 0 < int(port) < 65536:
        return int(port)
    raise SqlUnreachable(
        f"{where}: SQL Server Browser returns no TCP port for the instance.",
        fix=(
            "Check that it is started, and that TCP/IP is enabled for it (SQL Server Configuration Manager)."
        ),
    )


Encrypt = Literal["mandatory", "strict", "no"]


@dataclass(frozen=True)
class SqlServer:
    """How to reach one SQL Server.

    `encrypt` uses the values of Microsoft's driver: `mandatory` requires an encrypted session, `strict` is
    TDS 8 (SQL Server 2022 and later, msodbcsql18), `no` encrypts only the login, if the server does. The
    certificate is verified with `ca_file`, else the system's CAs, unless `trust_server_certificate` is set.
    With `kerberos` a ticket logs in, without user and password: the environment's.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    driver: Driver
    encrypt: Encrypt = "mandatory"
    trust_server_certificate: bool = False
    ca_file: str | None = None
    kerberos: bool = False
    instance: str = ""
    """A named instance, whose port SQL Server Browser gives at each login; `port` is then ignored."""
    node_ports: tuple[int, ...] = ()
    """Further ports of this server for mapping to NUMA nodes; if empty, a study names them."""
    logins: Logins | None = field(default=None, repr=False, compare=False)
    """Where the run's processes count refused logins; None: they are not counted."""

    @property
    def where(self) -> str:
        """Host and port, or host and instance, for messages."""
        return f"{self.host}\\{self.instance}" if self.instance else f"{self.host}:{self.port}"

    @property
    def spn(self) -> str:
        """The service principal name that Kerberos tickets are for.

        https://learn.microsoft.com/sql/database-engine/configure-windows/register-a-service-principal-name-for-kerberos-connections
        """
        return f"MSSQLSvc/{self.host}:{self.port}"

    @property
    def account(self) -> str:
        """Server and login, as the key for counting refusals."""
        return f"SQL Server {self.where} {self.user}"

    @property
    def encryption(self) -> str:
        """What is encrypted, as text. Encryption costs time, so times with different encryption are not
        compared.
        """
        if self.encrypt == "no":
            return "the login at most"
        return f"{self.encrypt}, certificate {'verified' if self.verified else 'NOT verified'}"

    @property
    def verified(self) -> bool:
        """Whether only the server named by the certificate can read and answer what is sent."""
        return self.encrypt != "no" and not self.trust_server_certificate


APPLICATION = "vnuma"

_VERIFIES_SINCE = (1, 0)
"""Since this version FreeTDS verifies a CA and the name, and refuses a server without encryption.
https://www.freetds.org/userguide/freetdsconf.html
"""


def connection_string(server: SqlServer, database: str) -> str:
    """The ODBC connection string. It contains the password: never log it."""
    options = _freetds(server) if server.driver.kind == "freetds" else _microsoft(server)
    options |= {"DATABASE": database, "APP": APPLICATION}
    if server.kerberos:  # drivers otherwise derive the SPN from different DNS names of the host
        options |= {"Trusted_Connection": "yes", "ServerSPN": server.spn}
    else:
        options |= {"UID": server.user, "PWD": server.password}
    braced = _braced_freetds if server.driver.kind == "freetds" else _braced
    pairs = {"DRIVER": server.driver.name, **options}.items()
    # FreeTDS reads the last value's closing brace as part of it unless a semicolon follows.
    return "".join(f"{name}={braced(value)};" for name, value in pairs)


def driver_files(server: SqlServer) -> tuple[str, str]:
    """What the driver reads from files: CAs in PEM, and a section of freetds.conf, empty for Microsoft's.

    Both may be empty. Microsoft's driver uses OpenSSL, whose variable SSL_CERT_FILE applies to the process:
    CAs of one server are then trusted for all servers of that driver. Raises DriverMissing for one that
    cannot verify, InputError and EnvironmentProblem. https://docs.openssl.org/3.0/man7/openssl-env/
    """
    ca = read_ca(server.ca_file) if server.ca_file and not server.trust_server_certificate else ""
    if server.driver.kind != "freetds":
        return ca, ""
    lines = {
        "host": server.host,
        "port": server.port,
        "tds version": "7.4",
        "encryption": "request" if server.encrypt == "no" else "require",
    }
    if server.encrypt != "no":
        _require_verification(server.driver)
    if server.verified:
        lines |= {"ca file": CA_PLACE if ca else "system", "check certificate hostname": "yes"}
    section = "".join(f"\t{name} = {value}\n" for name, value in lines.items())
    return ca if server.verified else "", f"[{_section_name(server)}]\n{section}"


def _section_name(server: SqlServer) -> str:
    """The server's section in freetds.conf. Raises InputError for a host with invalid characters."""
    if not re.fullmatch(r"[\w.:%\-]{1,200}", server.host):
        raise InputError(f"{server.host!r} is not a valid host name.", fix="Correct vnuma_sql.host.")
    facts = (server.host, server.port, server.encrypt, server.verified, server.ca_file)
    return "vnuma-" + hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _require_verification(driver: Driver) -> None:
    found = tuple(int(part) for part in driver.version.split(".")) if driver.version else ()
    if not found and driver.path:
        try:
            ctypes.CDLL(driver.path)
        except OSError as error:
            raise driver_not_loaded(error) from error
    if found < _VERIFIES_SINCE:
        raise DriverMissing(
            f"FreeTDS {driver.version or 'of an unknown version'} ({driver.path or driver.name}) may "
            "not verify a server's certificate, so vnuma does not log in with it.",
            fix=(
                "Install FreeTDS 1.0 or later, or msodbcsql18; vnuma_sql.driver can name a library by its "
                "path."
            ),
        )


def _microsoft(server: SqlServer) -> dict[str, str]:
    if server.encrypt == "strict" and server.driver.kind != "msodbcsql18":
        raise _no_strict(server.driver)
    return {
        "SERVER": f"tcp:{server.host},{server.port}",
        "Encrypt": {"mandatory": "yes", "strict": "strict", "no": "no"}[server.encrypt],
        "TrustServerCertificate": "yes" if server.trust_server_certificate else "no",
        # A silent reconnection would lose SET STATISTICS TIME and so the measurement.
        "ConnectRetryCount": "0",
    }


def _freetds(server: SqlServer) -> dict[str, str]:
    """FreeTDS takes the trusted CAs only from a section of freetds.conf, and then also the
    server's address.
    """
    if server.encrypt == "strict":
        raise _no_strict(server.driver)
    return {"Servername": _section_name(server), "ClientCharset": "UTF-8"}


def _no_strict(driver: Driver) -> DriverMissing:
    return DriverMissing(
        f"encrypt: strict needs msodbcsql18, but the driver found is {driver}.",
        fix="Install msodbcsql18, or set encrypt: mandatory.",
    )


def _braced(value: str) -> str:
    """A value in braces as ODBC defines it: only a closing brace is special, and it is doubled."""
    return "{" + value.replace("}", "}}") + "}"


def _braced_freetds(value: str) -> str:
    """A value in braces as FreeTDS reads it: it ends at the first `};`, without any escaping."""
    if "};" in value:
        raise InputError(
            "FreeTDS cannot pass on a name or password that contains the characters };",
            fix="Choose different ones, or install msodbcsql18.",
        )
    return "{" + value + "}"


CA_PLACE = "{ca}"
"""Placeholder in a section of freetds.conf for the path of the CA file."""

_FREETDS = "FREETDSCONF"
_OPENSSL = "SSL_CERT_FILE"


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


def install(ca: str, section: str) -> None:
    """Make `driver_files` available to this process's drivers."""
    with _lock:
        if _kept.process != os.getpid():  # a fork: its parent's files may be removed first
            _kept.begin()
        if section:
            _kept.add(_FREETDS, section.replace(CA_PLACE, _kept.path(ca) if ca else "system"))
        elif ca:
            _kept.add(_OPENSSL, ca)


class _TemporaryFiles:
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


_kept = _TemporaryFiles()
_lock = threading.Lock()


MOST_REFUSALS = 3
"""Logins that are refused in a row before the account is left alone: domains lock it after three to ten."""

_NOT_TRUSTED = 18452
"""SQL Server could not accept a ticket.
https://learn.microsoft.com/sql/relational-databases/errors-events/mssqlserver-18452-database-engine-error"""


@contextmanager
def connect(
    server: SqlServer,
    database: str = "master",
    login_timeout_s: float = 5,
    statement_timeout_s: float = STATEMENT_TIMEOUT_S,
) -> Iterator[pyodbc.Connection]:
    """A connection that is closed at the end of the `with`.

    Autocommit is on, since a transaction would add requests to a timing. An account that was refused
    MOST_REFUSALS times in a row is not tried again in this run.

    Raises SqlUnreachable, LoginRefused, CertificateRejected, DriverMissing or ServerError, also for the
    driver's errors inside the `with`; EnvironmentProblem for an unusable CA file.
    """
    if server.logins:
        server.logins.require_open(server.account)

    until, asked = time.monotonic() + login_timeout_s, server

    def prepare() -> tuple[frozenset[Address], str]:
        nonlocal server
        server = located(asked, until - time.monotonic())
        install(*driver_files(server))
        return addresses_of(server.host, server.port), connection_string(server, database)

    try:
        connection, sockets = log_in(prepare, login_timeout_s)
    except pyodbc.Error as error:
        raise _not_logged_in(server, asked, error, until - time.monotonic()) from error
    except LoginTimeoutError as error:
        raise SqlUnreachable(
            f"{asked.where}: SQL Server does not answer: {error}.",
            fix="Check whether the guest is up or frozen: its console, and SQL Server's error log."
            + (" Or the KDC is silent: check its port 88." if asked.kerberos else ""),
        ) from error
    if asked.logins:
        asked.logins.accepted(asked.account)
    try:
        with known(connection, Link(asked.where, sockets, statement_timeout_s)):
            yield connection
    except pyodbc.Error as error:
        raise translate(error, asked.where) from error
    finally:
        with suppress(pyodbc.Error):  # the server may be gone already, and nothing is left to close
            connection.close()


def located(server: SqlServer, timeout_s: float) -> SqlServer:
    """The server with its present port. Raises SqlUnreachable."""
    if not server.instance:
        return server
    return replace(server, port=port_of(server.host, server.instance, timeout_s), instance="")


def _not_logged_in(server: SqlServer, asked: SqlServer, error: pyodbc.Error, left_s: float) -> VnumaError:
    """The error for a failed login. FreeTDS gives no reason for refusing a server's encryption, so we check
    it.
    """
    ours = translate(error, asked.where)
    if server.kerberos and _NOT_TRUSTED in natives(error):
        return ticket_refused(asked.where, server.spn, sentence(error))
    if counts_against_account(error):
        return _counted(asked, windows_account_refused(asked.where, error, tickets=server.kerberos) or ours)
    silent = server.driver.kind == "freetds" and natives(error)[:1] == (0,)
    if silent and server.encrypt != "no" and left_s > 0:
        verified = server.verified
        ours = why_refused(server.host, server.port, server.ca_file, left_s, verified=verified) or ours
    if server.kerberos and (silent or isinstance(ours, LoginRefused)):
        return no_login(asked.where, server.spn, sentence(error))
    return ours


def _counted(server: SqlServer, error: VnumaError) -> VnumaError:
    """The error for a refused login; AccountRefused at the last one that this run tries."""
    if server.logins is None or not isinstance(error, LoginRefused):
        return error
    with server.logins.alone(server.account):
        return server.logins.refused(server.account, error, MOST_REFUSALS, password=not server.kerberos)
