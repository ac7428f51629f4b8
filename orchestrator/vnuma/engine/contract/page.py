"""docs/contract.md, made of the beliefs themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vnuma.domain.contract.belief import Belief
from vnuma.sqlserver.contract import messages as messages
from vnuma.sqlserver.contract import views as views
from vnuma.sqlserver.contract.belief import BELIEFS
from vnuma.vsphere.contract import machine as machine
from vnuma.vsphere.contract import off as off
from vnuma.vsphere.contract import on as on
from vnuma.vsphere.contract import server as server
from vnuma.vsphere.contract.asked import READING, WHILE_OFF, WHILE_ON

_HEAD = """# What vnuma believes of SQL Server and vSphere

Made by `vnuma contract > docs/contract.md`. The lab plays each of these {count} beliefs, and one command asks
a real server. Each belief is *held*, *differs*, or is *not evaluable* there: the server is older than the
belief, a right is missing, the VM lacks what the belief is about, or it may not be changed for this (it is
not marked as a test clone, or `--read-only` was given). `--output FILE` writes what was seen to a file
without names or addresses, to send in;
`make lab-learn FILE=FILE` makes the lab answer as that server did.
"""

_SQL = """
## SQL Server

`vnuma contract --sql HOST`, HOST as the inventory names it. It logs in once for each belief, makes the
database `vnuma_contract`, drops it afterwards, and changes no setting. Without a test clone or
its owner's tag it needs `--production` and `--ticket`. *Since* is the first major version.

| belief | since | source |
|---|---|---|
"""

_READING = """
## vSphere, read

`vnuma contract --vcenter HOST`, HOST as the inventory names it. Nothing is changed.
"""

_CHANGING = """
## vSphere, changed

The same command, on a VM that the inventory marks as a test clone (`vnuma_test_clone: true`) or its owner by
a tag, and without `--read-only`. The VM is held as by a run, with its baseline, its mark and the audit log.
After a question (`--yes` answers it for scripts) it is shut down, changed, powered on, and put back as it
was, whatever happens in between (after a kill by `vnuma restore`).

### While it is off
"""

_ON = """
### After its power-on, while it runs
"""

_TABLE = """
| belief | source |
|---|---|
"""


def markdown() -> str:
    """The page."""
    count = len(BELIEFS) + len(READING) + len(WHILE_OFF) + len(WHILE_ON)
    sql = _SQL + "".join(
        f"| `{one.id}`: {one.says} | {one.since or ''} | [source]({one.source}) |\n" for one in BELIEFS
    )
    changing = f"{_CHANGING}{_table(WHILE_OFF)}{_ON}{_table(WHILE_ON)}"
    return f"{_HEAD.format(count=count)}{sql}{_READING}{_table(READING)}{changing}"


def document() -> dict[str, object]:
    """The beliefs as plain values."""
    asked = (("sql", BELIEFS), ("read", READING), ("off", WHILE_OFF), ("on", WHILE_ON))
    beliefs = [
        {"id": one.id, "says": one.says, "source": one.source, "asked": where}
        for where, some in asked
        for one in some
    ]
    return {"schema": "vnuma/beliefs/1", "beliefs": beliefs}


def _table(beliefs: Iterable[Belief[Any]]) -> str:
    return _TABLE + "".join(f"| `{one.id}`: {one.says} | [source]({one.source}) |\n" for one in beliefs)
