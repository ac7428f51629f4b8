"""A playbook by the real ansible-playbook, with the results of its tasks."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.forked import Program, run_forked

TIMEOUT_S = 600

Task = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """How one task ended."""

    status: str
    action: str
    host: str
    result: dict[str, Any]

    @property
    def changed(self) -> bool:
        """Whether the task says that it changed something."""
        return bool(self.result["changed"])

    def __getitem__(self, key: str) -> Any:
        return self.result[key]


@dataclass(frozen=True)
class Played:
    """How a playbook ended: exit status, what it printed, and its tasks in order."""

    code: int
    text: str
    tasks: tuple[Result, ...]

    def all(self, action: str) -> list[Result]:
        """Every result of an action of the collection."""
        return [task for task in self.tasks if task.action == f"vnuma.vnuma.{action}"]

    def only(self, action: str) -> Result:
        """The one result of an action; a play that went another way fails with its output."""
        found = self.all(action)
        assert len(found) == 1, self.text
        return found[0]


def play(
    folder: Path, inventory: Path, playbook: str | Path, *arguments: str, env: Mapping[str, str] | None = None
) -> Played:
    """Run a playbook file, or one of the collection by its name, to its end."""
    record = folder / "record.jsonl"
    record.write_text("", encoding="utf-8")
    environment = {**os.environ, "VNUMA_TEST_RECORD": str(record), **(env or {})}
    given = ["-i", str(inventory), str(playbook), *arguments]
    ended, out, err = run_forked(Program("ansible-playbook", given, environment, str(folder), TIMEOUT_S))
    lines = record.read_text(encoding="utf-8").splitlines()
    return Played(ended.code, out + err, tuple(Result(**json.loads(x)) for x in lines))


@dataclass(frozen=True)
class Step:
    """A role with its variables; `check` plays it in check mode."""

    role: str
    variables: Task
    check: bool = False


def play_each(folder: Path, inventory: Path, steps: Sequence[Step]) -> Played:
    """Play steps in one play, in order, each whatever has become of the one before.

    A step that fails is rescued: its result says so, the play's exit status does not.
    """
    return _play_tasks(
        folder,
        inventory,
        [{"block": [_task(step)], "rescue": [{"ansible.builtin.meta": "noop"}]} for step in steps],
    )


def play_roles(
    folder: Path,
    inventory: Path,
    roles: Mapping[str, Task],
    *arguments: str,
    env: Mapping[str, str] | None = None,
) -> Played:
    """Play roles of the collection, in order, each with its variables, on every VM of the inventory."""
    tasks = [_task(Step(role, variables)) for role, variables in roles.items()]
    return _play_tasks(folder, inventory, tasks, *arguments, env=env)


def _task(step: Step) -> Task:
    role: Task = {"name": f"vnuma.vnuma.{step.role}"}
    if step.check:
        role["apply"] = {"check_mode": True}
    return {"ansible.builtin.include_role": role, "vars": step.variables}


def _play_tasks(
    folder: Path,
    inventory: Path,
    tasks: Sequence[Task],
    *arguments: str,
    env: Mapping[str, str] | None = None,
) -> Played:
    playbook = folder / "play.yml"
    document = [{"hosts": "vnuma_vms", "gather_facts": False, "tasks": tasks}]
    playbook.write_text(json.dumps(document), encoding="utf-8")
    return play(folder, inventory, playbook, *arguments, env=env)
