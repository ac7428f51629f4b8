"""Documents that are made from the code agree with it, and the commands explain themselves."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from tools import lab_faults
from tools.role_doc import markdown as role_page
from vnuma import errors
from vnuma.checks.rules.catalogue import RULES
from vnuma.cli.main import COMMAND
from vnuma.contract.suite import markdown as beliefs_page
from vnuma.domain.study.study_schema import json_schema, markdown
from vnuma.report.archive.raw import dictionary
from vnuma.report.export.results import results_schema

ROOT = Path(__file__).parents[2]
MOST_WORDS = 26_000
"""To read; docs/reference is made from the code, to look things up in."""


def verbs() -> list[tuple[str, str]]:
    """(name, help) of every command, those of `vnuma lab` included."""
    found = []
    for name, command in COMMAND.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        found += [(f"{name} {sub}", entry.help or "") for sub, entry in inner.items()] or [
            (name, command.help or "")
        ]
    return found


def test_the_published_schema_is_the_models() -> None:
    """vnuma schema > docs/study.schema.json"""
    assert (ROOT / "docs/study.schema.json").read_text(encoding="utf-8") == json_schema()


def test_the_published_results_schema_is_the_models() -> None:
    """vnuma schema results > docs/results.schema.json"""
    assert (ROOT / "docs/results.schema.json").read_text(encoding="utf-8") == results_schema()


def test_the_documented_columns_are_those_of_the_tables() -> None:
    """vnuma schema results --format markdown > docs/reference/columns.md"""
    assert (ROOT / "docs/reference/columns.md").read_text(encoding="utf-8") == dictionary()


def test_the_documented_beliefs_are_those_that_are_asked() -> None:
    """vnuma contract > docs/reference/contract.md"""
    assert (ROOT / "docs/reference/contract.md").read_text(encoding="utf-8") == beliefs_page()


def test_the_documented_faults_are_the_labs() -> None:
    """python -m tools.lab_faults"""
    kinds = re.findall(r'^\t\w+\s+= "(\w+)"', lab_faults.SOURCE.read_text(encoding="utf-8"), re.MULTILINE)

    assert lab_faults.PAGE.read_text(encoding="utf-8") == lab_faults.markdown()
    assert [kind for kind in kinds if f"| `{kind}` |" not in lab_faults.markdown()] == []


def test_the_documented_fields_are_the_models() -> None:
    """vnuma schema --format markdown > docs/reference/study.md"""
    assert (ROOT / "docs/reference/study.md").read_text(encoding="utf-8") == markdown()


def test_every_mapping_of_a_study_has_a_section() -> None:
    """A field whose default is `below` has its own table."""
    page = markdown()
    fields = re.findall(r"^\| `(\w+)` \| mapping \| below", page, re.MULTILINE)

    assert fields
    assert [name for name in fields if not re.search(rf"^## {name}\b", page, re.MULTILINE)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "studies").glob("*.yml")), ids=lambda path: path.name)
def test_shipped_studies_satisfy_the_published_schema(path: Path) -> None:
    """What an editor with the schema would accept."""
    document = json.loads(json.dumps(yaml.safe_load(path.read_text(encoding="utf-8"))))

    Draft202012Validator(json.loads(json_schema())).validate(document)


@pytest.mark.parametrize(("name", "text"), verbs(), ids=[name for name, _ in verbs()])
def test_every_command_has_help(name: str, text: str) -> None:
    """A sentence, and for those that take arguments an example."""
    assert text.strip().endswith((".", ")")) or "Examples:" in text
    assert name.startswith("lab ") or "Examples: vnuma" in text


def test_the_reference_lists_every_exit_code() -> None:
    """Each class of errors has its row."""
    page = ROOT / "docs" / "reference" / "exit-codes.md"
    codes = {
        cls.exit_code
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, errors.VnumaError) and cls is not errors.AttemptFailed
    }
    rows = set(map(int, re.findall(r"^\| (\d+) \|", page.read_text(encoding="utf-8"), re.M)))

    assert codes <= rows


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")),
    ],
)
def test_links_inside_the_repository_lead_somewhere(page: str) -> None:
    """A moved page would leave readers behind."""
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)

    assert [target for target in targets if not ((ROOT / page).parent / target).exists()] == []


def test_there_is_no_more_to_read() -> None:
    """Before words are added, others go: what two pages say, what `--help` or a docstring says, history."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    made = re.compile(r"<!-- written by .*?: begin -->.*?<!-- written by .*?: end -->", re.DOTALL)
    words = sum(
        len(made.sub("", page.read_text("utf-8")).split())
        for page in pages
        if ROOT / "docs" / "reference" not in page.parents
    )

    assert words < MOST_WORDS


