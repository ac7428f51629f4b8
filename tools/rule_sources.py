"""Write docs/reference/rule-sources.md: which design rule can be evaluated from which source.

python -m tools.rule_sources
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.estate.sources import LAB, Cell, Row, Source, read_sources, table
from tests.support.lab import start_lab
from vnuma import lab
from vnuma.checks.rules.catalogue import BY_ID, RULES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "rule-sources.md"


def markdown(sources: Sequence[Source]) -> str:
    """The page."""
    rows = table(sources)
    return "\n".join(
        [*_introduction(), *_counts(sources, rows), *_table(sources, rows), *_reasons(sources, rows)]
    )


def _introduction() -> Iterator[str]:
    yield f"""# Which rule works with which source

No source shows everything that the {len(RULES)} [design rules](rules.md) read. What is missing is not
evaluated, and `vnuma check` says why. This page is made by running the code (`python -m tools.rule_sources`):
a full example of each source is read by its own reader, and each rule is tried on its test cases with only
the facts that this reader gave. The vCenter is the lab's, with ESXi 8.0.

| cell | meaning |
|---|---|
| yes | evaluated from the source alone |
| `*` | with the defaults of keys, affinity or host options that the source never shows; the result says so |
| an option | evaluated if that option is given too; each includes those before it |
| part | evaluated, unless the answer depends on something that the source does not show |
| part: an option | the same with that option; "all" names the option with which it is always evaluated |
| no | never evaluated; the reasons are below the table |

Options: `--vm` (one VM instead of `--all`), `--sql` (a login to the server), `--evidence` (esxtop's screen),
`--study`. For designs: `--host-nodes 2x16/256@8.0`, or `--cluster NAME` with `--snapshot FILE` or a vCenter,
whose hosts show more than a description does.

## Rules per source
"""


def _counts(sources: Sequence[Source], rows: Mapping[str, Row]) -> Iterator[str]:
    yield "| source | rules | with defaults | in part | with |"
    yield "|---|--:|--:|--:|---|"
    for source in sources:
        for number, way in enumerate(source.ways):
            given = {one.word for one in source.ways[: number + 1]}
            cells = [row[source.name] for row in rows.values()]
            whole = sum(cell.whole and cell.way in given for cell in cells)
            assumed = sum(cell.whole and cell.way in given and cell.assumes for cell in cells)
            part = sum(way.word in cell.partly for cell in cells)
            name = source.name if number == 0 else ""
            word = "nothing else" if way.word == "yes" else f"`{way.word}`"
            yield f"| {name} | {whole} of {len(RULES)} | {assumed} | {part} | {word} |"
    yield ""


def _table(sources: Sequence[Source], rows: Mapping[str, Row]) -> Iterator[str]:
    yield "## Each rule\n"
    yield "| rule | " + " | ".join(source.name for source in sources) + " |"
    yield "|---|" + "---|" * len(sources)
    for rule, row in rows.items():
        cells = " | ".join(_words(row[source.name], source) for source in sources)
        yield f"| {rule} {BY_ID[rule].title} | {cells} |"
    yield ""


def _words(cell: Cell, source: Source) -> str:
    if cell.never:
        return "no"
    whole = (cell.way if cell.way == "yes" else f"`{cell.way}`") + ("`*`" if cell.assumes else "")
    if cell.whole and not cell.partly:
        return whole
    first = next(way.word for way in source.ways if way.word in cell.partly)
    part = ("part" if first == "yes" else f"part: `{first}`") + ("`*`" if cell.assumes else "")
    return f"{part}, all: {whole}" if cell.whole else part


def _reasons(sources: Sequence[Source], rows: Mapping[str, Row]) -> Iterator[str]:
    yield "## Why not"
    for source in sources:
        found: dict[tuple[bool, str], list[str]] = defaultdict(list)
        for rule, row in rows.items():
            cell = row[source.name]
            if not cell.whole:
                found[cell.never, cell.why].append(rule)
        yield f"\n**{source.name}**\n"
        for (never, why), rules in sorted(found.items(), key=lambda entry: (not entry[0][0], entry[1])):
            yield f"- {', '.join(rules)}{'' if never else ' (in part)'}: {why}."
    yield ""


def main() -> None:
    """Read the sources and write the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        running = start_lab(lab.ready_program(), folder / "lab", LAB, {})
        try:
            running.wait_for("sql_listening")
            PAGE.write_text(markdown(read_sources(folder, running)), encoding="utf-8")
        finally:
            running.stop()


if __name__ == "__main__":
    main()
