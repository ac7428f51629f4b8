"""What a play gets from vnuma: a clean environment, extra variables as data, and an inventory of its own.

The inventory has only the play's hosts, with all templates and vault values resolved. A play that reads the
user's inventory would need everything that its lookups and vault need: environment variables, which
ansible-runner would write to disk, and a vault password, possibly from a prompt.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.secrets import PRIVATE_FILE_VARIABLE, conceal, write_private
from vnuma.engine.access.target import Target
from vnuma.words.plain_text import data_in_yaml


def write_play_inventory(
    folder: Path, inventory: Inventory, targets: Mapping[str, Target], reached: Collection[str] = ()
) -> Path:
    """Write FOLDER/hosts.json, readable only by this user.

    `reached` are hosts that Ansible's own connection reaches: their passwords are values. Those of vCenter
    and SQL Server are references that the run's private file resolves. Raises InputError and
    EnvironmentProblem as reading does.
    """
    hosts: dict[str, dict[str, Any]] = {name: target.variables() for name, target in targets.items()}
    connections = inventory.connections(reached) if reached else {}
    for name in reached:
        own = connections.get(name, {})
        conceal(own)
        hosts[name] = hosts.get(name, {}) | own
    return write_private(folder / "hosts.json", json.dumps({"all": {"hosts": _literal(hosts)}}))


def _literal(value: Any) -> Any:
    """A value that Ansible takes literally: braces in it are not templated again."""
    if isinstance(value, Mapping):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return {"__ansible_unsafe": value} if isinstance(value, str) else value


# ansible-runner stores the parent's environment in its artifacts, so a play gets only what it needs.
_KEPT = (
    "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ",
    "VNUMA_HOME", "VNUMA_LAB_STATE", "VNUMA_ODBC_DRIVER", "ODBCSYSINI", "ODBCINI",
    "KRB5CCNAME", "KRB5_CONFIG", "KRB5_CLIENT_KTNAME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG",
)  # fmt: skip


_TRUST = "SSL_CERT_FILE"
_TRUSTED = os.environ.get(_TRUST)

_SECRET_WORDS = ("PASS", "TOKEN", "SECRET", "JWT", "CREDENTIAL")
"""Variables with such names hold secrets, like ANSIBLE_BECOME_PASS and ANSIBLE_HASHI_VAULT_TOKEN."""


def write_extra_variables(folder: Path, **values: str | int | Iterable[str]) -> None:
    """Write the play's extra variables to `folder`/env/extravars as data, not as templates.

    Ansible templates extra variables, so a host named `{{ lookup(...) }}` would be executed.
    """
    place = folder / "env"
    place.mkdir(mode=0o700, exist_ok=True)
    lines = [f"{name}: {_as_data(value)}\n" for name, value in values.items()]
    (place / "extravars").write_text("".join(lines), encoding="ascii")


def _as_data(value: str | int | Iterable[str]) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return data_in_yaml(value)
    return f"[{', '.join(map(_as_data, value))}]"


@contextmanager
def clean_environment(folder: Path, private: Path | None = None) -> Iterator[None]:
    """Clean the environment while ansible-runner copies it, then restore it.

    The play's inventory is already resolved, so it needs no vault or lookups. It gets a
    dummy vault password file in `folder`, since the one that ansible.cfg names might prompt.
    """
    from ansible.constants import CONFIG_FILE  # noqa: PLC0415 - a second of imports that only a play pays

    no_vault = folder / "no-vault"
    if not no_vault.exists():
        write_private(no_vault, "none\n")
    kept = dict(os.environ)
    clean = {name: kept[name] for name in _KEPT if name in kept}
    # Without the ODBC driver's file: it belongs to this process and is removed with it.
    clean.pop(_TRUST, None)
    clean |= {_TRUST: _TRUSTED} if _TRUSTED else {}
    clean |= {name: value for name, value in kept.items() if name.startswith("ANSIBLE_") and _is_open(name)}
    if CONFIG_FILE:
        clean["ANSIBLE_CONFIG"] = str(CONFIG_FILE)  # the play starts in another folder
    clean["ANSIBLE_VAULT_PASSWORD_FILE"] = str(no_vault)
    clean["ANSIBLE_VAULT_IDENTITY_LIST"] = f"none@{no_vault}"
    clean["ANSIBLE_NOCOLOR"] = "1"  # the last lines of its output may be shown
    clean["ANSIBLE_INVENTORY_ENABLED"] = "ansible.builtin.yaml"
    # This interpreter's folder first, so that ansible-playbook is found without an activated environment.
    clean["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", os.defpath)))
    if private:
        clean[PRIVATE_FILE_VARIABLE] = str(private)
    try:
        os.environ.clear()
        os.environ.update(clean)
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _is_open(name: str) -> bool:
    """Whether a variable of Ansible or of a collection holds no secret; the path of a secret is not one.

    Also false for the output plugin of ansible-runner, which a play inside a play would load twice.
    """
    if name in ("ANSIBLE_PRIVATE_KEY", "ANSIBLE_STDOUT_CALLBACK"):
        return False
    return name.endswith(("_FILE", "_PATH")) or not any(word in name for word in _SECRET_WORDS)
