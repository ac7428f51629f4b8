"""The designs that `vnuma check` reads, on the hosts where they are to run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vnuma.cli.shape_options import LookAhead
from vnuma.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vnuma.domain.vm.estate import Estate


def read_designs(files: Sequence[Path], where: LookAhead) -> tuple[list[Estate], Sequence[Estate]]:
    """The designs, and the site as it is now (of the snapshot; without one, nothing). Raises InputError."""
    from vnuma.engine.design_check.planned_host import on_hosts, on_named_hosts
    from vnuma.estate.design import read_design, with_contradictions
    from vnuma.estate.snapshot import load

    found = with_contradictions([read_design(file) for file in files])
    if not any(estate.vms for estate in found):
        first = next(item for estate in found for item in estate.unseen)
        raise InputError(
            f"No VM to check in {files[0]}: it contains no readable VM.",
            fix=f"Correct {first.name}: {first.why}.",
        )
    present = load(where.snapshot) if where.snapshot else ()
    if where.host_nodes or where.cluster:
        there = where.site()
        return [on_hosts(estate, there, where.cluster) for estate in found], present
    return [on_named_hosts(estate, present) if present else estate for estate in found], present
