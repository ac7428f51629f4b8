"""An inventory from a few answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.support.cli import on_terminal, vnuma, vnuma_here
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.new_inventory import Answers, sql_address, vcenter_address, write_inventory
from vnuma.errors import InputError


@pytest.mark.parametrize("option", ["--ca-file", "--sql-ca-file"])
def test_a_ca_file_that_holds_no_certificate_is_refused(option: str, tmp_path: Path) -> None:
    """Before an inventory is written whose every connection would fail."""
    text = tmp_path / "ca.pem"
    text.write_text("no certificate\n", encoding="utf-8")
    for file in (text, tmp_path / "missing.pem"):
        given = ("--vcenter", "vc6", "--user", "u", "--vm", "sql16", "--sql-host", "sql16", option, file)
        ran = vnuma_here("init", "--folder", tmp_path / "site", *given)
        assert ran.code == 2, ran.text
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("read", [vcenter_address, sql_address])
@pytest.mark.parametrize(
    "given", ["", "host:65536", "a:b:c", "1:2:3", "[host]:443", "[fe80::1", "[fe80::1]443", "https://host"]
)
def test_what_is_no_address_is_refused(read: Callable[[str], object], given: str) -> None:
    """A port has a last one; more than one colon is IPv6 or a mistake; brackets are for IPv6."""
    with pytest.raises(InputError):
        read(given)


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ("sql16.example", {"host": "sql16.example"}),
        ("10.0.0.7:1434", {"host": "10.0.0.7", "port": 1434}),
        ("fe80::1", {"host": "fe80::1"}),
        ("[fe80::1]:1434", {"host": "fe80::1", "port": 1434}),
        ("sql16,1434", {"host": "sql16", "port": 1434}),
        ("sql16\\PROD", {"host": "sql16", "instance": "PROD"}),
    ],
)
def test_a_port_or_an_instance_may_stand_behind_a_servers_name(given: str, fields: dict[str, object]) -> None:
    """As people write it; only SQL Server has instances, and ports behind a comma."""
    assert sql_address(given) == fields
    if "," not in given and "\\" not in given:
        assert vcenter_address(given) == fields


def test_each_answer_has_its_own_field(tmp_path: Path) -> None:
    """vCenter's certificate and SQL Server's seldom come from one CA."""
    answers = Answers("vc1:8443", "u", "/ca/vc.pem", "sql16", "sql16,1434", "vnuma", True, "/ca/sql.pem")

    group = YAML(typ="safe").load(write_inventory(tmp_path / "new", answers))["all"]["children"]["vnuma_vms"]

    vcenter, sql = group["vars"]["vnuma_vcenter"], group["hosts"]["sql16"]["vnuma_sql"]
    assert (vcenter["host"], vcenter["port"], vcenter["ca_file"]) == ("vc1", 8443, "/ca/vc.pem")
    assert (sql["host"], sql["port"], sql["ca_file"]) == ("sql16", 1434, "/ca/sql.pem")


def test_a_linux_guest_and_a_client_are_there_to_be_uncommented(tmp_path: Path) -> None:
    """The guest is a VM of the same vCenter, without SQL Server; the client is none."""
    path = write_inventory(tmp_path, Answers("vc1", "u", "", "sql16", "sql16", "vnuma", False))
    assert {*Inventory(path).targets()} == {"sql16"}
    path.write_text(path.read_text("utf-8").replace("\n#  ", "\n  "), encoding="utf-8")

    targets = Inventory(path).targets()

    assert {*targets} == {"sql16", "linux16"}
    assert (targets["linux16"].hypervisor.host, targets["linux16"].sql) == ("vc1", None)
    Inventory(path).require_client("loadgen")


def test_at_the_prompts_a_bad_answer_is_asked_for_again(tmp_path: Path) -> None:
    """A URL or a wrong port is asked for again; the other answers count, without pasted spaces."""
    folder = tmp_path / "new"
    typed = ["https://vc1/ui", "vc1", "u@x ", "", "sql16 ", "sql16:x", "sql16:1434", " vnuma", "", "y"]

    on_terminal(100, "init", "--folder", folder, typed="".join(f"{one}\n" for one in typed))

    group = YAML(typ="safe").load(folder / "hosts.yml")["all"]["children"]["vnuma_vms"]
    vcenter, host = group["vars"]["vnuma_vcenter"], group["hosts"]["sql16"]
    assert (vcenter["host"], vcenter["user"]) == ("vc1", "u@x")
    assert (host["vnuma_sql"]["port"], host["vnuma_sql"]["user"]) == (1434, "vnuma")
    assert host["vnuma_test_clone"] is True


def test_without_a_terminal_defaults_hold_and_what_has_none_is_named(tmp_path: Path) -> None:
    """The documented example writes; one that lacks something says all of it at once."""
    folder = tmp_path / "new"
    example = ("--vcenter", "vc1", "--user", "u", "--vm", "sql16", "--sql-host", "sql16", "--test-clone")

    written = vnuma("init", "--folder", folder, *example)
    lacking = vnuma("init", "--folder", tmp_path / "other", "--user", "u")
    invalid = vnuma("init", "--folder", tmp_path / "other", *example, "--sql-host", "a b")

    assert (written.code, (folder / "hosts.yml").exists()) == (0, True)
    assert (lacking.code, invalid.code) == (2, 2)
    assert all(option in lacking.err for option in ("--vcenter", "--vm", "--sql-host"))
    for option in ("--user", "--vm", "--sql-user"):
        empty = vnuma("init", "--folder", tmp_path / "other", *example, option, "")
        assert empty.code == 2
    assert not (tmp_path / "other").exists()


def test_a_proxy_is_checked_before_it_is_written(tmp_path: Path) -> None:
    """One that could not be used is refused, and no file is written."""
    answers = Answers("vc1", "u", "", "sql16", "sql16.example", "vnuma", True, proxy="proxy.example:3128")
    document = YAML(typ="safe").load(write_inventory(tmp_path / "new", answers))
    assert document["all"]["children"]["vnuma_vms"]["vars"]["vnuma_vcenter"]["proxy"] == "proxy.example:3128"

    with pytest.raises(InputError):
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


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """It is the user's to choose another; no bug."""
    (tmp_path / "file").write_text("no folder\n", encoding="utf-8")
    example = ("--vcenter", "vc1", "--user", "u", "--vm", "sql16", "--sql-host", "sql16")

    ran = vnuma_here("init", "--folder", tmp_path / "file" / "site", *example)

    assert ran.code == 3, ran.text
