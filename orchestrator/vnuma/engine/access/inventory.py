"""Read an Ansible inventory: a study's VMs and how to reach them."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vnuma.domain.study.study import Study
from vnuma.engine.access.host_variables import HostVariables, unreadable
from vnuma.engine.access.secrets import vault_secrets
from vnuma.engine.access.target import Target, is_shaped, refuse_unknown, target_from
from vnuma.errors import InputError
from vnuma.workloads.caller_host import START
from vnuma.workloads.client import HERE, Client

if TYPE_CHECKING:
    from ansible.errors import AnsibleError
    from ansible.inventory.manager import InventoryManager
    from ansible.vars.manager import VariableManager

LOCAL = "localhost"
"""Ansible's implicit host: the machine it runs on, without an entry in any inventory."""


class Inventory:
    """An Ansible inventory, read once: when something of it is first asked for. Its text is its path.

    Everything raises InputError or EnvironmentProblem for an inventory that cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    @cached_property
    def _read(self) -> tuple[InventoryManager, VariableManager]:
        return _read(self.path)

    @cached_property
    def hosts(self) -> Mapping[str, HostVariables]:
        """Every host's variables, each templated whenever it is asked for."""
        manager, variables = self._read
        return {
            host.name: HostVariables(
                self.path, host.name, variables._loader, partial(variables.get_vars, host=host)
            )
            for host in manager.get_hosts()
        }

    def anew(self) -> Inventory:
        """As its files are now: a run may take days. As it was read, if they cannot be read any more."""
        now = Inventory(self.path)
        with suppress(Exception):  # not even a bug of a plugin may prevent a restore
            _ = now.hosts
            return now
        return self

    def targets(self, names: Iterable[str] | None = None) -> dict[str, Target]:
        """The targets by name; without `names`, all that have vnuma_vcenter.

        Raises InputError for a name that the inventory lacks.
        """
        if names is None:
            names = [name for name, variables in self.hosts.items() if "vnuma_vcenter" in variables]
        targets = {}
        for name in names:
            targets[name] = self._target(name)
            refuse_unknown(name, self.hosts.get(name, {}), str(self))
        return targets

    def _target(self, name: str) -> Target:
        self._require(
            {LOCAL, *self.hosts},
            name,
            f"{self} has no host named {name} (it has: {', '.join(sorted(self.hosts)) or 'none'}).",
            "Add it there, or choose another inventory: --inventory PATH",
        )
        return target_from(name, self.hosts.get(name, {}), str(self))

    @staticmethod
    def _require(known: Collection[str], name: str, what: str, fix: str) -> None:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise InputError(what, fix=f"Did you mean {close[0]}?" if close else fix)

    def study_targets(self, study: Study) -> dict[str, Target]:
        """The targets of a study. Raises InputError for one that lacks a part which the study needs."""
        targets, uses_sql = self.targets(study.vms), "sql_server" in study.workload.needs
        as_it_is = " To measure the guest as it is, name an inventory host without vnuma_vcenter."
        for target in targets.values():
            if study.shapes:
                _ = target.hypervisor
            elif target.vcenter:
                raise InputError(
                    f"{target.name} is a VM in a vCenter, but no arm of the study shapes it "
                    "(topology: keep).",
                    fix=f"Give each arm a topology.{'' if uses_sql else as_it_is}",
                )
            if uses_sql:
                _ = target.hypervisor, target.server
        return targets

    def stored_target(self, key: str, name: str) -> Target:
        """The target that a store's row identifies; one that nothing shapes needs no entry.

        Raises InputError. An unknown variable is not refused: it must not prevent a restore.
        """
        return self._target(name) if is_shaped(key) else Target(name=name)

    def connections(self, names: Collection[str]) -> dict[str, dict[str, object]]:
        """Ansible's connection variables by host; unknown hosts are left out."""
        of_ansible = {*self._read[1].get_vars(), "ansible_facts", "ansible_local"}
        return {
            name: {key: host[key] for key in host if key.startswith("ansible_") and key not in of_ansible}
            for name, host in self.hosts.items()
            if name in names
        }

    def client(self, name: str | None) -> Client:
        """The host of that name; this machine for None, or for `localhost` without an entry.

        Raises InputError for an unknown host, or one that Ansible reaches neither locally nor by SSH.
        """
        if name is None or (name == LOCAL and name not in self.hosts):
            return HERE
        self.require_client(name)
        return client_from(name, self.hosts[name])

    def require_client(self, name: str) -> None:
        """Raise InputError for a `workload.client` that the inventory does not have."""
        fix = "Add it with ansible_host, without vnuma_vcenter."
        if name == LOCAL:
            fix = "Name another machine: localhost is the one that vnuma runs on (P29)."
        self._require(self.hosts, name, f"{self} has no host {name}; workload.client names it.", fix)


