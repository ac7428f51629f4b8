"""No password in what Ansible prints or keeps, however much it is asked to tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.playbook import play_roles
from tests.support.site import write_inventory, write_study
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.play_input import write_play_inventory
from vnuma.engine.access.secrets import Private, resolve_all
from vnuma.engine.run.supervise import play_study

LITERAL = "hunter2-in-the-open"


def test_no_password_is_printed_at_any_verbosity(tmp_path: Path, lab: LabFactory) -> None:
    """Every role with -vvvv and diff: the reference is shown, its value never."""
    running = lab()
    roles: dict[str, dict[str, Any]] = {
        "vm_topology": {"vm_topology_arm": {"topology": "2x8"}},
        "vm_power": {},
        "guest_ready": {},
        "sql_dataset": {"sql_dataset_transaction_history_rows": 9, "sql_dataset_sales_order_detail_rows": 9},
        "sql_benchmark": {"sql_benchmark_workload": {"sizes": [3], "forms": ["client"]}},
    }

    ended = play_roles(tmp_path, write_inventory(tmp_path, running), roles, "-vvvv", "--diff")

    assert ended.code == 0, ended.text
    assert "vnuma.vnuma.sql_benchmark" in ended.text
    assert running.vcenter.password not in ended.text
    assert running.vcenter.password not in (tmp_path / "record.jsonl").read_text(encoding="utf-8")


def test_no_password_is_printed_when_it_is_wrong(tmp_path: Path, lab: LabFactory) -> None:
    """A refused login names the user and the reference's place, not what was sent."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    wrong = tmp_path / "password"
    wrong.write_text(LITERAL + "\n", encoding="utf-8")

    ended = play_roles(tmp_path, inventory, {"vm_power": {}, "sql_dataset": {}}, "-vvvv")

    assert ended.only("vm_power")["error"] == "AccountRefused"
    assert LITERAL not in ended.text


def test_the_runner_s_artifacts_hold_no_password(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ansible-runner keeps of a play (command, environment, events, output) is free of secrets.

    A secret in the parent's environment does not reach the play either, and no vault password is asked for.
    """
    running = lab()
    inventory = write_inventory(
        tmp_path, running, password=f"{{{{ lookup('file', '{tmp_path}/password') }}}}"
    )
    created = vnuma("run", write_study(tmp_path), "-i", inventory, "--create-only")
    assert created.code == 0, created.text
    targets = Inventory(inventory).targets(("sql16",))
    (tmp_path / "private").mkdir(mode=0o700)
    store = f"sqlite:///{next(vnuma_home.glob('*.db'))}"
    hosts = write_play_inventory(tmp_path / "private", Inventory(inventory), targets)
    known = Private(
        store,
        str(vnuma_home),
        "small.1",
        resolve_all(secret for target in targets.values() for secret in target.secrets),
        {},
    )
    private = known.write(tmp_path / "private")

    for name in ("VNUMA_SQL_PASSWORD", "ANSIBLE_BECOME_PASS", "ANSIBLE_HASHI_VAULT_TOKEN"):
        monkeypatch.setenv(name, LITERAL)
    monkeypatch.setenv("ANSIBLE_VAULT_IDENTITY_LIST", "site@prompt")
    monkeypatch.setenv("VNUMA_STORE", f"postgresql://u:{LITERAL}@db/x")
    folder = tmp_path / "runner"
    played = play_study("small.1", ["sql16"], 1, hosts, private, folder, 4, lambda: False)

    assert played.ok, played.output
    kept = [path for path in folder.rglob("*") if path.is_file()]
    content = b"".join(path.read_bytes() for path in kept)
    assert kept
    assert running.vcenter.password.encode() not in content
    assert LITERAL.encode() not in content
    assert json.loads(private.read_text(encoding="utf-8"))["secrets"]
    assert private.stat().st_mode & 0o777 == 0o600
