"""Every block of README.md and docs/ is what it says: commands that exist, files that the real loaders read.

A block that cannot be is marked in the line above it: <!-- not run: reason -->
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from tests.support.cli import vnuma_here
from tests.support.doc_blocks import ALL, ROOT, Block, is_scenario, of_kind
from tools.manual import entries
from vnuma.cli.main import app
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.notify import channels_of
from vnuma.estate import waivers

STUDY_KEYS = {"arms", "workload", "allowed_hours", "reference", "all_arms", "design"}
LOOKUP = re.compile(r'"\{\{ lookup\(.*?\).*?\}\}"')
"""Lookups that need a missing collection or server are replaced by a reference."""
LOGIN = {"host": "name.example", "user": "vnuma", "password": {"env": "X"}}
ANY_VM = {"vnuma_vcenter": LOGIN, "vnuma_sql": LOGIN, "site_vcenter": "vcsa01"}


COMMAND = get_command(app)
"""Not the program's own, which keeps what a context says of `-h`."""


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of each call of vnuma: after variables, before a pipe or a file, without a prompt."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"&&|;|\|| [<>] ", line.removeprefix("$ ")):
            words = re.match(r"\s*(?:[A-Z_]+=\S*\s+)*(?:\.venv/bin/)?vnuma (?! )(.*)", part)
            if words:
                yield shlex.split(words[1], comments=True)


def parse(arguments: list[str]) -> None:
    """As the command line does, without running anything. Raises its errors."""
    command: Any = COMMAND
    context = command.make_context("vnuma", [], resilient_parsing=True)
    while hasattr(command, "commands"):
        name, command, arguments = command.resolve_command(context, arguments)
        context = command.context_class(command, info_name=name, parent=context)
    command.make_context(name, list(arguments), parent=context)


@pytest.mark.parametrize("block", of_kind("sh", "console", "bash"))
def test_commands_are_those_of_the_command_line(block: Block) -> None:
    """An unknown verb or option, or a missing argument, fails with the page and line."""
    for arguments in commands(block.text):
        parse(arguments)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(one, id=str(one))
        for one in ALL
        if re.match(r"vnuma (predict|advise) .*--host-nodes.*\n\n", one.text)
    ],
)
def test_what_a_page_shows_of_a_command_is_what_it_prints(block: Block) -> None:
    """Those that need neither a lab nor a site: the command in the first line, what it prints below."""
    command, _, shown = block.text.partition("\n\n")

    assert shown.rstrip() in vnuma_here(*shlex.split(command)[1:]).out


@pytest.mark.parametrize(
    "example",
    [pytest.param(one, id=one) for entry in entries() for one in entry.examples if one.startswith("vnuma ")],
)
def test_examples_of_the_help_are_commands(example: str) -> None:
    """The same for what `vnuma VERB --help` shows, and the page of the command line with it."""
    for arguments in commands(example):
        parse(arguments)


@pytest.mark.parametrize("block", of_kind("json"))
def test_json_is_json(block: Block) -> None:
    """It can be copied into a program."""
    json.loads(block.text)


@pytest.mark.parametrize("block", of_kind("yaml"))
def test_yaml_is_read_as_vnuma_reads_it(block: Block, tmp_path: Path) -> None:
    """A study, or parts of one put into the quick study; variables of a host; an inventory; waivers.

    An unknown key fails. The lab reads its scenarios itself: tests/e2e/test_doc_scenarios.py.
    """
    document = yaml.safe_load(block.text)
    if is_scenario(block):
        return
    file = tmp_path / "of-the-page.yml"
    if STUDY_KEYS & set(document):
        read_study(document, block)
    elif all(key.startswith("vnuma_") for key in document):
        read_hosts({"all": {"hosts": {"sql16": yaml.safe_load(LOOKUP.sub("{env: X}", block.text))}}}, file)
    elif any("hosts" in value for value in document.values() if isinstance(value, dict)):
        read_hosts(document, file)
    elif "waivers" in document:
        file.write_text(block.text, encoding="utf-8")
        assert waivers.load(file)
    else:
        pytest.fail(f"{block}: nothing of vnuma reads it; mark it <!-- not run: reason -->")


def read_study(document: dict[str, Any], block: Block) -> None:
    """Raise InputError for what is not a study's."""
    base = yaml.safe_load((ROOT / "studies" / "quick.yml").read_text(encoding="utf-8"))
    base.pop("published")
    if "arms" in document and "reference" not in document:
        base.pop("reference")
    if "workload" in document:
        base.pop("workload")
    parse_study(yaml.safe_dump(base | document), str(block))


def read_hosts(inventory: dict[str, Any], file: Path) -> None:
    """Raise InputError for an inventory that is not one, or a host whose variables are not vnuma's.

    What a page leaves out of a VM is that of any VM.
    """
    file.write_text(yaml.safe_dump(inventory), encoding="utf-8")
    (file.parent / "group_vars").mkdir()
    (file.parent / "group_vars" / "all.yml").write_text(yaml.safe_dump(ANY_VM), encoding="utf-8")
    names = list(hosts_of(inventory))
    assert set(Inventory(file).targets(names)) == set(names)
    channels_of(Inventory(file), names)


def hosts_of(inventory: dict[str, Any]) -> dict[str, Any]:
    """Every host with its variables, of all groups."""
    return {name: host for group in inventory.values() for name, host in group.get("hosts", {}).items()}


def test_every_kind_of_block_is_looked_at() -> None:
    """A block that this file would pass over, it has to name."""
    known = {"sh", "console", "bash", "yaml", "json", "text", "toml", "mermaid", "python"}

    assert [str(one) for one in ALL if one.kind not in known] == []
    assert sum(len(list(commands(one.text))) for one in ALL if one.kind in ("sh", "console")) > 60
