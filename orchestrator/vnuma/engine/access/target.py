"""Where a VM or machine is reached, as an inventory describes it: for a VM, its vCenter and SQL Server.

Secrets stand here as references only; `vnuma.engine.access.secrets` turns a reference into its value.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, PrivateAttr, SecretStr, ValidationError, field_validator, model_validator

from vnuma.domain.arm.arm import Strict
from vnuma.domain.vm.endpoint import Identity, plain
from vnuma.errors import InputError


class Secret(Strict):
    """A reference to a secret: an environment variable, a file, a key in an Ansible Vault file, a command.

    `given` names the inventory variable whose template or vault value is the secret. That value stays in
    the memory of the process that read the inventory: no document that is written shows it.
    """

    env: str | None = None
    file: str | None = None
    vault: str | None = None
    key: str | None = None
    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    given: str | None = None
    _value: SecretStr | None = PrivateAttr(default=None)

    @classmethod
    def of_value(cls, value: str, given: str) -> Secret:
        """The secret that the inventory variable `given` has come to."""
        secret = cls(given=given)
        secret._value = SecretStr(value)
        return secret

    @model_validator(mode="before")
    @classmethod
    def _is_a_reference(cls, data: object) -> object:
        """The password itself, written where its reference belongs, is refused and never repeated."""
        return data if isinstance(data, dict | Secret) else {}

    @model_validator(mode="after")
    def _exactly_one(self) -> Secret:
        sources = (self.env, self.file, self.vault, self.command, self.given)
        if sum(source is not None for source in sources) != 1:
            raise ValueError(
                "a password is a reference: {env: NAME}, {file: PATH}, {vault: FILE, key: NAME} or "
                "{command: [PROGRAM, ARGUMENT]}; or a lookup or a vault value, never plain text"
            )
        if (self.vault is None) != (self.key is None):
            raise ValueError("a vault reference has both parts: {vault: FILE, key: NAME}")
        return self

    @property
    def given_value(self) -> str | None:
        """The value of a `given` secret; None where it is not known."""
        return None if self._value is None else self._value.get_secret_value()

    @property
    def name(self) -> str:
        """How messages and the private file call it; never its value."""
        if self.env:
            return f"env:{self.env}"
        if self.file:
            return f"file:{self.file}"
        if self.command:
            return f"command:{shlex.join(self.command)}"
        return f"vault:{self.vault}#{self.key}" if self.vault else f"given:{self.given}"


_PROXY = re.compile(r"(?:http://)?(?P<host>[^\s/{}@?#\\:]+):(?P<port>[1-9]\d{0,4})/?")


class VCenterTarget(Strict):
    """A vCenter, or one ESXi host."""

    host: str
    port: int = 443
    user: str = ""
    password: Secret | None = None
    session: Secret | None = None
    """The cookie of an open session, where no password can log in: federated sign-on with a second factor."""
    proxy: str | None = None
    ca_file: str | None = None
    verify_tls: bool = True

    @field_validator("host")
    @classmethod
    def _is_a_host(cls, host: str) -> str:
        """What is left of a template, or a URL, would only fail once it is connected to."""
        if not re.fullmatch(r"[^\s/{}@?#\\]+", host):
            raise ValueError(f"'{host}' is not a valid host: give a name or an address alone")
        return host

    @field_validator("proxy")
    @classmethod
    def _is_a_proxy(cls, proxy: str | None) -> str | None:
        if proxy is not None and not _PROXY.fullmatch(proxy):
            raise ValueError(f"'{proxy}' is not a valid proxy: give HOST:PORT, of one that asks for no login")
        return proxy

    @model_validator(mode="after")
    def _has_one_way_to_log_in(self) -> VCenterTarget:
        if self.session and (self.user or self.password):
            raise ValueError("give user and password, or session, not both")
        if not self.session and not (self.user and self.password):
            raise ValueError("give user and password, or session: the reference to an open session's cookie")
        return self

    @property
    def proxy_address(self) -> tuple[str, int] | None:
        """The proxy's host and port."""
        found = _PROXY.fullmatch(self.proxy or "")
        return (found["host"], int(found["port"])) if found else None

    @property
    def secret(self) -> Secret:
        """What opens a session: the password, or the session's own cookie."""
        found = self.session or self.password
        assert found is not None  # the validator has seen to it
        return found


