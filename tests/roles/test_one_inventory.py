"""One inventory with templates, lookups and vault values means the same to every way of using it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import status, vnuma
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.playbook import play_roles
from tests.support.site import write_inventory, write_machines, write_study
from vnuma.assets import asset

VAULT_PASSWORD = "open sesame"


@dataclass(frozen=True)
class Site:
    """An inventory folder, and the environment that it takes to read it."""

    folder: Path
    env: Mapping[str, str]


def encrypted(text: str) -> str:
    """A value or a file as ansible-vault writes it."""
    from ansible.parsing.vault import VaultLib, VaultSecret  # noqa: PLC0415 - half a second

    secret = VaultSecret(VAULT_PASSWORD.encode())
    return str(VaultLib([("default", secret)]).encrypt(text.encode()).decode())


def inline(text: str, indent: int) -> str:
    """`!vault` with a value, for a place in a YAML file."""
    lines = encrypted(text).splitlines()
    return "!vault |\n" + "\n".join(" " * indent + line for line in lines)


@pytest.fixture
def templated(tmp_path: Path, lab: LabFactory) -> tuple[LabHandle, Site]:
    """A lab, and a site: a host by a variable, a port and a name by lookups, both kinds of vault."""
    running = lab()
    folder = tmp_path / "site"
    variables = folder / "group_vars" / "vnuma_vms"
    variables.mkdir(parents=True)
    (tmp_path / "clone").write_text(running.vms["sql16"].path + "\n", encoding="utf-8")
    script = tmp_path / "vault-password.sh"
    script.write_text(f"#!/bin/sh\necho '{VAULT_PASSWORD}'\n", encoding="utf-8")
    script.chmod(0o700)
    (variables / "main.yml").write_text(
        f"""---
site_vcenter: {running.vcenter.host}
unrelated: "{{{{ no_such_variable }}}}"
vnuma_vcenter:
  host: "{{{{ site_vcenter }}}}"
  port: "{{{{ lookup('env', 'SITE_PORT') | int }}}}"
  user: {running.vcenter.user}
  password: "{{{{ vaulted_password }}}}"
  ca_file: {running.vcenter.ca_file}
""",
        encoding="utf-8",
    )
    (variables / "vault.yml").write_text(
        encrypted(f"vaulted_password: {running.vcenter.password}\n"), encoding="utf-8"
    )
    server = running.vms["sql16"]
    (folder / "hosts.yml").write_text(
        f"""---
all:
  children:
    vnuma_vms:
      hosts:
        sql16:
          vnuma_vm: "{{{{ lookup('file', '{tmp_path}/clone') }}}}"
          vnuma_test_clone: true
          vnuma_sql:
            host: {server.host}
            port: {server.port}
            user: {server.user}
            encrypt: "no"
            password: {inline(server.password, 14)}
""",
        encoding="utf-8",
    )
    env = {"ANSIBLE_VAULT_PASSWORD_FILE": str(script), "SITE_PORT": str(running.vcenter.port)}
    return running, Site(folder, env)


def played_by_runner(
    folder: Path, site: Site, run: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, bytes]:
    """Play the study as AWX does; how it ended, and all that the runner kept."""
    import ansible_runner  # noqa: PLC0415 - half a second that only this test needs

    folder.mkdir()
    for name, value in site.env.items():
        monkeypatch.setenv(name, value)
    ended = ansible_runner.interface.run(
        private_data_dir=str(folder),
        playbook=str(asset("playbooks/study.yml")),
        inventory=str(site.folder),
        extravars={"vnuma_run": run, "vnuma_max_cells": 5},
        verbosity=4,
        quiet=True,
        cancel_callback=lambda: False,  # without one the runner keeps the process' signals for itself
    )
    kept = [path for path in folder.rglob("*") if path.is_file()]
    return str(ended.status), b"".join(path.read_bytes() for path in kept)


@pytest.mark.long
def test_one_inventory_means_the_same_to_the_program_to_roles_and_to_awx(
    tmp_path: Path, templated: tuple[LabHandle, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """doctor, plan, check and run, a role by plain ansible-playbook, and a study by ansible-runner.

    Each reaches the lab with what templates, lookups and vault give, and none shows a password. A variable
    that no template can make does not matter to them.
    """
    running, site = templated
    before, study = settings_now(running), write_study(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    said = ""
    for arguments in (
        ("doctor", "sql16"),
        ("plan", study),
        ("check", "--vm", "sql16", "--sql"),
        ("run", study),
    ):
        ran = vnuma(*arguments, "-i", site.folder, env=site.env)
        assert ran.code in ((0, 10) if arguments[0] == "check" else (0,)), ran.text
        said += ran.text

    role = play_roles(tmp_path, site.folder, {"vm_power": {"vm_power_state": "on"}}, "-vvvv", env=site.env)
    assert role.only("vm_power").status == "ok", role.text

    created = vnuma("run", study, "-i", site.folder, "--create-only", env=site.env)
    ended, kept = played_by_runner(tmp_path / "awx", site, created.out.strip(), monkeypatch)
    assert ended == "successful"
    assert [run["state"] for run in status()["runs"]] == ["finished"] * 2

    assert settings_now(running) == before
    assert running.vcenter.password not in said + role.text + created.text
    assert running.vcenter.password.encode() not in kept


def test_a_machine_is_reached_by_what_its_lookups_give(tmp_path: Path, lab: LabFactory) -> None:
    """Ansible's own connection, in a play whose environment has nothing of what the lookup needs."""
    running = lab("closson2009")
    path = write_machines(tmp_path, running)
    document = json.loads(path.read_text(encoding="utf-8"))
    (machine,) = document["all"]["hosts"].values()
    port, machine["ansible_port"] = machine["ansible_port"], "{{ lookup('env', 'PORT_OF_SITE') }}"
    path.write_text(json.dumps(document), encoding="utf-8")

    doctor = vnuma("doctor", "xeon5500", "-i", path, env={"PORT_OF_SITE": str(port)})

    assert "xeon5500: xeon5500, 2 NUMA nodes, Linux" in doctor.text, doctor.text


def test_an_extra_variable_may_be_a_password_and_an_inventorys_own_may_not(
    tmp_path: Path, lab: LabFactory
) -> None:
    """AWX passes a credential as a file of extra variables; the same text in the inventory is refused."""
    running = lab()
    inventory = write_inventory(tmp_path, running, password="{{ vcenter_password }}")
    text = json.dumps({"vcenter_password": running.vcenter.password})
    credential = tmp_path / "credential.json"
    credential.write_text(text, encoding="utf-8")

    given = play_roles(tmp_path, inventory, {"vm_power": {}}, "-vvvv", "-e", f"@{credential}")
    (tmp_path / "group_vars").mkdir()
    credential.rename(tmp_path / "group_vars" / "all.json")
    written = play_roles(tmp_path, inventory, {"vm_power": {}}, "-vvvv")

    assert given.only("vm_power").status == "ok", given.text
    refused = written.only("vm_power")
    assert refused["exit_code"] == 3
    assert running.vcenter.password not in given.text + written.text
