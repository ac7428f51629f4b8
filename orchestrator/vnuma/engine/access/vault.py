"""Ansible Vault, with the passwords configured for Ansible: file, script, identity list or prompt."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from vnuma.errors import EnvironmentProblem
from vnuma.words.bounded_input import NotYaml, read_yaml

FIX = "Set ANSIBLE_VAULT_PASSWORD_FILE or ANSIBLE_VAULT_IDENTITY_LIST, or vault_password_file in ansible.cfg."


def vault_secrets() -> list[Any]:
    """Load Ansible's vault passwords, or the play's inside a play; they then decrypt inline values too.

    Raises AnsibleError when none of the configured ones can be read.
    """
    from ansible.constants import config  # noqa: PLC0415 - a second: only commands that need it pay
    from ansible.parsing.vault import VaultSecretsContext  # noqa: PLC0415

    context = VaultSecretsContext.current(optional=True)
    if context is None:
        context = _own_context()
        VaultSecretsContext.initialize(context)
    if context is _own_context():
        identities = tuple(config.get_config_value("DEFAULT_VAULT_IDENTITY_LIST"))
        context.secrets = _asked(config.get_config_value("DEFAULT_VAULT_PASSWORD_FILE"), identities)
    secrets: list[Any] = context.secrets
    return secrets


@cache
def _own_context() -> Any:
    """The vault context of this process, outside a play: Ansible keeps one per process."""
    from ansible.parsing.vault import VaultSecretsContext  # noqa: PLC0415 - as above

    return VaultSecretsContext([])


@cache
def _asked(password_file: str | None, identities: tuple[str, ...]) -> list[Any]:
    """Asked once per process: a prompt involves a person, and a script may too."""
    if not password_file and not identities:
        return []
    from ansible import constants  # noqa: PLC0415 - as above
    from ansible.cli import CLI  # noqa: PLC0415
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415

    # Ansible adds the password file that was configured when it was imported.
    known = password_file == constants.DEFAULT_VAULT_PASSWORD_FILE
    files = [] if known or not password_file else [password_file]
    found: list[Any] = CLI.setup_vault_secrets(
        DataLoader(), list(identities), files, auto_prompt=False, initialize_context=False
    )
    return found


def read_key(path: Path, key: str) -> str:
    """Read one key of an Ansible Vault file. Raises EnvironmentProblem with file and key, never a value."""
    from ansible.errors import AnsibleError  # noqa: PLC0415 - as above
    from ansible.parsing.vault import VaultLib  # noqa: PLC0415

    try:
        clear = VaultLib(vault_secrets()).decrypt(path.read_bytes())
        content = read_yaml(clear.decode("utf-8"))
    except (NotYaml, UnicodeDecodeError):
        # Without the parser's message, which may quote what it read.
        raise EnvironmentProblem(
            f"The vault file {path} is not valid YAML.", fix=f"ansible-vault edit {path}"
        ) from None
    except (AnsibleError, OSError) as error:
        raise EnvironmentProblem(f"The vault file {path} cannot be read: {error}.", fix=FIX) from error
    if not isinstance(content, dict) or not content.get(key):
        raise EnvironmentProblem(
            f"The vault file {path} has no key '{key}'.", fix=f"ansible-vault edit {path}"
        )
    return str(content[key])
