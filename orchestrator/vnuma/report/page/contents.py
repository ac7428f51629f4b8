"""The page's table of contents."""

from __future__ import annotations

from collections.abc import Sequence

from vnuma.report.page.page import VmPart


def contents(parts: Sequence[VmPart]) -> list[tuple[str, str]]:
    """Links to the sections of the VM; of several, the table at the top has the links."""
    if len(parts) > 1:
        return [("study", "Study file"), ("again", "Run it again")]
    key = parts[0].key
    names = [("how-far", "How far this goes"), ("table", "Table 1"), ("by-size", "By size")]
    names += [("iterations", "Every iteration"), ("order", "Order and drift")]
    names += [("topology", "Topology")] if parts[0].topologies else []
    names += [("waits", "Waits")] if parts[0].waits else []
    names += [("scaling", "Scaling")] if parts[0].scaling else []
    names += [("figures", "Also measured")] if parts[0].figures else []
    names += [("verified", "What the workload verified")] if parts[0].verified else []
    names += [("warnings", "Warnings"), ("lost", "Not counted")]
    names += [("published", "Published figures for comparison")] if parts[0].published else []
    names += [("methods", "Methods"), ("configuration", "Hardware and software"), ("study", "Study file")]
    names += [("again", "Run it again")]
    return [(f"{key}-{name}" if name not in ("study", "again") else name, text) for name, text in names]
