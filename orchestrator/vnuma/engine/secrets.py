"""Secrets by reference: resolved once, kept in one private file, never printed.

A run resolves every reference before it starts and writes the values, with the store's address, to
a file of mode 0600 in a private folder. Only that file's path reaches a play, its environment and
its artifacts. A role used by hand has no such file and resolves its references itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from vnuma.engine.target import AnyTarget, Secret, Target
from vnuma.errors import EnvironmentProblem

PRIVATE_FILE_VARIABLE = "VNUMA_PRIVATE_FILE"


@dataclass(frozen=True, repr=False)
class Private:
    """What a play may not see in the open: the store's address and the secrets by reference name."""

    store_url: str
    home: str
    run: str
    secrets: dict[str, str]
    tokens: dict[str, int] = field(default_factory=dict)
    """Fencing token of each VM by inventory name: an older play keeps its older token."""
    api_versions: dict[str, str] = field(default_factory=dict)
    """API version agreed with each vCenter, by its address: a step need not ask again."""
    logins: str | None = None
    """The folder of what the run's processes know of their logins."""

    def write(self, folder: Path) -> Path:
        """Write to a new file that only this user can read."""
        path = folder / "private.json"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(asdict(self), stream)
        return path

    @classmethod
    def read(cls) -> Private | None:
        """The private file that this process was started with, if any."""
        path = os.environ.get(PRIVATE_FILE_VARIABLE)
        return _kept(path) if path else None


@lru_cache(maxsize=1)
def _kept(path: str) -> Private:
    """The file is written once. A worker whose play was killed outlives it, and is stopped by its token."""
    try:
        return Private(**json.loads(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise EnvironmentProblem(
            f"The run's private file {path} cannot be read ({error.strerror}).",
            fix="Start again: vnuma run --resume RUN",
        ) from error


def resolve(secret: Secret) -> str:
    """The value behind a reference. Raises EnvironmentProblem that names the reference, never the value."""
    private = Private.read()
    if private and secret.name in private.secrets:
        return private.secrets[secret.name]
    try:
        return _from_source(secret)
    except EnvironmentProblem:
        if secret.name in _remembered:
            return _remembered[secret.name]
        raise


_remembered: dict[str, str] = {}
"""What a run read before its first change: putting back must not depend on a file or vault read then."""


def _from_source(secret: Secret) -> str:
    if secret.env:
        value = os.environ.get(secret.env)
        if not value:
            raise EnvironmentProblem(
                f"The environment variable {secret.env} is not set; a password is read from it.",
                fix=f"read -rs {secret.env} && export {secret.env}",
            )
        return value
    if secret.file:
        return _first_line(Path(secret.file).expanduser())
    return _from_vault(Path(str(secret.vault)).expanduser(), str(secret.key))


def resolve_all(targets: Iterable[AnyTarget]) -> dict[str, str]:
    """Every secret of these targets by reference name; a machine's are Ansible's own affair.

    This process remembers them for as long as it lives.
    """
    inside = [target for target in targets if isinstance(target, Target)]
    references = [target.vcenter.password for target in inside]
    references += [target.sql.password for target in inside if target.sql.password]
    found = {reference.name: resolve(reference) for reference in references}
    _remembered.update(found)
    return found


def _first_line(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise EnvironmentProblem(
            f"The password file {path} cannot be read ({error.strerror}).",
            fix="Create it with mode 0600, the password alone in it.",
        ) from error
    if not lines or not lines[0]:
        raise EnvironmentProblem(
            f"The password file {path} is empty.", fix="Write the password on its first line."
        )
    return lines[0]


def _from_vault(path: Path, key: str) -> str:
    """One key of an Ansible Vault file, with the vault password that Ansible itself is set up to use."""
    from ansible.constants import config  # noqa: PLC0415 - a second of imports that only vault users pay
    from ansible.errors import AnsibleError  # noqa: PLC0415
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415
    from ansible.parsing.vault import VaultLib, get_file_vault_secret  # noqa: PLC0415

    named = [config.get_config_value("DEFAULT_VAULT_PASSWORD_FILE")]
    named += [entry.rpartition("@")[2] for entry in config.get_config_value("DEFAULT_VAULT_IDENTITY_LIST")]
    try:
        passwords = [get_file_vault_secret(filename=name, loader=DataLoader()) for name in named if name]
        for password in passwords:
            password.load()
        clear = VaultLib([("default", password) for password in passwords]).decrypt(path.read_bytes())
        content = YAML(typ="safe").load(clear)
    except YAMLError:
        # The parser's message may quote what it read.
        raise EnvironmentProblem(
            f"The vault file {path} is no YAML.", fix=f"ansible-vault edit {path}"
        ) from None
    except (AnsibleError, OSError) as error:
        raise EnvironmentProblem(
            f"The vault file {path} cannot be read: {error}.", fix="Set ANSIBLE_VAULT_PASSWORD_FILE."
        ) from error
    if not isinstance(content, dict) or not content.get(key):
        raise EnvironmentProblem(
            f"The vault file {path} has no key '{key}'.", fix=f"ansible-vault edit {path}"
        )
    return str(content[key])
