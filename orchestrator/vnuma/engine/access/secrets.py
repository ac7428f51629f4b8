"""Secrets by reference: resolved once, kept in one private file, never printed.

A run resolves every reference before it starts. It writes the values and the store's address to a file of
mode 0600 in a private folder, and a play, its environment and its artifacts get only the path. A role used
outside a run resolves its own references.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, SecretStr, model_validator

from vnuma.errors import EnvironmentProblem, InputError
from vnuma.words.bounded_yaml import NotYaml, read_yaml
from vnuma.words.validation import Strict

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


PRIVATE_FILE_VARIABLE = "VNUMA_PRIVATE_FILE"

_COMMAND_TIMEOUT_S = 60
"""A program that prompts or hangs must not block a run forever."""


class Secret(Strict):
    """A reference to a secret: an environment variable, a file, a key in an Ansible Vault file, a command.

    `given` names the inventory variable whose template or vault value is the secret. That value stays in the
    memory of the process that read the inventory and is never written.
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
        """The secret that the inventory variable `given` resolved to."""
        secret = cls(given=given)
        secret._value = SecretStr(value)
        return secret

    @model_validator(mode="before")
    @classmethod
    def _is_a_reference(cls, data: object) -> object:
        """Refuse a plain-text password in place of a reference, without repeating it."""
        return data if isinstance(data, dict | Secret) else {}

    @model_validator(mode="after")
    def _exactly_one(self) -> Secret:
        sources = (self.env, self.file, self.vault, self.command, self.given)
        if sum(source is not None for source in sources) != 1:
            raise ValueError(
                "a password is a reference: {env: NAME}, {file: PATH}, {vault: FILE, key: NAME} or "
                "{command: [PROGRAM, ARGUMENT]}; or a lookup or a vault value; never plain text"
            )
        if (self.vault is None) != (self.key is None):
            raise ValueError("a vault reference needs both parts: {vault: FILE, key: NAME}")
        return self

    @property
    def given_value(self) -> str | None:
        """The value of a `given` secret; None where it is not known."""
        return None if self._value is None else self._value.get_secret_value()

    @property
    def name(self) -> str:
        """Its name in messages and in the private file; never its value."""
        if self.env:
            return f"env:{self.env}"
        if self.file:
            return f"file:{self.file}"
        if self.command:
            return f"command:{shlex.join(self.command)}"
        return f"vault:{self.vault}#{self.key}" if self.vault else f"given:{self.given}"


@dataclass(frozen=True, repr=False)
class Private:
    """What a play needs but must not see in the open: the store's address, and secrets by reference name."""

    store_url: str
    home: str
    run: str
    secrets: dict[str, str]
    tokens: dict[str, int] = field(default_factory=dict)
    """Fencing token of each VM by inventory name. An older play keeps its older token."""
    api_versions: dict[str, str] = field(default_factory=dict)
    """API version agreed with each vCenter, by address, so that steps need not negotiate again."""
    logins: str | None = None
    """The folder with the logins that the run's processes share."""
    inventory: str = ""
    """The play's own inventory: the run's hosts with all templates resolved."""
    seen: tuple[str, ...] = ()
    """What the process that wrote it had seen, such as passwords of Ansible's own connections."""
    study: str = ""
    """The hash of the study's text. A store that holds another text was altered."""

    def write(self, folder: Path) -> Path:
        """Write it to a new file that only this user can read."""
        return write_private(folder / "private.json", json.dumps(asdict(self) | {"seen": [*_seen]}))

    @classmethod
    def read(cls) -> Private | None:
        """The private file that this process was started with, or None."""
        path = os.environ.get(PRIVATE_FILE_VARIABLE)
        return _kept(path) if path else None

    @staticmethod
    def folder() -> Path:
        """Where this play's private file is."""
        return Path(os.environ[PRIVATE_FILE_VARIABLE]).parent


def write_private(path: Path, text: str) -> Path:
    """Write a new file that only this user can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    return path


@lru_cache(maxsize=1)
def _kept(path: str) -> Private:
    """Cached, since the file is written once. A worker that outlives its play is stopped by its token."""
    try:
        return Private(**json.loads(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise EnvironmentProblem(
            f"The run's private file {path} cannot be read ({error.strerror}).",
            fix="Start again: vnuma run --resume RUN",
        ) from error


def masked(text: str) -> str:
    """The text without the values of the secrets that this process knows."""
    private = Private.read()
    known = {*_seen, *_remembered.values()}
    if private:
        known |= {*private.secrets.values(), *private.seen}
    for value in sorted(filter(None, known), key=len, reverse=True):
        text = text.replace(value, "***")
    return text


_seen: set[str] = set()
"""Values that were read here: what a program prints is shown without them."""


def conceal(variables: Mapping[str, object]) -> None:
    """Show what programs print without the passwords of Ansible's connection among a host's variables, here
    and in the plays started from now on.
    """
    for name, value in variables.items():
        if value and is_password(name) and isinstance(value, str | int | float) and value is not True:
            _know(str(value))


def _know(value: str) -> None:
    """Mask it from now on, also in Python's literals of bytes, as which Ansible shows output at -vvv."""
    plain = repr(value.encode(errors="surrogatepass"))[2:-1]
    beside_quotes = repr(f'{value}"'.encode(errors="surrogatepass"))[2:-2]
    _seen.update((value, plain, beside_quotes))


