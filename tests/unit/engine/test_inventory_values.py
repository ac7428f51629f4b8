"""What templates, lookups and vault values of an inventory come to, and what is said when they fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import vnuma
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.play_input import write_play_inventory
from vnuma.engine.access.secrets import Secret, resolve, resolve_all
from vnuma.engine.access.target import Target
from vnuma.errors import EnvironmentProblem, InputError, VnumaError

VCENTER = {"host": "vc", "user": "u", "password": {"env": "VC"}}
SQL = {"host": "s", "user": "u", "password": {"env": "SQL"}}
PLAIN = "hunter2-in-the-open"


def write(folder: Path, hosts: Mapping[str, Any], **variables: Any) -> Path:
    """An inventory of hosts with these variables for all; JSON is YAML."""
    path = folder / "hosts.yml"
    path.write_text(json.dumps({"all": {"vars": variables, "hosts": hosts}}), encoding="utf-8")
    return path


def one(folder: Path, vcenter: Mapping[str, Any] | None = None, **variables: Any) -> Target:
    """The target of one host, with these fields of vnuma_vcenter."""
    host = {"vnuma_vcenter": VCENTER | dict(vcenter or {}), "vnuma_sql": SQL}
    return Inventory(write(folder, {"sql16": host}, **variables)).targets()["sql16"]


def failed(folder: Path, **vcenter: Any) -> VnumaError:
    """How reading ends with these fields of vnuma_vcenter."""
    with pytest.raises(VnumaError) as raised:
        one(folder, vcenter, hosts_password=PLAIN)
    return raised.value


def test_variables_are_templated_and_keep_their_types(tmp_path: Path) -> None:
    """A host by another variable, a port by an expression, and other hosts' variables and groups."""
    target = one(
        tmp_path,
        {"host": "{{ site }}", "port": "{{ base + 1 }}", "user": "{{ groups['all'] | first }}@x"},
        site="vc.example.com",
        base=8442,
    )

    assert (target.hypervisor.host, target.hypervisor.port, target.hypervisor.user) == (
        "vc.example.com",
        8443,
        "sql16@x",
    )


def test_a_variable_that_nobody_asks_for_may_fail(tmp_path: Path) -> None:
    """Neither another variable of the host nor another host matters."""
    good = {"vnuma_vcenter": VCENTER, "vnuma_sql": SQL, "mine": "{{ nosuch }}"}
    bad = {"vnuma_vcenter": VCENTER | {"host": "{{ nosuch }}"}, "vnuma_sql": SQL}

    inventory = write(tmp_path, {"sql16": good, "other": bad})

    assert Inventory(inventory).targets(["sql16"])["sql16"].hypervisor.host == "vc"


@pytest.mark.parametrize(
    ("field", "template", "code", "reason"),
    [
        ("host", "{{ nosuch }}", 3, "'nosuch' is undefined"),
        ("password", "{{ my_vault_password }}", 3, "'my_vault_password' is undefined"),
        ("host", "{{ 1 + }}", 3, "yntax error"),
        ("password", "{{ lookup('file', '/nosuch/file') }}", 4, "/nosuch/file"),
        ("host", "{{ lookup('pipe', 'exit 3') }}", 4, "returned 3"),
        ("password", "{{ lookup('no.such.lookup', 'x') }}", 4, "no.such.lookup"),
        ("host", "{% raw %}{{ x }}{% endraw %}", 3, "not a valid host"),
        ("host", "https://vc", 3, "not a valid host"),
        ("host", "", 3, "not a valid host"),
        ("host", "a b", 3, "not a valid host"),
    ],
)
def test_a_value_that_cannot_be_used_names_file_host_variable_and_reason(
    tmp_path: Path, field: str, template: str, code: int, reason: str
) -> None:
    """The inventory's mistake is 3; a lookup that failed is the environment's, 4."""
    error = failed(tmp_path, **{field: template})

    parts = (str(tmp_path / "hosts.yml"), "sql16", f"vnuma_vcenter.{field}", reason)
    assert [part for part in parts if part not in error.what] == []
    assert error.exit_code == code
    assert error.fix


