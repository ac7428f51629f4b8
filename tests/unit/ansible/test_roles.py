"""What roles say of themselves agrees with what they do: options, defaults, README, roles.md."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.unit.ansible.content import ROLES, ROOT, Options, load, role_options, stub_block
from tools.roles_doc import ORDER, PAGE, page
from vnuma.domain.study.study import PowerRules
from vnuma.engine.actions.by_hand import DEADLINES


@pytest.mark.parametrize("role", ROLES)
def test_documented_defaults_are_the_real_ones(role: str) -> None:
    """A spec's default is documentation only, so it must equal defaults/main.yml, names and values."""
    documented = {
        name: option["default"] for name, option in role_options(role).items() if "default" in option
    }

    assert load(f"roles/{role}/defaults/main.yml") == documented


@pytest.mark.parametrize("role", ROLES)
def test_an_option_is_required_or_has_a_default(role: str) -> None:
    """No option is left undefined: each has a default, or the role refuses to begin without it."""
    neither = [
        name
        for name, option in role_options(role).items()
        if bool(option.get("required")) == ("default" in option)
    ]

    assert neither == []


@pytest.mark.parametrize("role", ROLES)
def test_variables_carry_the_role_s_name(role: str) -> None:
    """Options begin with the role's name, so that two roles never share one by accident."""
    strays = [name for name in role_options(role) if not name.startswith(f"{role}_")]

    assert strays == []


@pytest.mark.parametrize("role", sorted(set(ROLES) - {"cell"}))
def test_a_role_s_options_are_its_action_s(role: str, specs: dict[str, Options]) -> None:
    """Role and action of one name take the same options, with the same types, defaults and choices."""
    keys = ("type", "default", "choices")
    spec = specs[role]
    of_action = {name: {key: spec[name].get(key) for key in keys} for name in spec if name != "target"}
    of_role = {
        name.removeprefix(f"{role}_"): {key: option.get(key) for key in keys}
        for name, option in role_options(role).items()
        if name != f"{role}_target"
    }

    assert of_role == of_action


@pytest.mark.parametrize("role", sorted(set(ROLES) - {"cell"}))
def test_a_role_hands_every_option_to_its_action(role: str) -> None:
    """Each option reaches the action under its own name; none is documented and then forgotten."""
    (task,) = load(f"roles/{role}/tasks/main.yml")

    assert task[f"vnuma.vnuma.{role}"] == {
        name.removeprefix(f"{role}_"): f"{{{{ {name} }}}}" for name in role_options(role)
    }


@pytest.mark.parametrize("role", ROLES)
def test_a_role_s_description_is_one(role: str) -> None:
    """meta/main.yml and the argument spec describe the role in words that do not contradict each other."""
    meta = load(f"roles/{role}/meta/main.yml")["galaxy_info"]
    spec = load(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"]

    assert meta["description"].startswith(spec["short_description"])
    assert meta["min_ansible_version"] == load("meta/runtime.yml")["requires_ansible"].strip(">=")[:4]


@pytest.mark.parametrize("role", ROLES)
def test_a_readme_answers_what_operators_ask(role: str) -> None:
    """Idempotence, check mode and rollback are named, and the example play uses options that exist."""
    text = (ROOT / "roles" / role / "README.md").read_text(encoding="utf-8")
    example = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    plays = yaml.safe_load(example)
    used = {
        name: set(entry) - {"role"}
        for entry in plays[0]["roles"]
        for name in [entry["role"].removeprefix("vnuma.vnuma.")]
    }

    assert [word for word in ("Idempotent", "Check mode", "Rollback") if not re.search(word, text)] == []
    assert role in used
    assert {name: options - set(role_options(name)) for name, options in used.items()} == {
        name: set() for name in used
    }


def test_the_page_of_roles_is_what_the_specs_say() -> None:
    """roles.md is written from the argument specs; after a change: python tools/roles_doc.py."""
    assert sorted(ORDER) == ROLES
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("action", ["vm_power", "vm_topology"])
def test_deadlines_outside_a_run_are_those_of_a_study(action: str) -> None:
    """Action and role state each default for Ansible: none differs from the rule that it stands for."""
    options, usual = stub_block(action, "DOCUMENTATION")["options"], PowerRules()
    of_role = role_options(action)

    assert {
        name: (options[name]["default"], of_role[f"{action}_{name}"]["default"])
        for name in options.keys() & DEADLINES.keys()
    } == {name: (getattr(usual, rule),) * 2 for name, rule in DEADLINES.items() if name in options}
