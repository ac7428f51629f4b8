"""Sessions at a lab's vCenter."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import LabHandle
from tests.vsphere.support import Login, vcenter_of
from vnuma.lab.program import find_go
from vnuma.vsphere.connect import Session, VmRef, connect
from vnuma.vsphere.read import find_vm

ROOT = Path(__file__).parents[2]


@pytest.fixture
def login() -> Iterator[Login]:
    """A factory of sessions that are logged out when the test ends."""
    with ExitStack() as open_sessions:

        def log_in(lab: LabHandle, **account: Any) -> Session:
            return open_sessions.enter_context(connect(vcenter_of(lab, **account)))

        yield log_in


@pytest.fixture
def session(shared_lab: LabHandle, login: Login) -> Session:
    """A session at the module's lab, for tests that only read."""
    return login(shared_lab)


@pytest.fixture
def ref(session: Session) -> VmRef:
    """The paper's VM in that session."""
    return find_vm(session, "sql16")


PROGRAMS = {"govc": "github.com/vmware/govmomi/govc", "jq": "github.com/itchyny/gojq/cmd/gojq"}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """govc and a jq, built from the modules that tools/counting pins; Go keeps what it compiled."""
    go = find_go()
    assert go is not None, "Go builds the lab, govc and jq"
    folder = tmp_path_factory.mktemp("counting")
    for name, package in PROGRAMS.items():
        build = [str(go.program), "build", "-o", str(folder / name), package]
        subprocess.run(build, cwd=ROOT / "tools" / "counting", check=True)
    return {name: folder / name for name in PROGRAMS}
