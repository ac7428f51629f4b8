"""How an inventory describes a VM's vCenter and its SQL Server."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from vnuma.domain.vm.endpoint import Identity, plain
from vnuma.engine.access.secrets import Secret
from vnuma.words.validation import Strict

_PROXY = re.compile(r"(?:http://)?(?P<host>[^\s/{}@?#\\:]+):(?P<port>[1-9]\d{0,4})/?")


class VCenterTarget(Strict):
    """A vCenter, or one ESXi host."""

    host: str
    port: int = 443
    user: str = ""
    password: Secret | None = None
    session: Secret | None = None
    """The cookie of an open session, for sites with federated sign-on where passwords cannot log in."""
    token: Secret | None = None
    """A SAML bearer token from single sign-on."""
    proxy: str | None = None
    ca_file: str | None = None
    verify_tls: bool = True

    @field_validator("host")
    @classmethod
    def _is_a_host(cls, host: str) -> str:
        """Refuse unresolved templates and URLs, which would fail only at the connection."""
        if not re.fullmatch(r"[^\s/{}@?#\\]+", host):
            raise ValueError(f"'{host}' is not a valid host: give only a name or an address")
        return host

    @field_validator("proxy")
    @classmethod
    def _is_a_proxy(cls, proxy: str | None) -> str | None:
        if proxy is not None and not _PROXY.fullmatch(proxy):
            raise ValueError(f"'{proxy}' is not a valid proxy: give HOST:PORT of a proxy without a login")
        return proxy

    @model_validator(mode="after")
    def _has_one_way_to_log_in(self) -> VCenterTarget:
        ways = [bool(self.session), bool(self.token), bool(self.user or self.password)]
        if sum(ways) > 1:
            raise ValueError("give user and password, or token, or session: only one of them")
        if not any(ways) or (ways[2] and not (self.user and self.password)):
            raise ValueError(
                "give user and password, or token (a reference to a SAML token), or session (a reference to "
                "an open session's cookie)"
            )
        return self

    @property
    def proxy_address(self) -> tuple[str, int] | None:
        """The proxy's host and port."""
        found = _PROXY.fullmatch(self.proxy or "")
        return (found["host"], int(found["port"])) if found else None

    @property
    def secret(self) -> Secret:
        """The secret that opens a session: the password, a token or a session cookie."""
        found = self.session or self.token or self.password
        assert found is not None  # the validator requires exactly one
        return found


class GuestAddress(Strict):
    """SQL Server's own address where the guest does not report it, for example in a container."""

    address: str


class SqlTarget(Strict):
    """The SQL Server inside the VM."""

    host: str
    port: int = 1433
    user: str = ""
    password: Secret | None = None
    kerberos: bool = False
    encrypt: Literal["mandatory", "strict", "no"] = "mandatory"
    trust_server_certificate: bool = False
    ca_file: str | None = None
    instance: str = Field(default="", pattern=r"^[\x21-\x5b\x5d-\x7e]{0,16}$")
    driver: str = "auto"
    node_ports: tuple[int, ...] = ()
    identity: Literal["guest_address", "power_cycle"] | GuestAddress = "guest_address"

    @model_validator(mode="before")
    @classmethod
    def _no_entra_id(cls, data: object) -> object:
        """Refuse ODBC's Authentication keyword for Entra ID, which people copy from connection strings."""
        if isinstance(data, dict) and "authentication" in {str(name).casefold() for name in data}:
            raise ValueError(
                "logins by Entra ID (Azure Active Directory) are not supported: give a SQL login (user "
                "and password), or kerberos: true"
            )
        return data

    @model_validator(mode="after")
    def _one_way_to_its_port(self) -> SqlTarget:
        if "\\" in self.host or "," in self.host:
            raise ValueError(
                "host must be only a name or an address: put a named instance into instance, a port into port"
            )
        if self.instance and self.port != SqlTarget.model_fields["port"].default:
            raise ValueError("give port or instance: SQL Server Browser is asked for an instance's port")
        return self

    @field_validator("encrypt", mode="before")
    @classmethod
    def _in_microsofts_words(cls, value: object) -> object:
        """Accept YAML's booleans for `yes` and `no`, and the two words Microsoft's driver has for each."""
        word = value.casefold() if isinstance(value, str) else value
        if word == "optional":
            raise ValueError(
                "optional is no longer accepted: it sends the password in the clear to any server that "
                "claims it cannot encrypt. Write mandatory, with ca_file for your own CA; or no, if "
                "you want no encryption"
            )
        return {True: "mandatory", "yes": "mandatory", "true": "mandatory", False: "no", "false": "no"}.get(
            word, word
        )

    @model_validator(mode="after")
    def _has_a_way_to_log_in(self) -> SqlTarget:
        if not self.kerberos and not (self.user and self.password):
            raise ValueError("give user and password, or kerberos: true")
        return self

    @field_validator("identity", mode="before")
    @classmethod
    def _is_an_identity(cls, given: object) -> object:
        """Report one error for an invalid identity; pydantic would report one for each form."""
        if isinstance(given, GuestAddress) or given in ("guest_address", "power_cycle"):
            return given
        address = given.get("address") if isinstance(given, dict) and len(given) == 1 else None
        try:
            return GuestAddress(address=plain(str(address)))
        except ValueError:
            raise ValueError("give guest_address, power_cycle, or {address: IP}") from None

    @property
    def known_by(self) -> Identity:
        """What proves, besides a power-cycle, that a server runs in this VM."""
        if isinstance(self.identity, GuestAddress):
            return Identity(address=self.identity.address)
        return Identity(power_cycle_only=self.identity == "power_cycle")
