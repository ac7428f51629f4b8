"""`vnuma advise`: which topologies suit a VM of that size, and a study to test them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vnuma.checks.fix_as import Target, Tool, fix_as, in_comment
from vnuma.cli.options import TextOrJsonOption
from vnuma.cli.screen import echo, echo_json, note, say
from vnuma.cli.shape_options import LookAhead, where
from vnuma.domain.topology.vm_location import VmLocation
from vnuma.errors import InputError, UsageError, writing
from vnuma.words.plain_text import counted
from vnuma.words.provenance import banner, in_json

if TYPE_CHECKING:
    from vnuma.checks.advice import Advice, Candidate


UNNAMED = "sql-clone"
"""The VM of a question that names none."""


def advise(
    asked: LookAhead,
    *,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a study that tests the best candidates."),
    ] = None,
    fix_as_: Annotated[
        Tool | None,
        typer.Option("--fix-as", help="Print only the settings of the best shape, in a form for this tool."),
    ] = None,
    format_: TextOrJsonOption = "text",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write a page with the best shape drawn: .html or .pdf."
        ),
    ] = None,
) -> None:
    """Suggest topologies, best first, each with its reasons; --write makes a study that tests them.

    The suggestions rest on predictions: measure before you rely on them.

    Examples: vnuma advise --vcpus 30 --memory 256 --host-nodes 2x20/384@7.0;
    vnuma advise --vm sql16 --snapshot estate.json --write advised.yml -o advice.html
    """
    from vnuma.checks.advice import advise as advice_for
    from vnuma.checks.advice import sentences

    there, name = asked.location(), asked.vm or UNNAMED
    count, memory_mb = asked.size(there)
    advice = advice_for(count, memory_mb, there.hosts, asked.hardware_version(there), asked.guest())
    if (advice.runs_nowhere or advice.not_allowed) and (write or fix_as_):
        raise InputError(
            f"{next(sentences(advice, count, memory_mb, where(there), asked.sql))}",
            fix="Without --write and --fix-as the shapes are listed, each with its reasons.",
        )
    if output and output.suffix.lower() not in (".html", ".pdf"):
        raise UsageError(f"{output} is neither .html nor .pdf.", fix="Name the page: -o page.html")
    if write:
        _write(write, advice, name, memory_mb)
    if fix_as_:
        echo(_as_tool(fix_as_, advice.candidates[0], there, name))
        return
    if format_ == "json":
        echo_json(_document(advice, there))
        return
    said = list(sentences(advice, count, memory_mb, where(there), asked.sql))
    if output:
        from vnuma.report.page.advice_page import write_advice

        write_advice(advice, there, asked.vm or f"{count} vCPUs", memory_mb, said, output)
    if there.simulated:
        say(banner(there.simulated))
    for sentence in said:
        say(sentence)
    say("\n".join(_text(advice, count)))
    if output:
        note(f"Wrote {output}")
    if write:
        named = "" if asked.vm else f"write a host of the inventory as vm: in {write}, then "
        say(f"\nWritten  {write}\nNext     {named}vnuma plan {write}")


def _write(path: Path, advice: Advice, vm: str, memory_mb: int) -> None:
    """The study file; an existing one is not overwritten. Raises InputError."""
    from vnuma.checks.advice import study_text
    from vnuma.domain.study.study_file import parse_study

    if path.exists():
        raise InputError(f"{path} exists already.", fix="Name another file.")
    try:
        text = study_text(advice, vm=vm, name="advised", memory_mb=memory_mb)
        parse_study(text, str(path))
        with writing(path, "The study"), path.open("x", encoding="utf-8") as file:
            file.write(text)
    except ValueError as error:
        raise InputError(f"No study was written: {error}.", fix="Try another number of vCPUs.") from error


def _text(advice: Advice, vcpus: int) -> list[str]:
    from vnuma.checks.advice import HEADINGS

    lines: list[str] = []
    for worth, heading in HEADINGS.items():
        found = [one for one in advice.candidates if one.worth == worth]
        if found:
            lines += ["", heading, *(line for one in found for line in _lines(one))]
    if advice.other_vcpus:
        counts = " or ".join(map(str, advice.other_vcpus))
        lines += ["", f"{vcpus} vCPUs cannot be spread evenly over the nodes needed: {counts} can."]
    return lines


def _lines(one: Candidate) -> list[str]:
    """A shape with its nodes and reasons, then the settings it needs."""
    reasons = list(one.reasons)
    reasons += [f"set {name} = {value}" for name, value in one.settings.items()]
    head = f"  {one.topology!s:6} {counted(one.nodes, 'node'):8}  "
    return [(" " * len(head) if number else head) + reason for number, reason in enumerate(reasons)]


def _target(there: VmLocation, name: str) -> Target:
    return Target.of_key(there.vm.name, there.vm.key) if there.vm else Target(name)


def _as_tool(tool: Tool, best: Candidate, there: VmLocation, name: str) -> str:
    """The settings of a shape for a tool, below the lab's marker."""
    text = fix_as(tool, best.fix(there.vm), _target(there, name))
    marker = [f"# {in_comment(banner(there.simulated))}"] if there.simulated else []
    if there.vm is None and UNNAMED in text:
        marker.append(f"# Replace {UNNAMED} with the VM's name.")
    return "\n".join([*marker, text or f"# The VM is {best.topology} already."])


def _document(advice: Advice, there: VmLocation) -> dict[str, Any]:
    return {
        "schema": "vnuma/advise/1",
        **in_json(there.simulated),
        "hosts": [host.name for host in there.hosts],
        "hosts_not_read": list(there.unread),
        "nodes_needed": advice.nodes_needed,
        "hosts_too_small": dict(advice.too_small),
        "runs_nowhere": advice.runs_nowhere,
        "largest": dict(zip(("vcpus", "memory_mb"), advice.largest, strict=True)) if advice.largest else None,
        "beyond_hardware_version": advice.not_allowed or None,
        "other_vcpus": list(advice.other_vcpus),
        "several_processor_groups": advice.many_groups,
        "unused": advice.unused,
        "usable_cores": advice.used,
        "edition_limit": asdict(advice.limit) if advice.limit.limited else None,
        "candidates": [
            {
                "topology": str(one.topology),
                "worth": one.worth.name.lower(),
                "vnuma_nodes": one.nodes,
                "confidence": one.forecasts[0].confidence,
                "reasons": list(one.reasons),
                "settings": dict(one.settings),
                "as": {tool: fix_as(tool, one.fix(there.vm), _target(there, UNNAMED)) for tool in Tool},
            }
            for one in advice.candidates
        ],
    }
