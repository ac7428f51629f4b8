"""How to reach a target, as the inventory says: its vCenter and its SQL Server, if it has them.

Secrets are references here; `vnuma.engine.access.secrets` resolves them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from vnuma.domain.vm.endpoint import Identity, plain
from vnuma.engine.access.secrets import Secret
from vnuma.errors import InputError
from vnuma.words.validation import Strict, message

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


UNSHAPED = "linux/"
"""Prefix of the store's keys for targets without a hypervisor; a VM's key begins with its vCenter."""


class Target(Strict):
    """A host of an inventory, in two parts: the hypervisor that shapes it, and its guest.

    Without `vcenter` nothing shapes it. Its guest is reached at SQL Server (`sql`), and by Ansible's own
    connection.
    """

    name: str
    vm: str = ""
    """Name or path of the VM in vCenter."""
    vcenter: VCenterTarget | None = None
    sql: SqlTarget | None = None
    test_clone: bool = False
    require_tag: str | None = None
    """The vSphere tag that the VM must have before it may be changed, as `CATEGORY:NAME`."""
    site: str | None = None
    """Its site (vnuma_site); None: the controller reaches it."""

    @field_validator("require_tag")
    @classmethod
    def _is_a_tag(cls, given: str | None) -> str | None:
        if not given:  # roles pass an empty string
            return None
        if not is_tag(given):
            raise ValueError(f"'{given}' is not a valid vSphere tag: CATEGORY:NAME")
        return given

    @field_validator("vcenter", "sql", mode="before")
    @classmethod
    def _is_stated(cls, given: object) -> object:
        return given or None  # roles pass an empty mapping

    @property
    def hypervisor(self) -> VCenterTarget:
        """The vCenter that shapes it. Raises InputError where none does."""
        if self.vcenter is None:
            raise InputError(
                f"{self.name} has no vCenter: it cannot be shaped.",
                fix="Give it vnuma_vcenter in the inventory.",
            )
        return self.vcenter

    @property
    def server(self) -> SqlTarget:
        """The SQL Server in its guest. Raises InputError where there is none."""
        if self.sql is None:
            raise InputError(f"{self.name} has no SQL Server.", fix="Give it vnuma_sql in the inventory.")
        return self.sql

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The secrets that vnuma logs in with, without those of Ansible's own connection."""
        found = (self.vcenter and self.vcenter.secret, self.sql and self.sql.password)
        return tuple(secret for secret in found if secret)

    def variables(self) -> dict[str, Any]:
        """Its inventory variables, resolved."""
        document = self.model_dump(mode="json", exclude_none=True)
        return {f"vnuma_{name}": value for name, value in document.items() if name != "name" and value != ""}


def is_shaped(key: str) -> bool:
    """Whether the target that a store's key identifies has a hypervisor."""
    return not key.startswith(UNSHAPED)


def is_tag(text: str) -> bool:
    """Whether the text names a vSphere tag as CATEGORY:NAME."""
    category, _, name = text.partition(":")
    return bool(category.strip() and name.strip())


_OF_HOSTS = (
    *("vnuma_vm", "vnuma_vcenter", "vnuma_sql", "vnuma_test_clone", "vnuma_require_tag"),
    *("vnuma_notify", "vnuma_site"),
)
_OF_PLAYS = (
    *("vnuma_study", "vnuma_run", "vnuma_hosts", "vnuma_max_cells", "vnuma_on_conflict"),
    *("vnuma_script", "vnuma_dataset_state", "vnuma_role", "vnuma_role_principal"),
    *("vnuma_admin_user", "vnuma_admin_password"),
)
"""Variables that the roles and playbooks take, which a group of the same inventory may set."""

_OF_AWX = "vnuma_awx_"
"""Prefix of the variables of the AWX objects."""

_RENAMED = {"vnuma_node": "vnuma_site"}

_ALIKE = 0.8
"""Similarity (difflib's ratio) from which a variable counts as a misspelling of one of ours."""


def refuse_unknown(name: str, variables: Iterable[str], where: str) -> None:
    """Raise InputError for an unknown vnuma variable: one that is misspelt, or that a version removed.

    Ignored silently, it could be a safety setting that somebody relies on.
    """
    known = (*_OF_HOSTS, *_OF_PLAYS)
    for variable in sorted(set(variables) - set(known)):
        if not variable.startswith("vnuma_") or variable.startswith(_OF_AWX):
            continue
        alike = difflib.get_close_matches(variable, _OF_HOSTS, n=1, cutoff=_ALIKE)
        meant = _RENAMED.get(variable) or next(iter(alike), None)
        raise InputError(
            f"{where}: host {name}: unknown variable {variable}."
            + (f" Did you mean {meant}?" if meant else ""),
            fix="Remove or rename it (docs/upgrade.md lists what was removed); "
            "names of your own must not begin with vnuma_.",
        )


def _what(item: ErrorDetails) -> str:
    """What is wrong with a field; for an unknown field also the most similar valid one."""
    if item["type"] != "extra_forbidden":
        return f"{message(item)}."
    sections: dict[object, type[Strict]] = {"vcenter": VCenterTarget, "sql": SqlTarget}
    known = sections.get(item["loc"][0], Target).model_fields
    close = difflib.get_close_matches(str(item["loc"][-1]), known, n=1)
    return (
        f"unknown field. Did you mean {close[0]}?" if close else f"unknown field (known: {', '.join(known)})."
    )


def target_from(name: str, variables: Mapping[str, object], where: str) -> Target:
    """Build a target from inventory variables vnuma_vcenter, vnuma_sql and vnuma_vm.

    Raises InputError with the host, the variable and the problem.
    """
    fields = {
        "name": name,
        "vm": variables.get("vnuma_vm", name),
        "vcenter": variables.get("vnuma_vcenter", {}),
        "sql": variables.get("vnuma_sql", {}),
        "test_clone": variables.get("vnuma_test_clone", False),
        "require_tag": variables.get("vnuma_require_tag"),
        "site": variables.get("vnuma_site"),
    }
    try:
        return Target.model_validate(fields)
    except ValidationError as error:
        lines = []
        for item in error.errors():
            path = ".".join(f"vnuma_{step}" if i == 0 else str(step) for i, step in enumerate(item["loc"]))
            lines.append(f"{where}: host {name}: {path}: {_what(item)}")
        raise InputError("\n".join(lines), fix="inventories/example shows every variable.") from None