class GuestAddress(Strict):
    """The address that SQL Server has itself, where the guest does not show it: in a container, say."""

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
        """Drivers have it by the keyword Authentication, which somebody may carry over."""
        if isinstance(data, dict) and "authentication" in {str(name).casefold() for name in data}:
            raise ValueError(
                "a login by Entra ID (Azure Active Directory) is not supported: give a SQL login (user and "
                "password), or kerberos: true"
            )
        return data

    @model_validator(mode="after")
    def _one_way_to_its_port(self) -> SqlTarget:
        if "\\" in self.host or "," in self.host:
            raise ValueError(
                "host is a name or address alone: a named instance goes into instance, a port into port"
            )
        if self.instance and self.port != SqlTarget.model_fields["port"].default:
            raise ValueError("give port or instance: SQL Server Browser is asked for an instance's port")
        return self

    @field_validator("encrypt", mode="before")
    @classmethod
    def _in_microsofts_words(cls, value: object) -> object:
        """`yes` and `no` are booleans to YAML, and Microsoft's driver has two words for each."""
        word = value.casefold() if isinstance(value, str) else value
        if word == "optional":
            raise ValueError(
                "optional is no longer taken: it sends the password in the clear to whoever says that it "
                "cannot encrypt. write mandatory, with ca_file for a CA of your own; or no, if that is meant"
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
        """One sentence for whatever is wrong with it: pydantic would tell of each form."""
        if isinstance(given, GuestAddress) or given in ("guest_address", "power_cycle"):
            return given
        address = given.get("address") if isinstance(given, dict) and len(given) == 1 else None
        try:
            return GuestAddress(address=plain(str(address)))
        except ValueError:
            raise ValueError("give guest_address, power_cycle, or {address: IP}") from None

    @property
    def known_by(self) -> Identity:
        """What proves that a server runs in this VM, besides its power-cycle."""
        if isinstance(self.identity, GuestAddress):
            return Identity(address=self.identity.address)
        return Identity(power_cycle_only=self.identity == "power_cycle")


class Target(Strict):
    """One VM of an inventory."""

    name: str
    vm: str
    vcenter: VCenterTarget
    sql: SqlTarget
    test_clone: bool = Field(default=False)
    require_tag: str | None = None
    """The vSphere tag without which the VM may not be changed, as `CATEGORY:NAME`."""

    @field_validator("require_tag")
    @classmethod
    def _is_a_tag(cls, given: str | None) -> str | None:
        if not given:  # a role hands on an empty text
            return None
        if not is_tag(given):
            raise ValueError(f"'{given}' is not a valid vSphere tag: CATEGORY:NAME")
        return given


def is_tag(text: str) -> bool:
    """Whether a text names a vSphere tag with its category."""
    category, _, name = text.partition(":")
    return bool(category.strip() and name.strip())


MACHINE_KEY = "linux/"
"""How the keys of machines begin that a store identifies them by; a VM's begins with its vCenter."""


def is_machine(key: str) -> bool:
    """Whether a store's key names a Linux machine."""
    return key.startswith(MACHINE_KEY)


class Machine(Strict):
    """A Linux machine of an inventory, measured as it is and reached by Ansible's own connection."""

    name: str


AnyTarget = Target | Machine


def in_vcenter(target: AnyTarget) -> Target:
    """The target as a VM. Raises InputError for a machine that no vCenter knows."""
    if isinstance(target, Target):
        return target
    raise InputError(
        f"{target.name} is a machine without a vCenter: it can be neither shaped nor asked for SQL Server.",
        fix="Give it vnuma_vcenter and vnuma_sql in the inventory.",
    )


def target_from(name: str, variables: Mapping[str, object], where: str) -> Target:
    """Build a target from inventory variables vnuma_vcenter, vnuma_sql and vnuma_vm.

    Raises InputError naming the host, the variable and what is wrong with it.
    """
    fields = {
        "name": name,
        "vm": variables.get("vnuma_vm", name),
        "vcenter": variables.get("vnuma_vcenter", {}),
        "sql": variables.get("vnuma_sql", {}),
        "test_clone": variables.get("vnuma_test_clone", False),
        "require_tag": variables.get("vnuma_require_tag"),
    }
    try:
        return Target.model_validate(fields)
    except ValidationError as error:
        lines = []
        for item in error.errors():
            path = ".".join(f"vnuma_{step}" if i == 0 else str(step) for i, step in enumerate(item["loc"]))
            why = str(item["msg"]).removeprefix("Value error, ")
            lines.append(f"{where}: host {name}: {path}: {why[:1].lower()}{why[1:]}.")
        raise InputError("\n".join(lines), fix="inventories/example shows every variable.") from None
