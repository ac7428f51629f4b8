"""Passwords from a Vault server, by Ansible's lookup, from the inventory to the play."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support import openbao
from tests.support.cli import vnuma
from tests.support.openbao import Vault
from tests.support.site import write_inventory, write_study

POLICY = 'path "secret/data/vnuma/*" { capabilities = ["read"] }'
LOOKUP = "{{ lookup('community.hashi_vault.vault_kv2_get', 'vnuma/lab').secret.password }}"


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vault]:
    """A server whose AppRole is the environment's."""
    with openbao.server(tmp_path / "vault") as running:
        for name, text in running.approle("vnuma", POLICY).items():
            monkeypatch.setenv(name, text)
        yield running


@pytest.mark.long
def test_a_study_gets_its_passwords_from_a_vault(vault: Vault, lab: LabFactory, tmp_path: Path) -> None:
    """The doctor and a run log in with them; a login that the Vault refuses is named by its variable."""
    running = lab()
    vault.run("kv", "put", "secret/vnuma/lab", "password=-", said=running.vcenter.password)
    inventory = write_inventory(tmp_path, running)
    document = json.loads(inventory.read_text(encoding="utf-8"))
    for host in document["all"]["children"]["vnuma_vms"]["hosts"].values():
        host["vnuma_vcenter"]["password"] = host["vnuma_sql"]["password"] = LOOKUP
    inventory.write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "password").unlink()

    refused = vnuma("doctor", "sql16", "-i", inventory, env={"ANSIBLE_HASHI_VAULT_SECRET_ID": "wrong"})
    looked = vnuma("doctor", "sql16", "-i", inventory)
    ran = vnuma("run", write_study(tmp_path), "-i", inventory)

    assert refused.code == 4, refused.text
    assert "vnuma_vcenter" in refused.err
    assert looked.code == 0, looked.text
    assert ran.code == 0, ran.text
    assert "small.1: 2 of 2 cells valid." in ran.err
    assert running.vcenter.password not in refused.text + looked.text + ran.text