def of_site(targets: Mapping[str, Target], site: str | None) -> dict[str, Target]:
    """The targets of this site; None: those that name none, which the controller reaches."""
    return {name: target for name, target in targets.items() if target.site == site}


def _read(inventory: Path) -> tuple[InventoryManager, VariableManager]:
    """Load the inventory with Ansible's own loader, including plugins, vault, host_vars and group_vars."""
    from ansible.errors import AnsibleError  # noqa: PLC0415 - a second: only commands that need it pay
    from ansible.inventory.manager import InventoryManager  # noqa: PLC0415
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415
    from ansible.vars.manager import VariableManager  # noqa: PLC0415

    if not inventory.exists():
        raise InputError(
            f"There is no inventory at {inventory}.",
            fix="Create one with vnuma init, or use --inventory PATH.",
        )
    with _plugin_errors() as told:
        try:
            _find_collections()
            loader = DataLoader()
            loader.set_vault_secrets(vault_secrets())
            manager = InventoryManager(loader=loader, sources=[str(inventory)])
            return manager, VariableManager(loader=loader, inventory=manager)
        except AnsibleError as error:
            raise unreadable(inventory, _decisive(told) or error) from error


@contextmanager
def _plugin_errors() -> Iterator[list[AnsibleError]]:
    """Collect each plugin's error for an unreadable source; Ansible would print all of them as warnings."""
    from ansible.inventory import manager  # noqa: PLC0415 - as above

    shown: Any = manager.display
    told: list[AnsibleError] = []

    class Quiet:
        """Ansible's display, except that it keeps plugins' errors."""

        def __getattr__(self, name: str) -> Any:
            return getattr(shown, name)

        def error_as_warning(self, msg: str, exception: AnsibleError) -> None:
            del msg
            told.append(exception)

    manager.display = Quiet()
    try:
        yield told
    finally:
        manager.display = shown


def _decisive(told: Iterable[AnsibleError]) -> AnsibleError | None:
    """The error of the plugin that the file was written for.

    For a file that names its plugin this is the first, from `auto`; for others, `auto` only reports that no
    plugin is named.
    """
    return next((error for error in told if "root 'plugin' key" not in str(error)), None)


@cache
def _find_collections() -> None:
    """Let Ansible find its collections: once per process, since it warns about a second call.

    From then on an unreadable source is an error and not a warning: its VMs would be missing.
    """
    from ansible import constants  # noqa: PLC0415 - as above
    from ansible.plugins.loader import init_plugin_loader  # noqa: PLC0415 - as above

    init_plugin_loader()
    constants.INVENTORY_ANY_UNPARSED_IS_FAILED = True


_SSH = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15")
"""No terminal, no prompts; gives up when the machine does not answer."""


def client_from(name: str, variables: Mapping[str, object]) -> Client:
    """Read from Ansible's variables how to reach a host. Passwords are ignored: nobody is there to type one.

    https://docs.ansible.com/ansible/latest/collections/ansible/builtin/ssh_connection.html
    """
    python = str(variables.get("ansible_python_interpreter", "auto"))
    local = variables.get("ansible_connection") == "local"
    if python.startswith("auto"):
        python = sys.executable if local else "python3"
    if local:
        return Client(name, (python, "-c", START), here=True)
    connection = str(variables.get("ansible_connection", "ssh"))
    if connection not in ("ssh", "smart", "ansible.builtin.ssh"):
        raise InputError(
            f"{name} is reached by {connection}. Callers can be started only by SSH or on this machine.",
            fix="As workload.client, name a Linux machine reached by SSH.",
        )
    remote = f"exec {shlex.quote(python)} -c {shlex.quote(START)}"
    return Client(name, (*_ssh(variables), str(variables.get("ansible_host", name)), remote))


def _ssh(variables: Mapping[str, object]) -> Iterator[str]:
    """The SSH program and its options."""

    def first(*names: str) -> str | None:
        return next((str(variables[name]) for name in names if variables.get(name)), None)

    yield first("ansible_ssh_executable") or "ssh"
    yield from _SSH
    if port := first("ansible_port", "ansible_ssh_port"):
        yield from ("-p", port)
    if user := first("ansible_user", "ansible_ssh_user"):
        yield from ("-l", user)
    if key := first("ansible_private_key_file", "ansible_ssh_private_key_file"):
        yield from ("-i", key)
    for arguments in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        yield from shlex.split(first(arguments) or "")
