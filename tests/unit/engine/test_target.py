"""What an inventory may say of a SQL Server's encryption and login."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import Target, refuse_unknown, target_from
from vnuma.engine.notify import channels_of
from vnuma.engine.preflight.preflight import unencrypted_connection, unused_login
from vnuma.errors import EnvironmentProblem, InputError

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


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({}, "mandatory"),  # who says nothing is not read on the way
        *(({"encrypt": word}, "mandatory") for word in (True, "yes", "Mandatory")),
        ({"encrypt": "strict"}, "strict"),
        *(({"encrypt": word}, "no") for word in (False, "no")),
    ],
)
def test_the_words_of_microsofts_driver_are_taken(written: dict[str, object], meant: str) -> None:
    """YAML makes booleans of yes and no."""
    assert _encrypt(**written) == meant


@pytest.mark.parametrize("setting", ["encrypt: no", "trust_server_certificate: true"])
def test_what_can_be_read_on_the_way_is_a_warning(setting: str) -> None:
    """With the VM, the setting that opens it, and what to write in its place."""
    name, _, word = setting.partition(": ")

    (finding,) = unencrypted_connection(_target(**{name: word}))

    assert (finding.id, finding.severity) == ("P35", "warn")
    assert setting in finding.what
    assert list(unencrypted_connection(_target(ca_file="ca.pem"))) == []


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ({"kerberos": True}, "user and password"),
        ({"kerberos": True, "password": None}, "user"),
        ({"kerberos": True, "user": ""}, "password"),
        ({"kerberos": True, "user": "", "password": None}, None),
        ({}, None),
    ],
)
def test_a_login_that_kerberos_replaces_is_a_warning(sql: dict[str, object], named: str | None) -> None:
    """Who wrote both may believe that the SQL login is used."""
    found = [(one.id, one.severity, one.fix.partition(";")[0]) for one in unused_login(_target(**sql))]

    assert found == ([("P39", "warn", f"Remove {named}")] if named else [])


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ({"authentication": "ActiveDirectoryPassword"}, r"Entra ID.*kerberos: true"),
        ({"encrypt": "optional"}, r"Write mandatory"),  # it gave the password to whoever denied encryption
        ({"host": "sql16\\SQL2019"}, r"(?i)instance"),
        ({"host": "sql16,1444"}, r"(?i)port"),
        ({"instance": "SQL2019", "port": 1444}, r"(?i)port or instance"),
        ({"instance": "a\nb"}, r"instance"),
        ({"usr": "sa"}, r"sql16: vnuma_sql\.usr: unknown field. Did you mean user\?"),
        ({"instance": "SQL2019"}, None),  # its port is asked for at each login
    ],
)
def test_what_a_connection_string_would_say_is_reported_in_our_words(
    sql: dict[str, object], words: str | None
) -> None:
    """One sentence says what to write, or that it is not supported."""
    with pytest.raises(InputError, match=words) if words else nullcontext():
        _target(**sql)


@pytest.mark.parametrize(
    ("unknown", "meant"),
    [
        ("vnuma_testclone", ["vnuma_test_clone"]),
        ("vnuma_node", ["vnuma_site"]),
        ("vnuma_approval", []),
        ("vnuma_no_such_thing", []),
    ],
)
def test_an_unknown_variable_is_refused_but_does_not_prevent_a_restore(
    unknown: str, meant: list[str], tmp_path: Path
) -> None:
    """Ignored, vnuma_testclone would leave a clone a production VM, and an approval would not be awaited.

    A misspelt one is met with the one that was meant.
    """
    inventory = tmp_path / "hosts.yml"
    hosts = {"all": {"hosts": {"sql16": {**_GIVEN, unknown: "yes"}}}}
    inventory.write_text(json.dumps(hosts), encoding="utf-8")

    with pytest.raises(InputError) as refused:
        Inventory(inventory).targets(["sql16"])
    assert re.findall(r"Did you mean (\w+)", refused.value.what) == meant
    assert Inventory(inventory).stored_target("vcenter/1", "sql16").name == "sql16"


def test_a_channel_that_cannot_be_resolved_prevents_no_restore(tmp_path: Path) -> None:
    """The one reading gives both, but a lookup that fails counts only for those who ask for the channels."""
    path = tmp_path / "hosts.yml"
    host = {**_GIVEN, "vnuma_notify": "{{ lookup('file', '/nowhere') }}"}
    path.write_text(json.dumps({"all": {"hosts": {"sql16": host}}}), encoding="utf-8")
    inventory = Inventory(path)

    with pytest.raises(EnvironmentProblem):
        channels_of(inventory, ["sql16"])

    assert inventory.stored_target("vcenter/1", "sql16").vcenter


def test_every_variable_of_the_playbooks_is_known() -> None:
    """As are a role's, and a site's own: else an inventory that sets one for a playbook is refused."""
    names = {"vnuma_study", "vnuma_awx_image", "sql_password", "vnumax"}
    names |= {
        name
        for file in (ROOT / "playbooks").glob("*.yml")
        for name in re.findall(r"{{ *(vnuma_\w+)", file.read_text(encoding="utf-8"))
    }

    refuse_unknown("sql16", names, "hosts.yml")


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
        assert set(Inventory(inventory).study_targets(parsed)) == {"box"}
    else:
        with pytest.raises(InputError, match=f"box .*{lacks}"):
            Inventory(inventory).study_targets(parsed)


@pytest.mark.parametrize(("workload", "may_go_without"), [("page_cache", True), ("cross_join", False)])
def test_only_a_guest_used_by_its_shell_is_sent_away_from_vcenter(
    workload: str, tmp_path: Path, *, may_go_without: bool
) -> None:
    """Without vnuma_vcenter a study of SQL Server would be refused next."""
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"all": {"hosts": {"box": _GIVEN}}}), encoding="utf-8")
    study = f"name: a\nvm: box\n{AS_IT_IS.replace('page_cache', workload)}"

    with pytest.raises(InputError) as refused:
        Inventory(inventory).study_targets(parse_study(study, "study"))

    assert ("vnuma_vcenter" in str(refused.value.fix)) == may_go_without
