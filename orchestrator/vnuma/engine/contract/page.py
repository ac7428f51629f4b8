"""docs/reference/contract.md, generated from the assumptions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vnuma.domain.contract.belief import Belief
from vnuma.sqlserver.contract import messages as messages
from vnuma.sqlserver.contract import views as views
from vnuma.sqlserver.contract.belief import BELIEFS
from vnuma.vsphere.contract import off as off
from vnuma.vsphere.contract import on as on
from vnuma.vsphere.contract import server as server
from vnuma.vsphere.contract import vm as vm
from vnuma.vsphere.contract.asked import READING, WHILE_OFF, WHILE_ON

_HEAD = """# What vnuma assumes about SQL Server and vSphere

Made by `vnuma contract > docs/reference/contract.md`. The lab behaves as each of these {count}
assumptions says, and the same command checks them on a real server. Each links to its source. The result
is *held*, *differs*, or *not evaluable*: the server is too old, a right is missing, the VM lacks what
the assumption is about, or must not be changed (not marked as a test clone, or `--read-only`). `--output
FILE` writes the results without names or addresses, to send in; `make lab-learn FILE=FILE` makes the lab
answer as that server did.
"""

_SQL = """
## SQL Server

`vnuma contract --sql HOST`, HOST as in the inventory. It logs in once for each assumption, creates and
drops the database `vnuma_contract`, and changes no setting. Without a test clone or its owner's tag it
needs `--production` and `--ticket`. *From* is the first major version.

"""

_READING = """
## vSphere, read

`vnuma contract --vcenter HOST`, HOST as in the inventory. Nothing is changed.

"""

_CHANGING = """
## vSphere, changed

The same command without `--read-only`, on a VM that the inventory (`vnuma_test_clone: true`) or its owner's
tag marks as a test clone. The VM is leased as in a run, with baseline, mark and audit log. After a
confirmation (`--yes` in scripts) it is shut down, changed, powered on, and always restored (after a kill by
`vnuma restore`).

### While it is off

"""

_ON = """
### After its power-on, while it runs

"""


def markdown() -> str:
    count = len(BELIEFS) + len(READING) + len(WHILE_OFF) + len(WHILE_ON)
    sql = f"{_SQL}{_list(BELIEFS)}"
    changing = f"{_CHANGING}{_list(WHILE_OFF)}{_ON}{_list(WHILE_ON)}"
    return f"{_HEAD.format(count=count)}{sql}{_READING}{_list(READING)}{changing}"


def document() -> dict[str, object]:
    """The assumptions as plain values."""
    asked = (("sql", BELIEFS), ("read", READING), ("off", WHILE_OFF), ("on", WHILE_ON))
    beliefs = [
        {"id": one.id, "says": one.says, "source": one.source, "asked": where}
        for where, some in asked
        for one in some
    ]
    return {"schema": "vnuma/beliefs/1", "beliefs": beliefs}


def _list(beliefs: Iterable[Belief[Any]]) -> str:
    return "".join(
        f"- [`{one.id}`]({one.source}){f' (from {one.since})' if one.since else ''}: {one.says}\n"
        for one in beliefs
    )