def test_readme_has_the_number_of_rules() -> None:
    """In its step about checking the rest."""
    (number,) = re.findall(r"against (\d+) design rules", (ROOT / "README.md").read_text(encoding="utf-8"))

    assert int(number) == len(RULES)


def test_every_finding_of_preflight_is_documented() -> None:
    """docs/vcenter.md has a row for each id that the code gives, and for no other."""
    code = "".join(
        path.read_text(encoding="utf-8")
        for room in ("engine", "domain")
        for path in (ROOT / "orchestrator/vnuma" / room).rglob("*.py")
    )
    rows = re.findall(
        r"^\| (P\d\d(?:, P\d\d)*) \|", (ROOT / "docs/vcenter.md").read_text(encoding="utf-8"), re.M
    )

    assert set(re.findall(r'"(P\d\d)"', code)) == {id_ for row in rows for id_ in row.split(", ")}


def test_the_documented_role_is_the_list_in_code() -> None:
    """python -m tools.role_doc"""
    assert (ROOT / "docs/reference/vcenter-role.md").read_text(encoding="utf-8") == role_page()


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_files_that_a_newcomer_is_sent_to_are_there(page: str) -> None:
    """By their path from the repository or from the package; a Python module also by its name alone."""
    text, package = (ROOT / page).read_text("utf-8"), ROOT / "orchestrator" / "vnuma"
    named = set(re.findall(r"(?<![\w./*])(?:(?:[a-z_]+/)+[a-z_]+\.(?:py|yml)|[a-z_]+\.py)\b", text))

    assert len(named) > 10
    assert [
        path
        for path in sorted(named)
        if not any((place / path).is_file() for place in (ROOT, package))
        and ("/" in path or next(package.rglob(path), None) is None)
    ] == []


def test_modules_that_docstrings_name_are_there() -> None:
    """`room.module` or `room.module.name`, seen from the package."""
    package = ROOT / "orchestrator" / "vnuma"
    rooms = "|".join(place.name for place in package.iterdir() if place.is_dir())
    named = {
        (found, path.name)
        for path in package.rglob("*.py")
        for found in re.findall(rf"`((?:{rooms})(?:\.[a-z_]+)+)`", path.read_text("utf-8"))
        if not found.endswith(".json")
    }

    assert named
    assert [item for item in sorted(named) if not _in_package(package, item[0].split("."))] == []


def _in_package(package: Path, words: list[str]) -> bool:
    """Whether the words lead to a folder, a module, or a name in a module."""
    place = package.joinpath(*words)
    named = place.parent.with_suffix(".py")
    return (
        place.is_dir()
        or place.with_suffix(".py").is_file()
        or (named.is_file() and re.search(rf"\b{words[-1]}\b", named.read_text("utf-8")) is not None)
    )


def test_each_walk_through_the_code_has_at_most_fifteen_stations() -> None:
    """From a study file to a sample, and from a baseline to its restore; numbered in order."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    walks = page.partition("## Two walks")[2].partition("\n## ")[0].split("\n*From ")[1:]
    numbers = [[int(number) for number in re.findall(r"^(\d+)\. ", walk, re.M)] for walk in walks]

    assert len(walks) == 2
    assert all(found == list(range(1, len(found) + 1)) and len(found) <= 15 for found in numbers)


def test_messages_that_troubleshooting_explains_are_messages() -> None:
    """Each is in the code as it is quoted: what was reworded would be looked for in vain."""
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| [a-z ]*\*([^*]+)\* \|", page, re.M)
    code = "".join(path.read_text("utf-8") for path in (ROOT / "orchestrator/vnuma").rglob("*.py"))

    assert len(quoted) > 12
    assert [message for message in quoted if message not in code] == []


def test_commands_that_messages_advise_are_commands() -> None:
    """What a next step names at its beginning or after a colon."""
    known = {name.split()[0] for name, _ in verbs()}
    advised = {
        (path.name, word)
        for path in (ROOT / "orchestrator/vnuma").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.keyword) and node.arg == "fix"
        for part in ast.walk(node.value)
        if isinstance(part, ast.Constant)
        for word in re.findall(r"(?:^|: )vnuma ([a-z-]+)", str(part.value))
    }

    assert len(advised) > 50
    assert {one for one in advised if one[1] not in known} == set()


def test_every_json_document_is_listed() -> None:
    """docs/json.md names each schema that the code does, and no other."""
    kind = re.compile(r"\bvnuma/[a-z-]+/\d+\b")
    code = "".join(path.read_text("utf-8") for path in (ROOT / "orchestrator/vnuma").rglob("*.py"))

    assert set(kind.findall((ROOT / "docs/json.md").read_text("utf-8"))) == set(kind.findall(code))
