"""The workflow of GitHub names what this repository has; nothing here can run it."""

from __future__ import annotations

import re

import yaml

from tests.support.installation import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


def steps() -> list[str]:
    """The commands of all jobs."""
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_every_target_and_file_that_the_workflow_runs_is_there() -> None:
    """Renaming a target of the Makefile would break a release on its day."""
    text = "\n".join(steps())
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {name for names in re.findall(r"^make (.+)$", text, re.MULTILINE) for name in names.split()}

    assert {"dist", "wheelhouse", "smoke"} <= targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    assert (ROOT / ".ci" / "run").is_file()
    assert ".ci/run" in steps()


def test_a_release_is_made_only_of_what_passed() -> None:
    """And only of a tag that is this version's."""
    release = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["release"]

    assert set(release["needs"]) == {"ci", "pythons"}
    assert "refs/tags/v" in release["if"]
    assert any("pyproject.toml" in step.get("run", "") for step in release["steps"])
