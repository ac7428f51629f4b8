"""awx/configure.yml offline: parameters that the modules of awx.awx know, and objects that fit each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ruamel.yaml import YAML

from tests.support.awx import AWX, Object, injected, load, named, objects

ROOT = Path(__file__).resolve().parents[2]
MODULES: dict[str, Any] = YAML(typ="safe").load(
    (ROOT / "tests/data/awx_modules.yml").read_text(encoding="utf-8")
)
TEMPLATES = {one.name: one.parameters for one in objects() if one.module == "job_template"}


@pytest.mark.parametrize("made", [pytest.param(one, id=f"{one.module} {one.name}") for one in objects()])
def test_every_object_has_parameters_that_its_module_knows(made: Object) -> None:
    """Names, types, choices and what is required, of nodes inside a workflow too."""
    result = ArgumentSpecValidator(MODULES[made.module]).validate(made.parameters)

    assert result.error_messages == []


def test_a_template_names_what_is_made_before_it() -> None:
    """Project, inventory, execution environment, credentials; each credential's type is one of ours."""
    made: set[tuple[str, str]] = set()
    for one in objects():
        wanted = {
            (module, name)
            for module in ("project", "inventory", "execution_environment", "credential_type")
            for name in [one.parameters.get(module) or one.parameters.get(f"source_{module}")]
            if name
        }
        wanted |= {("credential", name) for name in one.parameters.get("credentials", [])}
        assert wanted <= made, one
        made.add((one.module, one.name))


def test_each_template_s_survey_asks_what_its_playbook_reads() -> None:
    """No more, no less: other variables of a launch are ignored by AWX."""
    for name, template in TEMPLATES.items():
        text = (AWX / "project" / template["playbook"]).read_text(encoding="utf-8")
        read = set(re.findall(r"\bvnuma_(?:study|ticket|production|run|fail_on)\b", text))
        asked = {one["variable"] for one in template["survey_spec"]["spec"]}
        assert asked == read - ({"vnuma_run"} if name == "vnuma plan" else set()), name
        assert template["survey_enabled"]
        assert not template["ask_variables_on_launch"]


def test_a_site_s_jobs_run_in_its_instance_group() -> None:
    """They work on the VMs of that site, which the launch cannot change."""
    template = TEMPLATES["vnuma run at site-b"]

    assert template["instance_groups"] == ["site-b"]
    assert template["extra_vars"] == {"vnuma_site": "site-b"}
    assert not template["ask_variables_on_launch"]


def test_a_survey_s_question_is_complete() -> None:
    """As AWX's API wants one: a default among the choices, a known type."""
    for name in ("vnuma_awx_study_survey", "vnuma_awx_run_survey", "vnuma_awx_check_survey"):
        for one in load(AWX / "surveys.yml")[name]["spec"]:
            assert {"question_name", "variable", "type", "required", "default"} <= set(one)
            assert one["type"] in ("text", "multiplechoice")
            assert "choices" not in one or one["default"] in one["choices"]


def test_the_workflow_goes_from_plan_by_approval_to_run_and_report_and_restores_on_failure() -> None:
    """Each node is one of our templates; its survey's answers come from the workflow's or from the plan."""
    workflow = named("workflow_job_template", "vnuma study")
    nodes = {one["identifier"]: one for one in workflow["workflow_nodes"]}
    ways = {
        (start, kind, target["identifier"])
        for start, node in nodes.items()
        for kind, targets in node.get("related", {}).items()
        for target in targets
    }

    assert ways == {
        ("plan", "success_nodes", "approve"),
        ("approve", "success_nodes", "run"),
        ("run", "success_nodes", "report"),
        ("run", "failure_nodes", "restore"),
    }
    for identifier, node in nodes.items():
        kind, name = (node["unified_job_template"][key] for key in ("type", "name"))
        assert (kind, identifier) == ("workflow_approval", "approve") or name in TEMPLATES
    assert workflow["survey_spec"] == TEMPLATES["vnuma plan"]["survey_spec"]


def test_credentials_set_what_the_inventory_reads() -> None:
    """Every variable of the environment that the site's inventory names, and the ones of the store."""
    inventory = (AWX / "project/inventory/hosts.yml").read_text(encoding="utf-8")
    read = set(re.findall(r"env: (\w+)", inventory)) | set(re.findall(r"lookup\('env', '(\w+)'\)", inventory))
    login = {"user": "u", "password": "p"}
    given = injected("vnuma vCenter", login) | injected("vnuma SQL Server", login)

    assert set(given) == read
    store = injected("vnuma store", {"url": "postgresql://u@h/d", "password": "p", "home": "/tmp/x"})
    assert store == {
        "VNUMA_STORE": "postgresql://u@h/d",
        "PGPASSWORD": "p",
        "VNUMA_HOME": "/tmp/x",
    }
    assert injected("vnuma Kerberos", {"keytab": "/k"}) == {"KRB5_CLIENT_KTNAME": "/k"}


def test_no_password_is_written_into_an_object() -> None:
    """They are entered in AWX, and stay when configure.yml runs again."""
    for one in objects():
        if one.module == "credential":
            kind = named("credential_type", one.parameters["credential_type"])
            secret = {item["id"] for item in kind["inputs"]["fields"] if item.get("secret")}
            assert not secret & set(one.parameters["inputs"])
            assert one.parameters["update_secrets"] is False
