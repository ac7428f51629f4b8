"""An inventory from a few answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.support.cli import vnuma_here
from vnuma.engine.access.new_inventory import Answers, write_inventory
from vnuma.errors import InputError


def test_each_server_has_its_own_ca(tmp_path: Path) -> None:
    """vCenter's certificate and SQL Server's seldom come from one CA; without one the system's count."""
    answers = Answers("vc1", "u", "/ca/vc.pem", "sql16", "sql16.example", "vnuma", True, "/ca/sql.pem")

    document = YAML(typ="safe").load(write_inventory(tmp_path / "both", answers))

    group = document["all"]["children"]["vnuma_vms"]
    assert group["vars"]["vnuma_vcenter"]["ca_file"] == "/ca/vc.pem"
    assert group["hosts"]["sql16"]["vnuma_sql"]["ca_file"] == "/ca/sql.pem"


def test_a_port_may_stand_behind_the_vcenters_name(tmp_path: Path) -> None:
    """It becomes a field of its own, as the inventory wants it."""
    answers = Answers("vc1.example:8443", "u", "", "sql16", "sql16.example", "vnuma", True)

    document = YAML(typ="safe").load(write_inventory(tmp_path / "new", answers))

    vcenter = document["all"]["children"]["vnuma_vms"]["vars"]["vnuma_vcenter"]
    assert (vcenter["host"], vcenter["port"]) == ("vc1.example", 8443)


def test_a_proxy_is_checked_before_it_is_written(tmp_path: Path) -> None:
    """One that could not be used is refused, and no file is written."""
    answers = Answers("vc1", "u", "", "sql16", "sql16.example", "vnuma", True, proxy="proxy.example:3128")
    document = YAML(typ="safe").load(write_inventory(tmp_path / "new", answers))
    assert document["all"]["children"]["vnuma_vms"]["vars"]["vnuma_vcenter"]["proxy"] == "proxy.example:3128"

    with pytest.raises(InputError, match="proxy"):
        write_inventory(tmp_path / "bad", replace(answers, proxy="proxy.example"))
    assert not (tmp_path / "bad").exists()


def test_what_comes_next_reads_the_inventory_just_written(tmp_path: Path) -> None:
    """Without -i the doctor would look at another site's."""
    folder = tmp_path / "site 6"
    answers = {
        "--folder": str(folder), "--vcenter": "vc6", "--user": "u", "--ca-file": "", "--vm": "sql16",
        "--sql-host": "sql16", "--sql-user": "vnuma", "--sql-ca-file": "",
    }  # fmt: skip

    ran = vnuma_here("init", *(word for pair in answers.items() for word in pair), "--test-clone")

    assert f"vnuma doctor -i '{folder}'" in ran.out
