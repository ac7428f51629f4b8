"""Whatever differs by kind of target has an entry for each kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from vnuma.engine.access.target import TargetKind

ROOT = Path(__file__).parents[3]


def tables() -> Iterator[tuple[str, set[str]]]:
    """Every dictionary in the code whose keys are kinds: where it is, and its kinds' names."""
    for path in sorted((ROOT / "orchestrator/vnuma").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "TargetKind." not in text:
            continue
        for node in ast.walk(ast.parse(text, str(path))):
            if isinstance(node, ast.Dict) and (kinds := set(_kinds(node))):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", kinds


def _kinds(table: ast.Dict) -> Iterator[str]:
    for key in table.keys:
        if (
            isinstance(key, ast.Attribute)
            and isinstance(key.value, ast.Name)
            and key.value.id == "TargetKind"
        ):
            yield key.attr


@pytest.mark.parametrize(("where", "kinds"), [pytest.param(*table, id=table[0]) for table in tables()])
def test_a_table_by_kind_has_every_kind(where: str, kinds: set[str]) -> None:
    """A new kind that is missing in one would be found by the first user who has such a target."""
    assert kinds == {kind.name for kind in TargetKind}, where


def test_there_are_such_tables() -> None:
    """The search above still finds them."""
    assert len(list(tables())) >= 8


@pytest.mark.parametrize("kind", TargetKind)
def test_a_play_has_a_cell_and_a_restore_for_every_kind(kind: TargetKind) -> None:
    """No linter sees these: roles/cell has a file KIND.yml, roles/vm_restore a task KIND_restore."""
    name = kind.name.lower()

    assert f"{name}.yml" in (ROOT / "roles/cell/tasks/main.yml").read_text(encoding="utf-8")
    assert (ROOT / f"roles/cell/tasks/{name}.yml").exists()
    assert f"vnuma.vnuma.{name}_restore" in (ROOT / "roles/vm_restore/tasks/main.yml").read_text("utf-8")
