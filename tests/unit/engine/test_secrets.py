"""Secrets by reference."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from vnuma.engine.access import secrets
from vnuma.engine.access.secrets import (
    PRIVATE_FILE_VARIABLE,
    Private,
    Secret,
    conceal,
    masked,
    remember,
    remembered_secrets,
    resolve,
)
from vnuma.engine.access.target import target_from
from vnuma.errors import EnvironmentProblem, InputError, VnumaError


def test_an_environment_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its value, and only when it is asked for."""
    monkeypatch.setenv("THE_PASSWORD", "s3cret")

    assert resolve(Secret(env="THE_PASSWORD")) == "s3cret"
    monkeypatch.delenv("THE_PASSWORD")
    with pytest.raises(EnvironmentProblem):
        resolve(Secret(env="THE_PASSWORD"))


@pytest.mark.parametrize("password", ["s3cret", "pass\u2028word", "a\x0bb", "a\x85b", "a\x1cb"])
def test_a_password_may_hold_what_unicode_calls_a_line_end(tmp_path: Path, password: str) -> None:
    """Only line feed, with or without carriage return, ends it; a byte order mark is not part of it."""
    path = tmp_path / "p"
    path.write_bytes(f"\ufeff{password}\r\nmore".encode())

    assert resolve(Secret(file=str(path))) == password
    assert resolve(Secret(command=("printf", password))) == password


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, EnvironmentProblem),
        (b"", EnvironmentProblem),
        (b"\n", EnvironmentProblem),
        ("geh\xe9im".encode("latin-1"), InputError),
        (b"a\0geh\n", InputError),  # a server would read it only up to there
    ],
    ids=["not there", "empty", "an empty line", "Latin-1", "NUL"],
)
def test_a_file_without_a_password_is_named(
    tmp_path: Path, content: bytes | None, error: type[VnumaError]
) -> None:
    """With what to do, and nothing of what it holds."""
    path = tmp_path / "p"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(error) as caught:
        resolve(Secret(file=str(path)))
    assert str(path) in caught.value.what
    assert "geh" not in str(caught.value)
    assert caught.value.fix
    if content and b"\0" in content:
        with pytest.raises(EnvironmentProblem):
            resolve(Secret(command=("printf", r"a\0b")))


def test_the_private_file_is_readable_by_its_owner_alone_and_answers_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A play finds the values there although its environment has none."""
    path = Private("sqlite:///x", "/home", "quick.4", {"env:GONE": "s3cret"}, {"sql16": 7}).write(tmp_path)
    monkeypatch.setenv(PRIVATE_FILE_VARIABLE, str(path))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert resolve(Secret(env="GONE")) == "s3cret"
    private = Private.read()
    assert private is not None
    assert private.tokens == {"sql16": 7}
    assert "s3cret" not in repr(private)
    path.unlink()  # with a play that was killed: its worker's attempt does not fail for want of it
    assert Private.read() == private


@pytest.mark.parametrize(
    "reference", [{}, {"env": "A", "file": "b"}, {"vault": "f"}, {"env": "A", "key": "k"}]
)
def test_a_reference_names_exactly_one_source(reference: dict[str, str]) -> None:
    """None, two, or half a vault reference are refused."""
    with pytest.raises(ValueError, match="reference"):
        Secret.model_validate(reference)


def test_an_inventory_mistake_names_host_variable_and_field() -> None:
    """And where every variable is shown."""
    with pytest.raises(InputError) as caught:
        target_from(
            "sql16", {"vnuma_vcenter": {"host": "v"}, "vnuma_sql": {"host": "s"}}, "inventory/hosts.yml"
        )

    parts = ("inventory/hosts.yml: host sql16: vnuma_vcenter: ", "vnuma_sql: ", "session", "kerberos: true")
    assert [part for part in parts if part not in str(caught.value)] == []


def test_a_vault_file_is_read_with_ansibles_own_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By key; a key that is not there is named."""
    from ansible.parsing.vault import VaultLib, VaultSecret  # noqa: PLC0415 - half a second that only this test needs

    (tmp_path / "vault-password").write_text("open sesame", encoding="utf-8")
    vault = VaultLib([("default", VaultSecret(b"open sesame"))])
    (tmp_path / "secrets.yml").write_bytes(vault.encrypt(b"sql: s3cret\n"))
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "vault-password"))

    assert resolve(Secret(vault=str(tmp_path / "secrets.yml"), key="sql")) == "s3cret"
    with pytest.raises(EnvironmentProblem):
        resolve(Secret(vault=str(tmp_path / "secrets.yml"), key="vcenter"))


def test_a_text_is_masked_with_the_longest_secret_first() -> None:
    """None of a longer one is left when a shorter one is part of it; an empty one masks nothing."""
    with remembered_secrets():
        remember({"a": "pass", "b": "passphrase", "c": ""})

        assert masked("a passphrase, a pass") == "a ***, a ***"


@pytest.mark.parametrize("kind", ["reference", "connection"])
@pytest.mark.parametrize(
    "password", ["back\\slash1", "p\u00e4ssw\u00f6rt", "it's-vc", 'a"quote', 'it\'s "both"']
)
def test_a_password_is_masked_also_in_a_literal_of_bytes(
    password: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ansible shows output at -vvv. What else is in the output decides which quotes are escaped."""
    monkeypatch.setattr(secrets, "_seen", set())
    monkeypatch.setenv("THE_PASSWORD", password)

    if kind == "reference":
        resolve(Secret(env="THE_PASSWORD"))
    else:
        conceal({"ansible_password": password})

    for others in ("", '"', "'", "'\""):
        output = f"<{password}>{others}"
        assert "<***>" in masked(output)
        assert "<***>" in masked(str((0, output.encode(), b"")))


@pytest.mark.parametrize(("value", "said"), [(True, "True, 17"), (["True"], "True, 17"), (17, "True, ***")])
def test_only_a_text_or_a_number_is_a_password(
    value: object, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any other value of such a variable masks no word."""
    monkeypatch.setattr(secrets, "_seen", set())

    conceal({"ansible_password": value})

    assert masked("True, 17") == said
