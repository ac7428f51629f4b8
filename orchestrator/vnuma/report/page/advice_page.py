"""The page of an advice: what suits a VM of that size, with the best shape drawn on each kind of host."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from vnuma import __version__
from vnuma.checks.advice import HEADINGS, Advice
from vnuma.domain.topology.picture import topology_svg, topology_title
from vnuma.domain.topology.vm_location import VmLocation
from vnuma.report.charts.pictures import Block, one_page
from vnuma.report.page.page import filled, write_file
from vnuma.words.plain_text import counted
from vnuma.words.provenance import banner


def write_advice(
    advice: Advice, there: VmLocation, vm: str, memory_mb: int, sentences: Sequence[str], path: Path
) -> None:
    """Write the page: one file that works offline and without scripts, or one page of A4 (.pdf).

    Raises InputError where it cannot be written, EnvironmentProblem where it cannot be drawn.
    """
    hosts = {host.name: host for host in there.hosts}
    simulated = banner(there.simulated) if there.simulated else ""
    drawn = [
        (topology_svg(seen, hosts[seen.hosts[0]], memory_mb, simulated=simulated), topology_title(seen))
        for seen in advice.candidates[0].forecasts
    ]
    if path.suffix.lower() == ".pdf":
        svgs = [svg for svg, _ in drawn]
        write_file(path, one_page(_sheet(advice, vm, sentences, svgs, simulated), vm), "The page")
        return
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


def _sheet(
    advice: Advice, vm: str, sentences: Sequence[str], drawn: Sequence[str], simulated: str
) -> Iterator[Block]:
    yield "note", f"Predicted, not measured. vnuma {__version__}"
    yield "title", f"Topologies for {vm}"
    if simulated:
        yield "simulated", simulated
    yield from (("text", sentence) for sentence in sentences)
    yield drawn
    for worth, them in groupby(advice.candidates, lambda one: one.worth):
        yield "head", HEADINGS[worth]
        for one in them:
            settings = [f"{name} = {value}" for name, value in one.settings.items()]
            yield (
                "text",
                f"{one.topology}, {counted(one.nodes, 'node')}: {'; '.join([*one.reasons, *settings])}",
            )
