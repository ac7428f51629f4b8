"""Whether a workload's client is the machine that the run has used, in the boot that it was prepared in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.report.build import study_text
from tests.store.build import new_vm
from tests.support.stores import new_store
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.target import Target
from vnuma.engine.instance import sql_identity
from vnuma.engine.instance.sql_identity import client_boot, known_client
from vnuma.errors import MachineUnreachable, StudySetupFailed
from vnuma.store import runs
from vnuma.store.rows import Claim


@pytest.fixture
def context(tmp_path: Path) -> VmContext:
    """A VM under a lease."""
    store = new_store(tmp_path / "vnuma.db")
    with store.write() as connection:
        run = runs.create_run(connection, runs.save_study(connection, "quick", study_text(vms="box")), seed=7)
    leased = new_vm(store, run, key="linux/box", name="box")
    study = parse_study(study_text(vms="box"), "study")
    return VmContext(store, run, study, leased.vm, Target(name="box"), leased.token)


@pytest.mark.parametrize(
    ("later", "number", "asks"), [(0, 1, 1), (1, 1, 2), (0, 2, 2)], ids=["known", "new lease", "repeated"]
)
def test_a_client_is_asked_once_in_a_lease_and_by_a_repeated_attempt(
    context: VmContext, monkeypatch: pytest.MonkeyPatch, later: int, number: int, asks: int
) -> None:
    """A reboot of the client may have ended the attempt before."""
    asked: list[int] = []

    def ask(of: VmContext) -> dict[str, object]:
        asked.append(of.token)
        return {"machine": "m", "boot": f"boot {len(asked)}", "lease": of.token}

    monkeypatch.setattr(sql_identity, "ask_client", ask)
    claim: Any = Claim(1, 1, "plain", "plain", id=1, cell_id=1, number=1, token=context.token)

    assert known_client(context) is None
    assert client_boot(context, claim) == "boot 1"
    assert client_boot(replace(context, token=context.token + later), replace(claim, number=number)) == (
        f"boot {asks}"
    )


def test_a_client_that_is_gone_ends_the_vms_cells(
    context: VmContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every further attempt would power-cycle the VM for nothing."""

    def ask(_: VmContext) -> dict[str, object]:
        raise MachineUnreachable("gone")

    monkeypatch.setattr(sql_identity, "ask_client", ask)

    with pytest.raises(StudySetupFailed):
        client_boot(context, Claim(1, 1, "plain", "plain", id=1, cell_id=1, number=1, token=context.token))
