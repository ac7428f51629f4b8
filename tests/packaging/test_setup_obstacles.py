"""All obstacles to set-up are shown at once, each with the command that helps."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.installation import ROOT
from tools.setup_obstacles import Machine, obstacles
from tools.setup_shell import explained

GOOD = Machine(
    python=(3, 12, 1),
    venv=True,
    manager="apt-get",
    root=False,
    odbc=True,
    wheels=True,
    go=False,
    compiler=False,
    processor="x86_64",
)
"""An ordinary user's Debian with python3-venv and unixODBC."""

BARE = replace(GOOD, venv=False, odbc=False)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("OSError: [Errno 28] No space left on device", ("disk is full", "df -h")),
        ("WARNING: Retrying ... NewConnectionError(...)", ("network", "HTTPS_PROXY", "PIP_INDEX_URL")),
        ("Cannot connect to proxy. NewConnectionError", ("proxy", "HTTPS_PROXY")),
        ("SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED", ("certificate", "PIP_CERT")),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", ("locked", "pip cache purge")),
        ("error: command 'gcc' failed: No such file", ("wheel", "PYTHON=")),
        ("PermissionError: [Errno 13] Permission denied: 'x'", ("another user", "chown")),
    ],
)
def test_a_known_cause_is_one_sentence_and_its_remedy(output: str, words: tuple[str, ...]) -> None:
    """pip's pages of output become what happened and what to do."""
    text = explained(output, 1)

    assert len(text.splitlines()) == 2
    assert all(word in text for word in (*words, "make setup"))


def test_no_password_of_a_proxy_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy's address may hold a user and a password."""
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy.example:3128")

    assert "http://proxy.example:3128" in explained("ProxyError", 1)
    assert "secret" not in explained("ProxyError", 1) + explained("see http://user:secret@proxy.example", 1)


@pytest.mark.parametrize("name", ["setup", "setup_shell", "setup_obstacles", "setup_odbc"])
def test_an_old_python_can_read_set_up(name: str) -> None:
    """Python 3.7 must parse the files to report that it is too old."""
    source = (ROOT / "tools" / f"{name}.py").read_text(encoding="utf-8")

    ast.parse(source, feature_version=(3, 7))


@pytest.mark.parametrize(
    ("machine", "fixes"),
    [
        pytest.param(GOOD, [], id="every package and Go itself have wheels there"),
        pytest.param(replace(BARE, root=True), [], id="root: apt brings venv, unixODBC and the driver"),
        pytest.param(BARE, ["apt-get install -y python3-venv"], id="unixODBC is unpacked without root"),
        (replace(GOOD, odbc=False, manager="dnf"), ["dnf install -y unixODBC"]),
        (replace(GOOD, odbc=False, manager="zypper"), ["zypper install -y unixODBC"]),
        (replace(GOOD, odbc=False, manager="apk"), ["apk add unixodbc freetds"]),
        (replace(GOOD, odbc=False, manager="pacman"), ["pacman -S --needed unixodbc freetds"]),
    ],
)
def test_each_linux_family_gets_its_own_command(machine: Machine, fixes: list[str]) -> None:
    """What lacks is named with the package manager that this machine has; root needs no sudo."""
    assert [one.fix.split("sudo ")[-1] for one in obstacles(machine)] == fixes
    if machine.odbc is False and machine.manager != "apt-get":
        (as_root,) = obstacles(replace(machine, root=True))
        assert as_root.fix == fixes[0]


def test_all_obstacles_are_reported_in_one_run() -> None:
    """Python, ODBC, Go, compiler, owner, write access and space: none waits for the next run."""
    worst = replace(
        GOOD,
        python=(3, 10, 4),
        odbc=False,
        manager="",
        wheels=False,
        processor="riscv64",
        owner="somebody",
        not_writable=(Path("/srv/vnuma"),),
        free_mb=((Path("/srv"), 12, 2000),),
    )
    found = "\n".join(map(str, obstacles(worst)))

    assert len(obstacles(worst)) == 7
    named = ("3.10", "libodbc", "unixODBC", "Go", "riscv64", "compiler", "somebody", "/srv/vnuma", "12 MB")
    assert [word for word in named if word not in found] == []
