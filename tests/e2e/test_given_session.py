"""A run through a proxy, with a session that somebody else has opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.connect_proxy import connect_proxy
from tests.support.site import write_inventory, write_study
from tests.vsphere.support import vcenter_of
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import find_vm


def test_a_study_runs_with_a_given_session_through_a_proxy(
    lab: LabFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells are valid and the VM is restored; the cookie is in no file, and the session stays open."""
    running = lab()
    with connect(vcenter_of(running)) as opened, connect_proxy() as proxy:
        cookie = str(opened.transport.cookie).partition("=")[2].partition(";")[0].strip('"')
        monkeypatch.setenv("OF_A_TEST_SESSION", cookie)
        site = write_inventory(
            tmp_path,
            running,
            user="",
            password=None,
            session={"env": "OF_A_TEST_SESSION"},
            proxy=proxy.address,
        )

        ran = vnuma("run", write_study(tmp_path), "-i", site)

        assert ran.code == 0, ran.text
        assert "2 of 2 cells valid" in ran.text
        assert proxy.asked
        assert find_vm(opened, "sql16")
        assert running.logins()["succeeded"] == 1
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and cookie.encode() in path.read_bytes()]
    assert kept == []
