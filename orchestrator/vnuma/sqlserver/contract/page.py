"""docs/contract.md, made of the beliefs themselves."""

from __future__ import annotations

from vnuma.sqlserver.contract import messages as messages
from vnuma.sqlserver.contract import views as views
from vnuma.sqlserver.contract.belief import BELIEFS, Belief

_HEAD = """# What vnuma believes of SQL Server

Made by `vnuma contract > docs/contract.md`. The lab plays each of these, and `vnuma contract --sql HOST` asks
a real server, HOST as the inventory names it. It logs in once for each belief, makes the database
`vnuma_contract`, drops it afterwards, and changes no setting. Each belief is *held*, *differs*, or is *not
evaluable* there: an older version, or a missing right. `--output FILE` writes what was seen to a file without
names or addresses, to send in.

| belief | since | source |
|---|---|---|
"""


def markdown() -> str:
    """The page."""
    return _HEAD + "".join(map(_line, BELIEFS.values()))


def _line(one: Belief) -> str:
    return f"| `{one.id}`: {one.says} | {one.since or ''} | [source]({one.source}) |\n"