@pytest.mark.parametrize(
    "template", ["{{ lookup('pipe', 'echo s3cret') }}", "{{ lookup('env', 'OF_A_TEST') }}"]
)
def test_a_password_may_be_a_lookups_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    """It is known to this process, and no document or message shows it."""
    monkeypatch.setenv("OF_A_TEST", "s3cret")

    target = one(tmp_path, {"password": template})

    assert resolve(target.hypervisor.secret) == "s3cret"
    assert (
        "s3cret" not in repr(target) + str(target) + target.model_dump_json() + target.hypervisor.secret.name
    )


@pytest.mark.parametrize("password", [PLAIN, "{{ hosts_password }}", 4711, {"__ansible_unsafe": PLAIN}])
def test_plain_text_is_refused_wherever_it_stands(tmp_path: Path, password: object) -> None:
    """As the password itself, in another variable, or marked as no template; it is not repeated."""
    error = failed(tmp_path, password=password)

    assert isinstance(error, InputError)
    assert [secret for secret in (PLAIN, "4711") if secret in str(error)] == []


def test_an_empty_password_is_said_before_anybody_logs_in(tmp_path: Path) -> None:
    """A variable of the environment that is not set gives nothing, and each login counts."""
    target = one(tmp_path, {"password": "{{ lookup('env', 'NOT_SET_ANYWHERE') }}"})

    with pytest.raises(EnvironmentProblem):
        resolve(target.hypervisor.secret)


def test_a_command_gives_its_first_line(tmp_path: Path) -> None:
    """Without a shell, and once: a password store may count questions."""
    program = tmp_path / "ask"
    program.write_text(f'#!/bin/sh\necho asked >> {tmp_path}/asked\necho "$1"\n', encoding="utf-8")
    program.chmod(0o700)
    secret = Secret.model_validate({"command": [str(program), "a b"]})

    assert [resolve(secret), resolve(secret)] == ["a b", "a b"]
    assert (tmp_path / "asked").read_text(encoding="utf-8") == "asked\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("/bin/sh", "-c", "echo s3''cret; exit 3"), "exit status 3"),
        (("/bin/sh", "-c", "true"), "printed nothing"),
        (("/no/such/program",), "no such file or directory"),
    ],
)
def test_a_command_that_fails_is_named_and_what_it_printed_is_not(
    command: tuple[str, ...], said: str
) -> None:
    """With the reason, and the command to try."""
    with pytest.raises(EnvironmentProblem, match=said) as raised:
        resolve(Secret(command=command))

    assert "s3cret" not in raised.value.what
    assert command[0] in str(raised.value.fix)


def encrypt(text: str, password: str, label: str = "default") -> str:
    """What ansible-vault writes, with that vault id."""
    from ansible.parsing.vault import VaultLib, VaultSecret  # noqa: PLC0415 - half a second

    secret = VaultSecret(password.encode())
    name = None if label == "default" else label
    return str(VaultLib([(label, secret)]).encrypt(text.encode(), secret, name).decode())


@pytest.fixture
def vaulted(tmp_path: Path) -> Path:
    """An inventory with an inline value under a vault id, and group variables in an encrypted file."""
    (tmp_path / "main").write_text("open sesame", encoding="utf-8")
    (tmp_path / "site").write_text('#!/bin/sh\necho "other of $USER_OF_VAULT"\n', encoding="utf-8")
    (tmp_path / "site").chmod(0o700)
    variables = tmp_path / "group_vars" / "all"
    variables.mkdir(parents=True)
    whole = {"whole": "of-a-file", "vnuma_sql": SQL | {"password": "direct-of-a-file"}}
    (variables / "vault.yml").write_text(encrypt(json.dumps(whole), "open sesame"), encoding="utf-8")
    inline = {"__ansible_vault": encrypt("inline{{ 1 }}", "other of me", "site")}
    hosts = {
        "inline": {"vnuma_vcenter": VCENTER | {"password": inline}},
        "whole": {"vnuma_vcenter": VCENTER | {"password": "{{ whole }}"}},
    }
    return write(tmp_path, hosts)


