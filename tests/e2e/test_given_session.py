"""A run through a proxy, with a session that somebody else has opened, or a token from one's sign-on."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.connect_proxy import connect_proxy
from tests.support.site import write_inventory, write_study
from tests.vsphere.support import saml, vcenter_of
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import find_vm


@pytest.mark.parametrize(
    ("way", "opened_by_us"), [("session", 0), pytest.param("token", 1, marks=pytest.mark.long)]
)
def test_a_study_runs_without_a_password_through_a_proxy(
    lab: LabFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    vnuma_home: Path,
    way: str,
    opened_by_us: int,
) -> None:
    """Cells are valid and the VM is restored; the secret is in no file, and a given session stays open."""
    running = lab()
    with connect(vcenter_of(running)) as opened, connect_proxy() as proxy:
        cookie = str(opened.transport.cookie).partition("=")[2].partition(";")[0].strip('"')
        token = base64.b64encode(saml(running, minutes=60).encode()).decode()
        given = {"session": cookie, "token": token}[way]
        login: dict[str, Any] = {way: {"env": "OF_A_TEST"}}
        monkeypatch.setenv("OF_A_TEST", given)
        site = write_inventory(tmp_path, running, user="", password=None, proxy=proxy.address, **login)

        ran = vnuma("run", write_study(tmp_path), "-i", site)

        assert ran.code == 0, ran.text
        assert "2 of 2 cells valid" in ran.text
        assert proxy.asked
        assert find_vm(opened, "sql16")
        assert running.logins()["succeeded"] == 1 + opened_by_us
    files = [path for place in (tmp_path, vnuma_home) for path in place.rglob("*") if path.is_file()]
    assert any(vnuma_home in path.parents for path in files)
    assert [path for path in files if given.encode() in path.read_bytes()] == []
