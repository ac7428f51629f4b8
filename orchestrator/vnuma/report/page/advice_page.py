"""The page of an advice: what suits a VM of that size, with the best shape drawn on each kind of host."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from vnuma import __version__
from vnuma.checks.advice import Advice, Worth
from vnuma.domain.topology.picture import topology_svg, topology_title
from vnuma.domain.topology.vm_location import VmLocation
from vnuma.report.page.page import filled, write_file
from vnuma.words.provenance import banner

HEADINGS = {Worth.HAVING: "Worth having", Worth.TESTING: "Worth testing", Worth.AVOIDING: "To avoid"}


def write_advice(
    advice: Advice, there: VmLocation, vm: str, memory_mb: int, sentences: Sequence[str], path: Path
) -> None:
    """Write the page: one file that works offline and without scripts. Raises InputError."""
    hosts = {host.name: host for host in there.hosts}
    simulated = banner(there.simulated) if there.simulated else ""
    drawn = [
        (topology_svg(seen, hosts[seen.hosts[0]], memory_mb, simulated=simulated), topology_title(seen))
        for seen in advice.candidates[0].forecasts
    ]
    text = filled(
        "advice.html.j2",
        "style.css",
        "page.js",
        banner=simulated,
        version=__version__,
        vm=vm,
        sentences=sentences,
        pictures=[(b64encode(svg.encode()).decode(), title) for svg, title in drawn],
        groups=[
            (HEADINGS[worth], list(them)) for worth, them in groupby(advice.candidates, lambda one: one.worth)
        ],
    )
    write_file(path, text, "The page")