def is_password(variable: str) -> bool:
    """Whether that variable of an inventory is a password of Ansible's connection."""
    return variable.startswith("ansible_") and variable.endswith(("_password", "_pass", "_passphrase"))


def resolve(secret: Secret) -> str:
    """The value of a secret. Raises EnvironmentProblem with the reference's name, never the value."""
    value = _resolved(secret)
    _know(value)
    return value


def _resolved(secret: Secret) -> str:
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
"""Secrets read before a run's first change: a restore must not depend on reading a file or vault."""


@contextmanager
def remembered_secrets() -> Iterator[None]:
    """Use secrets given to `remember` inside this `with`, also if their source can no longer be read."""
    try:
        yield
    finally:
        _remembered.clear()


def remember(secrets: Mapping[str, str]) -> None:
    """Keep secrets, by reference name, until the enclosing `remembered_secrets` ends."""
    _remembered.update(secrets)


def _from_source(secret: Secret) -> str:
    if secret.env:
        value = os.environ.get(secret.env)
        if not value:
            raise EnvironmentProblem(
                f"The environment variable {secret.env} is not set; the password is read from it.",
                fix=f"read -rs {secret.env} && export {secret.env}",
            )
        return value
    if secret.file:
        return _first_line(Path(secret.file).expanduser())
    if secret.command:
        return _from_command(secret.command)
    if secret.vault:
        return read_key(Path(secret.vault).expanduser(), str(secret.key))
    return _given(secret)


def resolve_all(references: Iterable[Secret]) -> dict[str, str]:
    """The values of these secrets by reference name. Raises as `resolve` does."""
    return {reference.name: resolve(reference) for reference in references}


def _given(secret: Secret) -> str:
    value = secret.given_value
    if value is None:
        raise EnvironmentProblem(
            f"Only the process that read the inventory knows the password given by {secret.given}.",
            fix="In the inventory, give it as a template, a vault value or a reference.",
        )
    if not value:
        raise EnvironmentProblem(
            f"The password given by {secret.given} is empty.",
            fix="Check what its template reads: an environment variable may not be set.",
        )
    return value


@cache
def _from_command(command: tuple[str, ...]) -> str:
    """The first line that a program prints. Run once per process, since password stores log every request."""
    name = shlex.join(command)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=_COMMAND_TIMEOUT_S,
        )
        password = _before_line_end(done.stdout.decode("utf-8"))
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        # Without the error's text, which may quote the program's output.
        raise EnvironmentProblem(
            f"The password command '{name}' failed: {_why(error)}.", fix=f"Try it: {name}"
        ) from None
    if not password or "\0" in password:
        what = "a NUL character" if password else "nothing"
        raise EnvironmentProblem(f"The password command '{name}' printed {what}.", fix=f"Try it: {name}")
    return password


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"it ended with exit status {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it did not end within {_COMMAND_TIMEOUT_S} s"
    if isinstance(error, OSError):
        return (error.strerror or "it cannot be started").lower()
    return "it did not print text in UTF-8"


def _first_line(path: Path) -> str:
    try:
        password = _before_line_end(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise EnvironmentProblem(
            f"The password file {path} cannot be read ({error.strerror}).",
            fix="Create it with mode 0600, containing only the password.",
        ) from error
    except UnicodeDecodeError:  # without the error's text, which quotes the password
        raise InputError(
            f"The password file {path} is not text in UTF-8.",
            fix=f"Convert it, from Latin-1 for instance: iconv -f latin1 -t utf-8 {path}",
        ) from None
    if not password:
        raise EnvironmentProblem(
            f"The password file {path} is empty.", fix="Write the password on its first line."
        )
    if "\0" in password:
        raise InputError(
            f"The password file {path} contains a NUL character, which is not allowed in a password.",
            fix="It may be a binary or a UTF-16 file. Write only the password, in UTF-8.",
        )
    return password


def _before_line_end(text: str) -> str:
    """The first line. Only CR and LF end it, since a password may contain Unicode's other line separators."""
    return text.partition("\n")[0].removesuffix("\r")
