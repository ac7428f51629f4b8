"""The machine that calls SQL Server over the network: how the inventory reaches it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from vnuma.engine.access.inventory import LOCAL, read_variables
from vnuma.errors import InputError
from vnuma.workloads.caller_host import START
from vnuma.workloads.client import HERE, Client

_SSH = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15")
"""No terminal, no prompts; gives up when the machine does not answer."""


def client_named(inventory: Path, name: str | None) -> Client:
    """The host of that name in the inventory; this machine for None, or for `localhost` without an entry.

    Raises InputError for an unknown host, or one that Ansible reaches neither locally nor by SSH.
    """
    if name is None:
        return HERE
    variables = read_variables(inventory).get(name)
    if variables is None:
        if name == LOCAL:
            return HERE
        raise InputError(
            f"{inventory} has no host {name}; workload.client names it.",
            fix="Add it there, with ansible_host; it needs no vnuma_vcenter.",
        )
    return client_from(name, variables)


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
