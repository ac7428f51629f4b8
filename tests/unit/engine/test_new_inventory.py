"""An inventory from a few answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.support.cli import on_terminal, vnuma, vnuma_here
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
        assert str(file) in ran.err
    assert not (tmp_path / "site").exists()


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


@pytest.mark.parametrize("read", [vcenter_address, sql_address])
@pytest.mark.parametrize(
    "given", ["", "host:65536", "a:b:c", "1:2:3", "[host]:443", "[fe80::1", "[fe80::1]443", "https://host"]
)
def test_what_is_no_address_is_refused(read: Callable[[str], object], given: str) -> None:
    """A port has a last one; more than one colon is IPv6 or a mistake; brackets are for IPv6."""
    with pytest.raises(InputError, match="valid address") as caught:
        read(given)
    assert f"'{given}'" in caught.value.what


def test_a_vcenters_ipv6_address_may_have_a_port() -> None:
    """In brackets, as in a URL; without a port it needs none."""
    assert vcenter_address("[fe80::1]:8443") == {"host": "fe80::1", "port": 8443}
    assert vcenter_address("fe80::1") == {"host": "fe80::1"}


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ("sql16.example", {"host": "sql16.example"}),
        ("10.0.0.7:1434", {"host": "10.0.0.7", "port": 1434}),
        ("sql16,1434", {"host": "sql16", "port": 1434}),
        ("sql16\\PROD", {"host": "sql16", "instance": "PROD"}),
        ("fe80::1", {"host": "fe80::1"}),
        ("[fe80::1]:1434", {"host": "fe80::1", "port": 1434}),
    ],
)
def test_a_port_or_an_instance_may_stand_behind_sql_servers_name(
    tmp_path: Path, given: str, fields: dict[str, object]
) -> None:
    """As people write it; each becomes a field of its own."""
    answers = Answers("vc1", "u", "", "sql16", given, "vnuma", True)

    document = YAML(typ="safe").load(write_inventory(tmp_path / "new", answers))

    sql = document["all"]["children"]["vnuma_vms"]["hosts"]["sql16"]["vnuma_sql"]
    assert {key: sql[key] for key in ("host", "port", "instance") if key in sql} == fields


def test_at_the_prompts_a_bad_answer_is_asked_for_again(tmp_path: Path) -> None:
    """A URL is refused at its own question; the answers before and after it count."""
    folder = tmp_path / "new"
    typed = ["https://vc1/ui", "vc1", "u", "", "sql16", "sql16:x", "sql16:1434", "", "", "y"]

    said = "\n".join(on_terminal(100, "init", "--folder", folder, typed="".join(f"{one}\n" for one in typed)))

    document = YAML(typ="safe").load(folder / "hosts.yml")
    group = document["all"]["children"]["vnuma_vms"]
    assert "https://vc1/ui" in said.split("User")[0]
    assert group["vars"]["vnuma_vcenter"]["host"] == "vc1"
    assert group["hosts"]["sql16"]["vnuma_sql"]["port"] == 1434
    assert group["hosts"]["sql16"]["vnuma_test_clone"] is True


def test_without_a_terminal_defaults_hold_and_what_has_none_is_named(tmp_path: Path) -> None:
    """The documented example writes; one that lacks something says all of it at once."""
    folder = tmp_path / "new"
    example = ("--vcenter", "vc1", "--user", "u", "--vm", "sql16", "--sql-host", "sql16", "--test-clone")

    written = vnuma("init", "--folder", folder, *example)
    lacking = vnuma("init", "--folder", tmp_path / "other", "--user", "u")
    invalid = vnuma("init", "--folder", tmp_path / "other", *example, "--sql-host", "a b")

    assert (written.code, (folder / "hosts.yml").exists()) == (0, True)
    assert "user: vnuma" in (folder / "hosts.yml").read_text(encoding="utf-8")
    assert lacking.code == 2
    assert all(option in lacking.err for option in ("--vcenter", "--vm", "--sql-host"))
    assert (invalid.code, "--sql-host" in invalid.err) == (2, True)
    for option in ("--user", "--vm", "--sql-user"):
        empty = vnuma("init", "--folder", tmp_path / "other", *example, option, "")
        assert (empty.code, option in empty.err) == (2, True)
    assert not (tmp_path / "other").exists()


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


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """It is the user's to choose another; no bug."""
    (tmp_path / "file").write_text("no folder\n", encoding="utf-8")
    example = ("--vcenter", "vc1", "--user", "u", "--vm", "sql16", "--sql-host", "sql16")

    ran = vnuma_here("init", "--folder", tmp_path / "file" / "site", *example)

    assert ran.code == 3, ran.text
    assert str(tmp_path / "file" / "site") in ran.err
    assert "--folder" in ran.err


def test_a_pasted_answer_may_have_spaces_around_it(tmp_path: Path) -> None:
    """A login with one would be refused by the server, and nobody could see why."""
    folder = tmp_path / "new"
    typed = ["vc1", "u@vsphere.local ", "", "sql16 ", "sql16:1434", " vnuma", "", "y"]

    said = "\n".join(on_terminal(100, "init", "--folder", folder, typed="".join(f"{one}\n" for one in typed)))

    vms = YAML(typ="safe").load(folder / "hosts.yml")["all"]["children"]["vnuma_vms"]
    assert vms["vars"]["vnuma_vcenter"]["user"] == "u@vsphere.local", said
    assert list(vms["hosts"]) == ["sql16"]
    assert vms["hosts"]["sql16"]["vnuma_sql"]["user"] == "vnuma"


def test_a_refused_answer_comes_with_what_would_do(tmp_path: Path) -> None:
    """People paste the address of the browser."""
    folder = tmp_path / "new"
    typed = ["https://vc1/ui", "vc1", "u", "", "sql16", "sql16", "", "", "y"]

    said = "\n".join(on_terminal(100, "init", "--folder", folder, typed="".join(f"{one}\n" for one in typed)))

    assert "HOST:PORT" in said.split("User")[0]
