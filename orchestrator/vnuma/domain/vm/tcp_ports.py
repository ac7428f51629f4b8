"""SQL Server's TcpPort setting: ports, each mapped to SQLOS nodes by a mask, or open to all.

`1433,50001[0x1],50002[0x2]`: a mask counts SQLOS nodes (sys.dm_os_nodes.node_id), including soft-NUMA nodes,
so several of its bits may be one memory node. Source:
https://learn.microsoft.com/sql/database-engine/configure-windows/map-tcp-ip-ports-to-numa-nodes-sql-server
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_ENTRY = re.compile(r"\s*(?P<port>[0-9]{1,5})\s*(?:\[\s*(?P<mask>-1|0[xX][0-9A-Fa-f]+|[0-9]+)\s*\])?\s*")


def ports_of(setting: str) -> tuple[int, ...]:
    """The ports of a setting, in order. Raises ValueError for an invalid one."""
    found = []
    for part in setting.split(","):
        entry = _ENTRY.fullmatch(part)
        if entry is None or not 0 < int(entry["port"]) < 65536:
            raise ValueError(f"'{part.strip()}' in TcpPort '{setting}' is not a port")
        found.append(int(entry["port"]))
    return tuple(found)


def node_mask(nodes: Iterable[int]) -> str:
    """The mask of those SQLOS nodes: `0x3` for 0 and 1."""
    return hex(sum(1 << node for node in set(nodes)))


def mapped(before: str, ports: Sequence[int], nodes: Mapping[int, Sequence[int]]) -> str:
    """The setting with one more port each for the first and the last memory node.

    `before` stays in front, so that its clients keep their port; `nodes` are SQLOS nodes by memory node.
    Neighbouring memory nodes may share a physical node; the first and the last are least likely to.
    """
    ends = (min(nodes), max(nodes))
    extra = [f"{port}[{node_mask(nodes[node])}]" for port, node in zip(ports, ends, strict=False)]
    return ",".join([before, *extra])
