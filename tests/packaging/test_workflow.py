"""The workflow of GitHub names what this repository has; nothing here can run it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.installation import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


def steps() -> list[str]:
    """The commands of all jobs."""
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def git(folder: Path, *words: str) -> None:
    """Run git there, with no configuration but this."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "gpg.format=ssh")
    clean = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *who, *words], cwd=folder, env=clean, check=True, capture_output=True)


def key(folder: Path, name: str) -> Path:
    """A new SSH key's public half."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
    subprocess.run(words, check=True, capture_output=True)
    return folder / f"{name}.pub"


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@pytest.mark.parametrize(
    ("tag", "released"),
    [("signed", True), ("by another", False), ("unsigned", False), ("own file", False), ("branch", False)],
)
def test_a_tag_is_released_only_if_a_maintainer_signed_it(tmp_path: Path, tag: str, released: bool) -> None:
    """The workflow's own step: the key is in main's file, not in the tag's, and the commit is main's."""
    job = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["release"]
    (step,) = [step["run"] for step in job["steps"] if "verify-tag" in step.get("run", "")]
    ours, theirs = key(tmp_path, "ours"), key(tmp_path, "theirs")
    clone = tmp_path / "clone"
    signers = clone / ".github" / "allowed_signers"
    signers.parent.mkdir(parents=True)
    signers.write_text(f"a@example.org {ours.read_text()}")
    git(clone, "init", "-q", "-b", "main")
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "a")
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    if tag in ("own file", "branch"):
        signers.write_text(f"a@example.org {theirs.read_text()}")
        git(clone, "commit", "-q", "-a", "-m", "b")
    if tag == "own file":  # it is main's by now, where a later commit took the key back
        git(clone, "revert", "-n", "HEAD")
        git(clone, "commit", "-q", "-m", "c")
        git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
        git(clone, "checkout", "-q", "HEAD^")
    signer = theirs if tag in ("by another", "own file") else ours
    how = ["-a"] if tag == "unsigned" else ["-s", "-u", str(signer)]
    git(clone, "tag", *how, "-m", "v", "v1")

    environment = os.environ | {"GITHUB_REF_NAME": "v1", "RUNNER_TEMP": str(tmp_path)}
    done = subprocess.run(["bash", "-e", "-c", step], cwd=clone, env=environment, capture_output=True)

    assert (done.returncode == 0) is released, done.stderr


def test_every_target_and_file_that_the_workflow_runs_is_there() -> None:
    """Renaming a target of the Makefile would break a release on its day."""
    text = "\n".join(steps())
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {name for names in re.findall(r"^make (.+)$", text, re.MULTILINE) for name in names.split()}

    assert {"dist", "what-if", "wheelhouse", "smoke"} <= targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    assert (ROOT / ".ci" / "run").is_file()
    assert ".ci/run" in steps()


def test_a_release_is_made_only_of_what_passed() -> None:
    """And only of a tag that is this version's."""
    release = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["release"]

    assert set(release["needs"]) == {"ci", "pythons"}
    assert "refs/tags/v" in release["if"]
    assert any("pyproject.toml" in step.get("run", "") for step in release["steps"])
