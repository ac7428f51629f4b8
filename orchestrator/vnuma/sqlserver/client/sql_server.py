"""One SQL Server: where it is, and how to log in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from vnuma.logins import Logins
from vnuma.sqlserver.client.driver import Driver

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
