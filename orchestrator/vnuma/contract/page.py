"""docs/reference/contract.md, generated from the beliefs."""

from __future__ import annotations

from vnuma.contract.suite import ROOMS, beliefs

_SEEN = {
    "guest": "running",
    "host": "cores_and_threads numa_nodes numa_nodes_have_memory numa_options",
    "time": "two_figures",
    "vm": (
        "automatic_cores cores_divide cpu_allocation extra_config identity log_directory memory_allocation "
        "methods_disabled numa_info"
    ),
    "word": "connectionState inMaintenanceMode latencySensitivity powerState toolsRunningStatus",
}
SEEN_FOR_REAL = frozenset(f"{room}.{name}" for room, names in _SEEN.items() for name in names.split())
"""Beliefs that a recorded answer of a real server supports; of all others only the lab and documents know."""

_HEAD = """# What vnuma assumes about SQL Server and vSphere

Made by `vnuma contract > docs/reference/contract.md`. Each of these {count} assumptions is a test with its
source; the lab behaves as each says. *Lab only*: no recorded answer of a real server supports it yet.
The same command asks a real server; it needs pytest (`pip install 'vnuma[contract]'`). The result is *held*,
*differs*, or *not evaluable*: the server is too old, a right is missing, the VM lacks what the assumption
is about, or must not be changed (not marked as a test clone, or `--read-only`). `--output FILE` writes the
results without names or addresses, to send in.
"""

_TEXTS = {
    "sql": """
## SQL Server

`vnuma contract --sql HOST`, HOST as in the inventory. It logs in once for each assumption, creates and
drops the database `vnuma_contract`, and changes no setting. Without a test clone or its owner's tag it
needs `--production` and `--ticket`. *From* is the first major version.

""",
    "read": """
## vSphere, read

`vnuma contract --vcenter HOST`, HOST as in the inventory. Nothing is changed.

""",
    "off": """
## vSphere, changed

The same command without `--read-only`, on a VM that the inventory (`vnuma_test_clone: true`) or its owner's
tag marks as a test clone. The VM is leased as in a run, with baseline, mark and audit log. After a
confirmation (`--yes` in scripts) it is shut down, changed, powered on, and always restored (after a kill by
`vnuma restore`).

### While it is off

""",
    "on": """
### After its power-on, while it runs

""",
}


def markdown() -> str:
    head = _HEAD.format(count=sum(len(beliefs(room)) for room in ROOMS))
    return head + "".join(f"{_TEXTS[room]}{_list(room)}" for room in ROOMS)


def document() -> dict[str, object]:
    """The beliefs as plain values."""
    listed = [
        {
            "id": one.id,
            "says": one.says,
            "source": one.source,
            "asked": room,
            "lab_only": one.id not in SEEN_FOR_REAL,
        }
        for room in ROOMS
        for one in beliefs(room)
    ]
    return {"schema": "vnuma/beliefs/1", "beliefs": listed}


def _list(room: str) -> str:
    return "".join(
        f"- [`{one.id}`]({one.source}){f' (from {one.since})' if one.since else ''}"
        f"{'' if one.id in SEEN_FOR_REAL else ' *lab only*'}: {one.says}\n"
        for one in beliefs(room)
    )
