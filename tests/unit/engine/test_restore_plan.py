"""What a restore of a VM would change, without a server that answers."""

from __future__ import annotations

from tests.support.hosts import vm_of
from vnuma.domain.study.study import Power as PowerRules
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.target import Target
from vnuma.engine.restore.restore_vm import Source


def test_a_vm_without_sql_server_has_a_plan() -> None:
    """Its guest is reached by a shell alone: no login to a SQL Server is looked for."""
    before, now = vm_of(), vm_of(numCoresPerSocket=16)
    source = Source(
        vm_key="v/i",
        name="linux16",
        run="quick.1",
        rules=PowerRules(),
        choice="refuse",
        power=Power.ON,
        before=lambda _now: before.settings,
        written={"numCoresPerSocket": {16}},
        foreign_mark=lambda _text: None,
        power_lines=lambda: (),
        choose="vnuma restore linux16 --theirs",
    )

    planned = source.plan(now, Target(name="linux16"))

    assert [(edit.setting, edit.before, edit.after) for edit in planned.changes] == [
        ("numCoresPerSocket", 16, 4)
    ]
    assert planned.powered_off
