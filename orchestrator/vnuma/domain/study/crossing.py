"""Arms written as a crossing: every topology with every value of every factor.

    arms:
      topologies: all
      affinity: [none, physical_cores]
      memory_reservation: locked

A list is a list of values, each an arm of its own; a single value holds for every arm. A value that is
itself a list, of CPUs or nodes, stands in a list of its own: `affinity: [none, [0, 2, 4, 6]]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from vnuma.domain.arm.arm import short_name
from vnuma.domain.topology.topology import topologies
from vnuma.domain.workloads.settings import Path, Problem

MOST_ARMS = 100
"""An experiment with more arms would never end."""

MOST_LETTERS = 40
"""The longest name of an arm."""

_WORDS = {"physical_cores": "cores"}


class Crossing:
    """A crossing in a study file, and the arms that it expands to."""

    def __init__(self, written: Mapping[str, Any], vcpus: object) -> None:
        self._written = written
        self._counts = _values(written.get("vcpus", vcpus))
        self.factors = {
            name: _values(value) for name, value in written.items() if name not in ("topologies", "vcpus")
        }

    def arms(self) -> list[dict[str, Any]]:
        """The expanded arms: topology by topology, the last factor fastest."""
        several = [name for name, values in self.factors.items() if len(values) > 1]
        made = []
        for topology, vcpus in self._topologies():
            for values in product(*self.factors.values()):
                settings = dict(zip(self.factors, values, strict=True))
                words = [f"{topology}" if topology != "auto" else f"auto{vcpus or ''}"]
                words += [f"{short_name(name)}={_text(settings[name])}" for name in several]
                arm = {"topology": topology, **settings}
                if "vcpus" in self._written:
                    arm["vcpus"] = vcpus
                if len(words) > 1 or topology == "auto":
                    arm["name"] = " ".join(words)
                made.append(arm)
        return made

    def problems(self) -> Iterator[Problem]:
        """What is wrong with the crossing itself; its arms are checked as arms."""
        if "topologies" not in self._written:
            yield Problem(("arms",), "crossed arms need topologies.", "Write topologies: all, or a list.")
        if self._count() > MOST_ARMS:
            yield self._too_many(self._count())
            return
        for name, values in (*self.factors.items(), ("topologies", self._given())):
            if not values:
                yield Problem(("arms", name), f"{name} has no values.", "Give at least one, or remove it.")
            for index, value in enumerate(values):
                if value in values[:index]:
                    yield Problem(("arms", name), f"{name} has {_text(value)} twice.", "Remove one.")
        arms = self.arms()
        if len(arms) > MOST_ARMS:
            yield self._too_many(len(arms))
        for arm in arms:
            if len(arm.get("name", "")) > MOST_LETTERS:
                yield Problem(
                    ("arms",),
                    f"the arm's name '{arm['name']}' is longer than {MOST_LETTERS} letters.",
                    "Write the arms out and name each.",
                )
                return

    @staticmethod
    def _too_many(made: int) -> Problem:
        return Problem(("arms",), f"the factors make {made:,} arms.", f"Cross at most {MOST_ARMS}.")

    def _count(self) -> int:
        """A lower bound of its number of arms, without expanding them: a few lines can cross to billions."""
        given = len(self._given()) if self._written.get("topologies") != "all" else 1
        return (
            max(1, len(self._counts)) * given * prod(max(1, len(values)) for values in self.factors.values())
        )

    def in_file(self, path: Path) -> Path:
        """The path in the file for a path in the expanded arms."""
        if path[:1] != ("arms",) or len(path) < 2:
            return path
        field = {"topology": "topologies"}.get(str(path[2]), str(path[2])) if len(path) > 2 else ""
        return ("arms", field) if field in self._written else ("arms",)

    def _topologies(self) -> Iterator[tuple[Any, Any]]:
        for count in self._counts:
            if self._written.get("topologies") == "all":
                valid = isinstance(count, int) and 0 < count <= 768
                for topology in topologies(count) if valid else ():
                    yield str(topology), count
            else:
                for topology in self._given():
                    yield topology, count

    def _given(self) -> list[Any]:
        return _values(self._written.get("topologies", []))


def _values(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _text(value: object) -> str:
    """A factor's value in a name: short, and always the same."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        numbers = [str(number) for number in value]
        return ",".join(numbers) if len(numbers) < 4 else f"{numbers[0]}..{numbers[-1]}"
    if isinstance(value, Mapping):
        if "physical_cores" in value or "spare" in value:
            spare = f"+{value['spare']}" if value.get("spare") else ""
            return f"cores@{_text(value.get('physical_cores', 'fewest'))}{spare}".replace("@fewest", "")
        return ",".join(f"{str(key).rpartition('.')[2]}:{_text(item)}" for key, item in value.items())
    return _WORDS.get(str(value), str(value))
