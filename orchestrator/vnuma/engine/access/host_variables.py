"""A host's inventory variables, each templated only when it is read.

A password that comes from a lookup or a vault value becomes a secret that only this process knows. A
plain-text password stays as it is, and `Secret` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vnuma import lab
from vnuma.engine.access.secrets import FIX as VAULT_FIX
from vnuma.engine.access.secrets import Secret
from vnuma.errors import EnvironmentProblem, InputError, VnumaError
from vnuma.lab import LabMachine, LabState

if TYPE_CHECKING:
    from ansible.errors import AnsibleError
    from ansible.parsing.dataloader import DataLoader

_CONNECTIONS = ("vnuma_vcenter", "vnuma_sql")
_WAYS = "vnuma_notify"
_SECRETS = frozenset({"password", "session", "token", "url"})


class HostVariables(Mapping[str, object]):
    """The variables of one host. Reading one raises InputError or EnvironmentProblem that names it."""

    def __init__(
        self, where: Path, name: str, loader: DataLoader, read: Callable[[], dict[str, Any]]
    ) -> None:
        self._where, self._name, self._loader, self._read = where, name, loader, read

    def __getitem__(self, variable: str) -> object:
        value = self._value(variable, self._raw[variable])
        if variable in _CONNECTIONS and isinstance(value, dict):
            raw = self._raw[variable]
            return with_secrets(value, self._name, variable, raw if isinstance(raw, Mapping) else {})
        if variable == _WAYS and isinstance(value, list):
            written = dict(_parts(self._raw[variable]))
            return [
                self._way(f"{variable}.{number}", way, written.get(number))
                for number, way in enumerate(value)
            ]
        return native(value)

    def _way(self, path: str, way: object, written: object) -> object:
        """A notification channel, whose mail or webhook has a secret."""
        if not isinstance(way, Mapping):
            return native(way)
        raw = {kind: part for kind, part in _parts(written) if isinstance(part, Mapping)}
        return {
            str(kind): with_secrets(given, self._name, f"{path}.{kind}", raw.get(kind))
            if isinstance(given, Mapping)
            else native(given)
            for kind, given in way.items()
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __contains__(self, variable: object) -> bool:
        return variable in self._raw

    @cached_property
    def _raw(self) -> dict[str, Any]:
        from ansible.errors import AnsibleError  # noqa: PLC0415 - a second: only inventories need it

        try:
            return self._read()
        except AnsibleError as error:
            raise unreadable(self._where, error) from error

    @cached_property
    def _templar(self) -> Any:
        from ansible.template import Templar  # noqa: PLC0415 - as above

        return Templar(loader=self._loader, variables=self._raw)

    def _value(self, path: str, raw: object) -> object:
        """The value of a variable. An error inside a mapping or list names the path to it."""
        from ansible.errors import AnsibleError  # noqa: PLC0415 - as above

        try:
            return self._templar.template(raw)
        except AnsibleError as error:
            for step, part in _parts(raw):
                self._value(f"{path}.{step}", part)
            raise _not_templated(f"{self._where}: host {self._name}: {path}", error) from None


def _parts(raw: object) -> Iterable[tuple[object, object]]:
    if isinstance(raw, Mapping):
        return raw.items()
    return enumerate(raw) if isinstance(raw, list) else ()


def with_secrets(
    value: Mapping[str, Any], host: str, variable: str, written: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A connection variable with passwords from templates and vault values turned into secrets.

    `written` is the variable before templating, where known.
    """
    plain: dict[str, Any] = native({key: item for key, item in value.items() if key not in _SECRETS})
    for key in _SECRETS & value.keys():
        given = value[key]
        hidden = isinstance(given, str) and not _is_plain_text(given, (written or {}).get(key))
        plain[key] = (
            Secret.of_value(str(native(given)), f"{variable}.{key} of {host}") if hidden else native(given)
        )
    return plain


def _is_plain_text(password: str, written: object) -> bool:
    """Whether a password is plain text in an inventory file.

    Ansible marks such text as trusted for templating, but not the result of a template or a vault value. Text
    of a fully encrypted file and extra variables are not plain text.
    https://docs.ansible.com/ansible/latest/porting_guides/porting_guide_core_2.19.html
    """
    # Nothing public in 2.19 names a value's file: is_trusted_as_template is true of a script's output too,
    # AnsibleError(obj=value) shows it only on the display, and the filter _protomatter.origin is private.
    from ansible._internal._datatag._tags import Origin  # noqa: PLC0415 - as above
    from ansible.parsing.vault import EncryptedString, VaultHelper  # noqa: PLC0415
    from ansible.template import is_trusted_as_template  # noqa: PLC0415

    if VaultHelper.get_ciphertext(password, with_tags=False):
        return False
    unsafe = isinstance(written, str) and not isinstance(written, EncryptedString) and written == password
    if not (unsafe or is_trusted_as_template(password)):
        return False
    origin = Origin.get_tag(password)
    return origin is None or (origin.path is not None and not _kept_apart(Path(origin.path)))


