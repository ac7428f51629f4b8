"""What an ODBC driver takes for a login: its connection string, and the files that it reads."""

from __future__ import annotations

import ctypes
import hashlib
import re

from vnuma.errors import DriverMissing, InputError
from vnuma.sqlserver.client.driver import Driver
from vnuma.sqlserver.client.driver_files import CA_PLACE, DriverFiles, read_ca
from vnuma.sqlserver.client.failures import driver_not_loaded
from vnuma.sqlserver.client.sql_server import SqlServer

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


def driver_files(server: SqlServer) -> DriverFiles:
    """What the driver reads from files.

    Raises DriverMissing for one that cannot verify, InputError and EnvironmentProblem.
    """
    ca = read_ca(server.ca_file) if server.ca_file and not server.trust_server_certificate else ""
    if server.driver.kind != "freetds":
        return DriverFiles(ca)
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
    return DriverFiles(ca if server.verified else "", f"[{_section_name(server)}]\n{section}")


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
