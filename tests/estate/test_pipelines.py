"""The GitHub Action and the GitLab template, run as their CI systems would run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
RED = "examples/terraform/plan.json"
HOST = ("--host-nodes", "2x16/256@7.0")


def _script(text: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A script as a runner calls it, in the repository's root."""
    inherited = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": environment["RUNNER_TEMP"],
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text],
        cwd=ROOT,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("fail_on", "code"), [("block", 10), ("never", 0)])
def test_the_action_checks_and_says_where(tmp_path: Path, fail_on: str, code: int) -> None:
    """SARIF at file and line, a summary in Markdown, and the exit code of the condition."""
    program = tmp_path / "vnuma" / "bin" / "vnuma"
    program.parent.mkdir(parents=True)
    program.symlink_to(Path(sys.executable).with_name("vnuma"))
    action = _read("action.yml")
    (check,) = [step for step in action["runs"]["steps"] if step["name"] == "Check"]
    inputs = {"design": RED, "options": "\n".join(HOST), "fail-on": fail_on, "image": ""}
    assert inputs.keys() <= action["inputs"].keys()
    named = {name: value.strip("${} ").removeprefix("inputs.") for name, value in check["env"].items()}
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    ran = _script(
        check["run"],
        {name: inputs[given] for name, given in named.items()} | files | {"RUNNER_TEMP": str(tmp_path)},
    )
    assert ran.returncode == code, ran.stderr
    outputs = dict(line.split("=", 1) for line in Path(files["GITHUB_OUTPUT"]).read_text().splitlines())
    assert outputs.keys() == action["outputs"].keys()
    (run,) = json.loads(Path(outputs["sarif"]).read_text(encoding="utf-8"))["runs"]
    places = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    assert {place["artifactLocation"]["uri"] for place in places} == {"examples/terraform/main.tf"}
    assert Path(files["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8").count("T11") > 0


def test_the_gitlab_job_checks_and_keeps_its_files(tmp_path: Path) -> None:
    """Its lines one after another, as GitLab's shell runs them; the reports stand before the job fails."""
    job = _read("examples/gitlab/vnuma.gitlab-ci.yml")["vnuma"]
    given = {"VNUMA_DESIGN": str(ROOT / RED), "VNUMA_OPTIONS": " ".join(HOST), "RUNNER_TEMP": str(tmp_path)}
    lines = [f"cd {tmp_path}", *job["script"]]
    ran = _script("\n".join(lines), job["variables"] | given)
    assert ran.returncode == 10, ran.stderr
    made = {file.name for file in tmp_path.iterdir() if file.is_file()}
    assert {*job["artifacts"]["paths"]} <= made


def test_the_hook_takes_the_files_that_pre_commit_names() -> None:
    """pre-commit appends them to the entry and its arguments."""
    (hook,) = _read(".pre-commit-hooks.yaml")
    words = [str(Path(sys.executable).with_name(hook["entry"].split()[0])), *hook["entry"].split()[1:], *HOST]
    ran = subprocess.run([*words, RED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 10