SHOW = """
import sys
from pathlib import Path
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.secrets import resolve
for name, target in Inventory(Path(sys.argv[1])).targets(sys.argv[2:] or None).items():
    print(name, resolve(target.hypervisor.secret), resolve(target.server.password))
"""


def shown(
    inventory: Path, *names: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> list[str]:
    """Hosts with their passwords, as a process of its own reads them: Ansible reads its settings once."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW, str(inventory), *names],
        cwd=cwd,
        env=os.environ | dict(env or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_vault_values_are_read_with_ids_files_and_scripts(vaulted: Path) -> None:
    """An inline value, one of an encrypted file, and one inside such a file."""
    folder = vaulted.parent
    env = {
        "ANSIBLE_VAULT_PASSWORD_FILE": str(folder / "main"),
        "ANSIBLE_VAULT_IDENTITY_LIST": f"site@{folder / 'site'}",
        "USER_OF_VAULT": "me",
    }

    assert shown(vaulted, env=env) == [
        "inline inline{{ 1 }} direct-of-a-file",
        "whole of-a-file direct-of-a-file",
    ]


@pytest.mark.parametrize(
    ("settings", "encrypted"),
    [({}, "a value"), ({"ANSIBLE_VAULT_PASSWORD_FILE": "/nosuch/password"}, "a file")],
)
def test_a_vault_without_its_password_is_the_environments_problem(
    vaulted: Path, settings: dict[str, str], encrypted: str
) -> None:
    """Exit code 4, for an encrypted value and for an encrypted file."""
    if encrypted == "a value":
        (vaulted.parent / "group_vars" / "all" / "vault.yml").unlink()

    ran = vnuma("doctor", "inline", "-i", vaulted, env=settings)

    assert ran.code == 4, ran.text


def test_ansible_cfg_of_the_working_directory_counts(vaulted: Path) -> None:
    """As for every program of Ansible's: here it names the vault's password."""
    folder = vaulted.parent
    (folder / "ansible.cfg").write_text("[defaults]\nvault_password_file = ./main\n", encoding="utf-8")

    assert shown(vaulted, "whole", cwd=folder) == ["whole of-a-file direct-of-a-file"]


def test_constructed_variables_and_groups_count(tmp_path: Path) -> None:
    """A folder of sources: Ansible's own inventory plugins compose variables of one another's hosts."""
    folder = tmp_path / "site"
    folder.mkdir()
    write(folder, {"sql16": {"vnuma_sql": SQL, "number": 7}})
    composed: dict[str, Any] = {
        "plugin": "ansible.builtin.constructed",
        "compose": {"vnuma_vm": "'clone%d' | format(number)"},
    }
    composed["compose"] |= {"vnuma_vcenter": json.dumps(VCENTER)}
    (folder / "z_constructed.yml").write_text(json.dumps(composed), encoding="utf-8")

    assert Inventory(folder).targets()["sql16"].vm == "clone7"


def test_a_plays_inventory_needs_no_lookup_and_holds_no_password_of_a_vm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read again it gives the same target; a machine keeps what Ansible reaches it by, braces and all."""
    machine: dict[str, Any] = {
        "ansible_host": "{{ lookup('env', 'OF_A_TEST') }}",
        "ansible_password": "{{ 'a{' ~ '{b' }}",
    }
    machine |= {"unrelated": "{{ nosuch }}", "ansible_port": 22}
    vcenter = VCENTER | {
        "host": "{{ lookup('env', 'OF_A_TEST') }}",
        "password": "{{ lookup('pipe', 'echo s3cret') }}",
    }
    vm = {"vnuma_vcenter": vcenter, "vnuma_sql": SQL, "vnuma_test_clone": True}
    inventory = write(
        tmp_path, {"sql16": vm, "linux": machine, "not_asked": {"ansible_host": "{{ nosuch }}"}}
    )
    monkeypatch.setenv("OF_A_TEST", "here")
    monkeypatch.setenv("SQL", "sql-s3cret")
    targets = Inventory(inventory).targets()
    folder = tmp_path / "private"
    folder.mkdir()

    path = write_play_inventory(folder, Inventory(inventory), targets, ["linux"])
    monkeypatch.delenv("OF_A_TEST")

    again = Inventory(path).targets()["sql16"]
    assert again.model_dump() == targets["sql16"].model_dump()
    assert again.hypervisor.secret.name in resolve_all(
        secret for target in targets.values() for secret in target.secrets
    )
    linux = Inventory(path).hosts["linux"]
    assert [linux[name] for name in ("ansible_host", "ansible_password", "ansible_port")] == [
        "here",
        "a{{b",
        22,
    ]
    assert "s3cret" not in path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("vcenter", "said"),
    [
        ({"session": {"env": "S"}}, "only one"),
        ({"password": None}, "or session"),
        ({"proxy": "http://u:p@proxy:3128"}, "HOST:PORT"),
        ({"proxy": "proxy"}, "HOST:PORT"),
    ],
)
def test_one_way_to_log_in_and_a_proxy_without_a_login(
    tmp_path: Path, vcenter: Mapping[str, Any], said: str
) -> None:
    """What cannot be meant is refused with the variable's name."""
    assert said in failed(tmp_path, **vcenter).what


