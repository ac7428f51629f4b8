"""A belief: one sentence about a kind of server, with its source, and how one is asked whether it is so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from vnuma.domain.vm.provenance import in_json
from vnuma.errors import VnumaError

SCHEMA = "vnuma/contract/1"

Asked = TypeVar("Asked")
"""Through what a server of one kind is asked: a connection, a session at a vCenter."""


class Verdict(StrEnum):
    """What came of asking one server."""

    HELD = "held"
    DIFFERS = "differs"
    NOT_EVALUABLE = "not evaluable"


class DiffersError(Exception):
    """The server answered something else; the text says what was seen, without names."""


class NotEvaluableError(Exception):
    """This server cannot be asked: an older version, or a right that is missing."""


def expect(seen: object, wanted: object) -> str:
    """What was seen, as text; raises DiffersError where it is something else than wanted."""
    if seen != wanted:
        raise DiffersError(f"{seen} instead of {wanted}")
    return str(seen)


@dataclass(frozen=True)
class Belief(Generic[Asked]):
    """`look` returns what was seen; raises DiffersError, NotEvaluableError, or any error of the adapter."""

    id: str
    says: str
    source: str
    look: Callable[[Asked], str]
    since: int = 0
    """The major version from which it is believed; an older server is not asked."""


@dataclass(frozen=True)
class Beliefs(Generic[Asked]):
    """The beliefs of one kind of server, in the order in which they are asked."""

    by_id: dict[str, Belief[Asked]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Belief[Asked]]:
        return iter(self.by_id.values())

    def __len__(self) -> int:
        return len(self.by_id)

    def __getitem__(self, id_: str) -> Belief[Asked]:
        return self.by_id[id_]

    def add(self, one: Belief[Asked]) -> None:
        """Add a belief. Two of one id are a mistake of ours."""
        assert one.id not in self.by_id, one.id
        self.by_id[one.id] = one

    def declare(
        self, id_: str, source: str, since: int = 0
    ) -> Callable[[Callable[[Asked], str]], Callable[[Asked], str]]:
        """Declare a function as the look of a belief; its docstring is the sentence."""

        def declared(look: Callable[[Asked], str]) -> Callable[[Asked], str]:
            self.add(Belief(id_, " ".join((look.__doc__ or "").split()), source, look, since))
            return look

        return declared


@dataclass(frozen=True)
class Judged:
    """What came of one belief: `seen` has neither names nor addresses."""

    id: str
    verdict: Verdict
    seen: str


def judged(id_: str, look: Callable[[], str], nameless: Callable[[VnumaError], str]) -> Judged:
    """Ask once. `nameless` words an error that the adapter raised, whose own text names the server,
    or raises it where nothing more can be asked.
    """
    try:
        return Judged(id_, Verdict.HELD, look())
    except DiffersError as seen:
        return Judged(id_, Verdict.DIFFERS, str(seen))
    except NotEvaluableError as why:
        return Judged(id_, Verdict.NOT_EVALUABLE, str(why))
    except VnumaError as error:
        return Judged(id_, Verdict.NOT_EVALUABLE, nameless(error))


@dataclass(frozen=True)
class Answers:
    """What one server answered to every belief. `of` says what it is, as versions and words without names.

    `simulated` is the lab's scenario where it is not a real server. `leftover` is what is left on it, as a
    sentence. `cut_short` is the error that ended the questions early: raise it after showing these answers.
    """

    of: Mapping[str, object]
    leftover: str
    beliefs: tuple[Judged, ...]
    simulated: str | None
    cut_short: Exception | None = None

    def count(self, verdict: Verdict) -> int:
        """How many beliefs have this verdict."""
        return sum(one.verdict is verdict for one in self.beliefs)

    def document(self) -> dict[str, object]:
        """For a file to send in."""
        beliefs = {one.id: {"verdict": str(one.verdict), "seen": one.seen} for one in self.beliefs}
        return {"schema": SCHEMA, **in_json(self.simulated), "of": dict(self.of), "beliefs": beliefs}
