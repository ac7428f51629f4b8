"""An assumption about a kind of server: one sentence with its source and a function that checks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from vnuma.errors import VnumaError
from vnuma.words.provenance import in_json

SCHEMA = "vnuma/contract/1"

Asked = TypeVar("Asked")
"""The access to a server of one kind: a connection, or a session at a vCenter."""


class Verdict(StrEnum):
    """The result of checking one server."""

    HELD = "held"
    DIFFERS = "differs"
    NOT_EVALUABLE = "not evaluable"


class DiffersError(Exception):
    """The server answered something else; the text says what was seen, without names."""


class NotEvaluableError(Exception):
    """Not checkable on this server: too old a version, or a missing permission."""


def expect(seen: object, wanted: object) -> str:
    """What was seen, as text. Raises DiffersError unless it is `wanted`."""
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
    """The major version from which it is assumed; older servers are not checked."""


@dataclass(frozen=True)
class Beliefs(Generic[Asked]):
    """The assumptions about one kind of server, in the order of checking."""

    by_id: dict[str, Belief[Asked]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Belief[Asked]]:
        return iter(self.by_id.values())

    def __len__(self) -> int:
        return len(self.by_id)

    def __getitem__(self, id_: str) -> Belief[Asked]:
        return self.by_id[id_]

    def add(self, one: Belief[Asked]) -> None:
        """Add an assumption. Raises for a duplicate id."""
        assert one.id not in self.by_id, one.id
        self.by_id[one.id] = one

    def declare(self, id_: str, source: str) -> Callable[[Callable[[Asked], str]], Callable[[Asked], str]]:
        """Decorator that makes a function the check of an assumption; its docstring is the sentence."""

        def declared(look: Callable[[Asked], str]) -> Callable[[Asked], str]:
            self.add(Belief(id_, " ".join((look.__doc__ or "").split()), source, look))
            return look

        return declared


@dataclass(frozen=True)
class Judged:
    """The result for one assumption: `seen` has neither names nor addresses."""

    id: str
    verdict: Verdict
    seen: str


def judged(id_: str, look: Callable[[], str], nameless: Callable[[VnumaError], str]) -> Judged:
    """Check once. `nameless` describes an adapter's error, whose own text names the server, or raises it to
    end the checks.
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
    """One server's results for every assumption. `of` describes it without names, such as its version.

    `simulated` is the lab's scenario if it is not a real server. `leftover` is what is left on it, as a
    sentence. `cut_short` is the error that ended the checks early: raise it after showing these results.
    """

    of: Mapping[str, object]
    leftover: str
    beliefs: tuple[Judged, ...]
    simulated: str | None
    cut_short: Exception | None = None

    def count(self, verdict: Verdict) -> int:
        """The number of assumptions with this verdict."""
        return sum(one.verdict is verdict for one in self.beliefs)

    def document(self) -> dict[str, object]:
        """A document for sending in."""
        beliefs = {one.id: {"verdict": str(one.verdict), "seen": one.seen} for one in self.beliefs}
        return {"schema": SCHEMA, **in_json(self.simulated), "of": dict(self.of), "beliefs": beliefs}
