"""Placement that somebody watched on a host, for the rules that ask for it."""

from __future__ import annotations

from pathlib import Path

from vnuma.checks.subject import PlacementFacts
from vnuma.errors import InputError
from vnuma.logs.esxtop import VmMemory, memory_screen


def placements(text: str, source: Path) -> dict[str, PlacementFacts]:
    """What each VM's lines on esxtop's memory screen say, by the VM's name; the last of several counts.

    Raises InputError for a text without such a screen: its rules would silently stay unevaluated.
    """
    shown: dict[str, list[VmMemory]] = {}
    for line in memory_screen(text).vms:
        shown.setdefault(line.name, []).append(line)
    if not shown:
        raise InputError(
            f"{source} shows no VM with NUMA columns of esxtop's memory screen.",
            fix="On the host: esxtop, m for memory, f for fields, add the NUMA statistics; save the text.",
        )
    return {name: _placement(lines) for name, lines in shown.items()}


def _placement(lines: list[VmMemory]) -> PlacementFacts:
    moves = [line.nmig for line in lines if line.nmig is not None]
    return PlacementFacts(
        local_percent=lines[-1].n_pct_l,
        migrations=max(moves, default=None),
        home_nodes_before=lines[0].nhn if len(lines) > 1 else None,
        home_nodes_after=lines[-1].nhn,
    )