def _kept_apart(file: Path) -> bool:
    from ansible import context  # noqa: PLC0415 - as above
    from ansible.parsing.vault import is_encrypted_file  # noqa: PLC0415

    extra = [str(given).removeprefix("@") for given in context.CLIARGS.get("extra_vars", ())]
    if file in [Path(given).absolute() for given in extra]:
        return True
    try:
        with file.open("rb") as stream:
            return bool(is_encrypted_file(stream))
    except OSError:
        return False


def native(value: object) -> Any:
    """A value without Ansible's tags."""
    if isinstance(value, Mapping):
        return {native(key): native(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [native(item) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value) if isinstance(value, int) else float(value)
    return value


def unreadable(inventory: Path, error: AnsibleError) -> VnumaError:
    """The error for an inventory that Ansible cannot read."""
    if NO_LAB in str(error.message):
        return EnvironmentProblem(
            f"The inventory {inventory} is the lab's, and no lab runs.", fix="vnuma lab up"
        )
    what = f"The inventory {inventory} cannot be read: {_reason(error)}."
    if _of_vault(error):
        return EnvironmentProblem(what, fix=VAULT_FIX)
    return InputError(what, fix=f"ansible-inventory --list -i {inventory}")


def _not_templated(where: str, error: AnsibleError) -> VnumaError:
    """The error for a variable that cannot be resolved: EnvironmentProblem for a failed lookup or vault."""
    what = f"{where} cannot be resolved: {_reason(error)}."
    if "lookup plugin" in what:
        return EnvironmentProblem(what, fix="Test it: ansible localhost -m debug -a 'msg={{ lookup(...) }}'")
    if _of_vault(error):
        return EnvironmentProblem(what, fix=VAULT_FIX)
    return InputError(what, fix="Correct the template, or define the variable that it names.")


def _of_vault(error: BaseException | None) -> bool:
    """Whether a vault password is missing or wrong. Ansible may keep only the message, not the type."""
    from ansible.parsing.vault import AnsibleVaultError  # noqa: PLC0415 - as above

    if error is None:
        return False
    known = any(words in str(error) for words in ("vault password", "vault secret", "undecryptable"))
    return known or isinstance(error, AnsibleVaultError) or _of_vault(error.__cause__ or error.__context__)


def _reason(error: AnsibleError) -> str:
    words = " ".join(str(error.message).split()).rstrip(".")
    line = getattr(error.obj, "line_num", None)  # what stands for a failed vault value has any attribute
    return f"line {line}: {words}" if isinstance(line, int) and line else words


Hosts = dict[str, dict[str, Any]]

NO_LAB = "No lab is running."
"""How the inventory plugin's error begins, by which it is known again."""


def lab_hosts() -> Hosts:
    """Inventory variables of the running lab's hosts by name; empty when no lab runs.

    If several VMs have the same name, their inventory names include the folder.
    """
    state = lab.status()
    if state is None:
        return {}
    machines = {one.name: machine_variables(one) | shaped_by(state, one.vm) for one in state.machines}
    return _vms(state) | machines


def _vms(state: LabState) -> Hosts:
    password = {"file": str(state.password_file)}
    names = [vm.name for vm in state.vms]
    return {
        (vm.name if names.count(vm.name) == 1 else vm.path.strip("/").replace("/", "_")): {
            **shaped_by(state, vm.path),
            "vnuma_sql": {
                "host": vm.sql_host,
                "port": vm.sql_port,
                "user": vm.sql_user,
                "node_ports": list(vm.node_ports),
                "password": password,
                "ca_file": str(state.ca_file),
            },
        }
        for vm in state.vms
    }


def shaped_by(state: LabState, path: str | None) -> dict[str, Any]:
    """How the VM at that path is shaped; nothing for a machine outside vCenter."""
    if not path:
        return {}
    vcenter = {"host": state.host, "port": state.port, "user": state.user, "ca_file": str(state.ca_file)}
    password = {"file": str(state.password_file)}
    return {
        "vnuma_vm": path,
        "vnuma_vcenter": vcenter | {"password": password},
        "vnuma_test_clone": True,
    }


def machine_variables(machine: LabMachine) -> dict[str, Any]:
    """How Ansible's connection reaches it; the user's own SSH configuration is ignored."""
    return {
        "ansible_host": machine.host,
        "ansible_port": machine.port,
        "ansible_user": machine.user,
        "ansible_ssh_private_key_file": str(machine.key_file),
        "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={machine.known_hosts} "
        "-o GlobalKnownHostsFile=/dev/null -o IdentitiesOnly=yes",
    }