def test_a_session_is_a_secret_and_a_proxy_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cookie of a template is known to this process alone."""
    monkeypatch.setenv("OF_A_TEST", "c00kie")
    given = {"session": "{{ lookup('env', 'OF_A_TEST') }}", "user": "", "password": None}

    target = one(tmp_path, {**given, "proxy": "http://proxy.example.com:3128"})

    assert resolve(target.hypervisor.secret) == "c00kie"
    assert "c00kie" not in repr(target) + target.model_dump_json()
    assert target.hypervisor.proxy_address == ("proxy.example.com", 3128)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("hosts.yml", "all:\n  hosts:\n    a: {b: [}\n", "line 3"),
        ("mine.yml", "plugin: nosuch.coll.plug\n", "nosuch.coll.plug"),
    ],
)
def test_an_inventory_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, text: str, said: str
) -> None:
    """The file and the reason of the plugin that it was written for, not a page of Ansible's warnings."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError) as caught:
        _ = Inventory(path).hosts

    assert [part for part in (str(path), said) if part not in caught.value.what] == []
    assert capfd.readouterr().err.count("\n") < 3


def test_the_labs_inventory_without_a_lab_names_the_command_that_starts_one(tmp_path: Path) -> None:
    """The file is right: the lab is what is missing."""
    path = tmp_path / "mine.vnuma.yml"
    path.write_text("plugin: vnuma.vnuma.lab\n", encoding="utf-8")

    with pytest.raises(EnvironmentProblem) as caught:
        _ = Inventory(path).hosts

    assert caught.value.fix == "vnuma lab up"


def test_a_systemd_credential_is_a_file_whose_folder_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/inventory.md writes it: LoadCredential= puts the file there."""
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    (tmp_path / "vnuma-sql").write_text("s3cret\n", encoding="utf-8")
    reference = {"file": "{{ lookup('env', 'CREDENTIALS_DIRECTORY') }}/vnuma-sql"}

    target = one(tmp_path, {"password": reference})

    assert target.hypervisor.password is not None
    assert resolve(target.hypervisor.password) == "s3cret"


def test_a_rotated_password_is_read_anew_and_a_broken_inventory_is_not(tmp_path: Path) -> None:
    """A run may take days: its next play has today's values, or those of before while somebody edits."""
    written = tmp_path / "hosts.yml"
    text = "all: {hosts: {box: {ansible_password: %s}}}"
    written.write_text(text % "old", encoding="utf-8")
    inventory = Inventory(written)
    seen = [inventory.hosts["box"]["ansible_password"]]
    for password in ("new", "{{"):
        written.write_text(text % password, encoding="utf-8")
        inventory = inventory.anew()
        seen.append(inventory.hosts["box"]["ansible_password"])

    assert seen == ["old", "new", "new"]
