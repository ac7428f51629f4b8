"""Action plugins, their documentation stubs and what they share."""

from __future__ import annotations

import errno
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.playbook.task import Task
from pydantic import BaseModel

from tests.unit.ansible.content import ACTIONS, ROLES, ROOT, Options, stub_block
from vnuma.ansible.action import VnumaAction, plain, target_of
from vnuma.engine.access.secrets import masked
from vnuma.engine.access.target import SqlTarget, Target, VCenterTarget
from vnuma.errors import InputError, StoreError

TARGET: dict[str, Any] = {
    "name": "sql16",
    "vm": "sql16",
    "vcenter": {"host": "vc", "user": "u", "password": {"env": "VC"}},
    "sql": {"host": "s", "user": "u", "password": {"env": "SQL"}},
}


def documented_target() -> Options:
    """The suboptions of `target` as the fragment describes them."""
    path = ROOT / "plugins" / "doc_fragments" / "target.py"
    scope: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    options: Options = yaml.safe_load(scope["ModuleDocFragment"].DOCUMENTATION)["options"]
    suboptions: Options = options["target"]["suboptions"]
    return suboptions


def test_every_action_is_documented_and_every_document_has_an_action() -> None:
    """A plugin and its stub have the same name."""
    stubs = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))

    assert stubs == ACTIONS


@pytest.mark.parametrize("action", ACTIONS)
def test_examples_use_options_that_exist(action: str, specs: dict[str, Options]) -> None:
    """Each example names the action in full and only options that it has."""
    spec = specs[action]
    required = {name for name, option in spec.items() if option.get("required")}

    for task in stub_block(action, "EXAMPLES"):
        options = set(task[f"vnuma.vnuma.{action}"])
        assert required <= options <= set(spec)


@pytest.mark.parametrize("action", ACTIONS)
def test_return_values_are_described_with_a_sample_of_their_type(action: str) -> None:
    """Who writes a playbook sees when a value is there and what it looks like."""
    types = {"dict": dict, "list": list, "str": str, "int": int, "bool": bool}

    for name, value in stub_block(action, "RETURN").items():
        assert {"description", "returned", "type"} <= set(value), name
        if value["type"] != "bool":
            assert isinstance(value["sample"], types[value["type"]]), name


@pytest.mark.parametrize(
    ("model", "path"), [(Target, ()), (VCenterTarget, ("vcenter",)), (SqlTarget, ("sql",))]
)
def test_the_target_is_documented_as_the_engine_reads_it(
    model: type[BaseModel], path: tuple[str, ...]
) -> None:
    """Fields, defaults and which are required: the fragment says what `Target` checks."""
    options = documented_target()
    for step in path:
        options = options[step]["suboptions"]
    fields = model.model_fields

    assert set(options) == set(fields)
    for name, field in fields.items():
        assert bool(options[name].get("required")) == field.is_required(), name
        if not field.is_required():
            default = list(field.default) if isinstance(field.default, tuple) else field.default
            assert options[name].get("default") == default, name


def as_written(value: Any) -> Any:
    """Data with the tag that Ansible gives to the text of a playbook or an inventory."""
    from ansible.template import trust_as_template  # noqa: PLC0415 - half a second that only this test needs

    if isinstance(value, dict):
        return {key: as_written(item) for key, item in value.items()}
    return trust_as_template(value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vcenter": {"host": "v"}}, "vcenter"),
        ({"extra": 1}, "extra"),
        ({"sql": {"host": "s"}}, "give user and password, or kerberos: true"),
        ({"vcenter": {"host": "v", "user": "u", "password": "hunter2"}}, "a password is a reference"),
    ],
)
def test_a_wrong_target_is_named(change: dict[str, Any], said: str) -> None:
    """The message has the field and what would be right, and never the value of a password."""
    with pytest.raises(InputError) as raised:
        target_of({"target": TARGET | as_written(change)})

    assert said in raised.value.what
    assert "hunter2" not in str(raised.value)


def test_results_are_json_types_only() -> None:
    """Workers hand results to their parent: dataclasses, enums and tuples become plain values."""

    class Colour(Enum):
        RED = "red"

    @dataclass(frozen=True)
    class Pair:
        left: tuple[int, ...]
        right: Colour

    assert plain({1: Pair((1, 2), Colour.RED), "n": None}) == {
        "1": {"left": [1, 2], "right": "red"},
        "n": None,
    }


def test_options_are_read_when_a_plugin_is_imported() -> None:
    """The play's parent imports a plugin once, so no worker reads documentation or imports vnuma again."""
    program = """
import sys
from ansible.plugins.loader import action_loader, init_plugin_loader
init_plugin_loader()
for name in sys.argv[1:]:
    plugin = action_loader.get(f"vnuma.vnuma.{name}", class_only=True)
    assert plugin.spec["target"]["required"], name
needed = {"vnuma.engine.actions.steps", "vnuma.vsphere.connect", "vnuma.sqlserver.client.connect"}
missing = needed - set(sys.modules)
assert not missing, missing
unwanted = {"numpy", "scipy", "alembic", "vl_convert", "ansible_runner"} & set(sys.modules)
assert not unwanted, unwanted
"""
    command = [sys.executable, "-c", program, *ACTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_full_disk_fails_the_task_with_its_exit_code() -> None:
    """Playbooks read `error` and `exit_code`, whatever the step could not do."""

    def act(task: VnumaAction, options: Options, check: bool) -> Options:
        raise OSError(errno.ENOSPC, "No space left on device", "/work/x")

    writes = type("Writes", (VnumaAction,), {"spec": {}, "act": act})
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/unused"))
    prompts = SimpleNamespace(password=None, become_pass=None)
    action = writes(Task(), connection, prompts, *[None] * 3)

    failed = action.run(task_vars={})

    assert (failed["failed"], failed["error"], failed["exit_code"]) == (
        True,
        "StoreError",
        StoreError.exit_code,
    )


def test_a_password_that_cannot_be_templated_fails_no_task() -> None:
    """It may be that of a connection which is not used."""
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415 - half a second that only this test needs
    from ansible.template import Templar  # noqa: PLC0415

    def act(task: VnumaAction, options: Options, check: bool) -> Options:
        return {"said": {"s3cret": masked("s3cret")}}

    variables = as_written(
        {"ansible_httpapi_password": "{{ nowhere }}", "ansible_password": "{{ 's3' }}cret"}
    )
    says = type("Says", (VnumaAction,), {"spec": {}, "act": act})
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/unused"))
    prompts = SimpleNamespace(password=None, become_pass=None)
    action = says(Task(), connection, prompts, None, Templar(DataLoader(), variables), None)

    assert action.run(task_vars=variables)["said"] == {"s3cret": "***"}


def test_a_plays_workers_know_its_machine_by_one_name() -> None:
    """Each step is a new process: one that asked after a rename was refused as another supervisor."""
    program = """
import socket
before = socket.gethostname()
from vnuma.ansible.action import VnumaAction
from vnuma.engine.access.locking import this_host
socket.gethostname = lambda: "renamed"
assert this_host().startswith(before), this_host()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("kind", "names"),
    [("module", ACTIONS), ("role", ROLES), ("inventory", ["lab"])],
)
def test_ansible_doc_shows_it(kind: str, names: list[str], tmp_path: Path) -> None:
    """Every module, role and inventory plugin has documentation that Ansible can read."""
    program = Path(sys.executable).parent / "ansible-doc"
    full = [f"vnuma.vnuma.{name}" for name in names]
    done = subprocess.run(
        [str(program), "-t", kind, *full], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert [name for name in names if name not in done.stdout] == []
