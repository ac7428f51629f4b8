"""What an inventory may say of a SQL Server's encryption and login."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.inventory import read_targets, stored_target, study_targets
from vnuma.engine.access.target import Target, refuse_unknown, target_from
from vnuma.engine.preflight.preflight import unencrypted_connection, unused_login
from vnuma.errors import InputError

ROOT = Path(__file__).parents[3]
VCENTER = {"host": "vcenter", "user": "u", "password": {"env": "VC"}}
_GIVEN = {
    "vnuma_vcenter": VCENTER,
    "vnuma_sql": {"host": "sql16", "user": "sa", "password": {"env": "SQL"}},
}


def _target(**sql: object) -> Target:
    given = {"host": "sql16", "user": "sa", "password": {"env": "SQL"}, **sql}
    return target_from("sql16", {"vnuma_vcenter": VCENTER, "vnuma_sql": given}, "hosts.yml")


def _encrypt(**sql: object) -> str:
    return _target(**sql).server.encrypt


def test_encryption_is_mandatory_where_nothing_is_said() -> None:
    """Who says nothing is not read on the way."""
    assert _encrypt() == "mandatory"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (True, "mandatory"),
        ("yes", "mandatory"),
        ("Mandatory", "mandatory"),
        ("strict", "strict"),
        (False, "no"),
        ("no", "no"),
    ],
)
def test_the_words_of_microsofts_driver_are_taken(written: object, meant: str) -> None:
    """YAML makes booleans of yes and no."""
    assert _encrypt(encrypt=written) == meant


def test_an_inventory_that_says_optional_is_told_what_to_write() -> None:
    """It was the default once, and gave the password to whoever denied encryption."""
    with pytest.raises(InputError, match=r"(?s)vnuma_sql\.encrypt.*optional.*mandatory.*ca_file"):
        _encrypt(encrypt="optional")


@pytest.mark.parametrize("setting", ["encrypt: no", "trust_server_certificate: true"])
def test_what_can_be_read_on_the_way_is_a_warning(setting: str) -> None:
    """With the VM, the setting that opens it, and what to write in its place."""
    name, _, word = setting.partition(": ")

    (finding,) = unencrypted_connection(_target(**{name: word}))

    assert (finding.id, finding.severity) == ("P35", "warn")
    assert "sql16" in finding.what
    assert setting in finding.what
    assert "ca_file" in finding.fix


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ({}, "user and password"),
        ({"password": None}, "user"),
        ({"user": ""}, "password"),
    ],
)
def test_a_login_that_kerberos_replaces_is_a_warning(sql: dict[str, object], named: str) -> None:
    """Who wrote both may believe that the SQL login is used."""
    (finding,) = unused_login(_target(kerberos=True, **sql))

    assert (finding.id, finding.severity) == ("P39", "warn")
    assert f"sql16 has {named} and kerberos: true" in finding.what
    assert f"Remove {named}" in finding.fix


@pytest.mark.parametrize("sql", [{}, {"kerberos": True, "user": "", "password": None}])
def test_one_way_to_log_in_is_no_finding(sql: dict[str, object]) -> None:
    """The SQL login, or Kerberos."""
    assert list(unused_login(_target(**sql))) == []


def test_a_verified_connection_is_no_finding() -> None:
    """It is what everybody has who says nothing."""
    assert list(unencrypted_connection(_target(ca_file="ca.pem"))) == []


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ({"authentication": "ActiveDirectoryPassword"}, r"Entra ID.*kerberos: true"),
        ({"host": "sql16\\SQL2019"}, r"(?i)instance"),
        ({"host": "sql16,1444"}, r"(?i)port"),
        ({"instance": "SQL2019", "port": 1444}, r"(?i)port or instance"),
        ({"instance": "a\nb"}, r"instance"),
    ],
)
def test_what_a_connection_string_would_say_is_reported_in_our_words(
    sql: dict[str, object], words: str
) -> None:
    """One sentence says what to write, or that it is not supported."""
    with pytest.raises(InputError, match=words):
        _target(**sql)


def test_an_instance_needs_no_port() -> None:
    """Its port is asked for at each login."""
    assert _target(instance="SQL2019").server.instance == "SQL2019"


def test_a_misspelt_field_is_met_with_the_one_that_was_meant() -> None:
    """With the host and the variable."""
    with pytest.raises(InputError, match=r"sql16: vnuma_sql\.usr: unknown field. Did you mean user\?"):
        _target(usr="sa")


@pytest.mark.parametrize("unknown", ["vnuma_testclone", "vnuma_approval", "vnuma_no_such_thing"])
def test_an_unknown_variable_is_refused_but_does_not_prevent_a_restore(unknown: str, tmp_path: Path) -> None:
    """Ignored, vnuma_testclone would leave a clone a production VM, and an approval would not be awaited."""
    inventory = tmp_path / "hosts.yml"
    hosts = {"all": {"hosts": {"sql16": {**_GIVEN, unknown: "yes"}}}}
    inventory.write_text(json.dumps(hosts), encoding="utf-8")

    with pytest.raises(InputError, match=f"host sql16: unknown variable {unknown}"):
        read_targets(inventory, ["sql16"])
    assert stored_target(inventory, "vcenter/1", "sql16").name == "sql16"


def test_a_misspelt_variable_is_met_with_the_one_that_was_meant() -> None:
    """An unknown one that resembles none is not."""
    with pytest.raises(InputError, match=r"vnuma_testclone\. Did you mean vnuma_test_clone\?"):
        refuse_unknown("sql16", ["vnuma_testclone"], "hosts.yml")
    with pytest.raises(InputError) as caught:
        refuse_unknown("sql16", ["vnuma_approval"], "hosts.yml")
    assert "Did you mean" not in caught.value.what


def test_variables_of_plays_and_of_the_site_are_accepted() -> None:
    """A group may set a role's variable, and a site has names of its own."""
    refuse_unknown("sql16", ["vnuma_study", "vnuma_awx_image", "sql_password", "vnumax"], "hosts.yml")


def test_every_variable_of_the_playbooks_is_known() -> None:
    """Else an inventory that sets one for a playbook is refused."""
    names = {
        name
        for file in (ROOT / "playbooks").glob("*.yml")
        for name in re.findall(r"{{ *(vnuma_\w+)", file.read_text(encoding="utf-8"))
    }

    refuse_unknown("sql16", names, "hosts.yml")


def test_a_linux_machine_with_an_unknown_variable_is_refused(tmp_path: Path) -> None:
    """Its host has neither vnuma_vcenter nor vnuma_sql."""
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all: {hosts: {box: {vnuma_approval: required}}}\n", encoding="utf-8")

    with pytest.raises(InputError, match="host box: unknown variable vnuma_approval"):
        read_targets(inventory, ["box"])


SHAPING = "vcpus: 16\narms: [2x8]\nreference: 2x8\n"
AS_IT_IS = "arms: [{topology: keep, name: local}]\nreference: local\nworkload: {name: page_cache}\n"
IN_A_SHELL = f"{SHAPING}workload: {{name: page_cache}}\n"


@pytest.mark.parametrize(
    ("study", "parts", "lacks"),
    [
        (SHAPING, {"vnuma_vcenter", "vnuma_sql"}, None),
        (SHAPING, {"vnuma_vcenter"}, "has no SQL Server"),
        (SHAPING, {"vnuma_sql"}, "has no vCenter"),
        (SHAPING, set(), "has no vCenter"),
        (IN_A_SHELL, {"vnuma_vcenter"}, None),
        (IN_A_SHELL, {"vnuma_vcenter", "vnuma_sql"}, None),
        (IN_A_SHELL, set(), "has no vCenter"),
        (AS_IT_IS, set(), None),
        (AS_IT_IS, {"vnuma_vcenter"}, "no arm of the study shapes it"),
    ],
)
def test_a_target_that_lacks_a_part_which_the_study_needs_is_refused(
    study: str, parts: set[str], lacks: str | None, tmp_path: Path
) -> None:
    """What shapes it, and SQL Server, before anything is asked. A shell needs no variable of ours."""
    inventory = tmp_path / "hosts.json"
    host = {name: value for name, value in _GIVEN.items() if name in parts}
    inventory.write_text(json.dumps({"all": {"hosts": {"box": host}}}), encoding="utf-8")
    parsed = parse_study(f"name: a\nvm: box\n{study}", "study")

    if lacks is None:
        assert set(study_targets(inventory, parsed)) == {"box"}
    else:
        with pytest.raises(InputError, match=f"box .*{lacks}"):
            study_targets(inventory, parsed)


@pytest.mark.parametrize(("workload", "may_go_without"), [("page_cache", True), ("cross_join", False)])
def test_only_a_guest_used_by_its_shell_is_sent_away_from_vcenter(
    workload: str, tmp_path: Path, *, may_go_without: bool
) -> None:
    """Without vnuma_vcenter a study of SQL Server would be refused next."""
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"all": {"hosts": {"box": _GIVEN}}}), encoding="utf-8")
    study = f"name: a\nvm: box\n{AS_IT_IS.replace('page_cache', workload)}"

    with pytest.raises(InputError) as refused:
        study_targets(inventory, parse_study(study, "study"))

    assert ("vnuma_vcenter" in str(refused.value.fix)) == may_go_without
