"""Run beliefs on a server with pytest: each is a test function whose docstring is the sentence.

`test_ROOM_NAME` has the id ROOM.NAME; with parameters, `test_ROOM[NAME]`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import pytest

from vnuma.words.provenance import in_json

SCHEMA = "vnuma/contract/1"
ROOMS = ("sql", "read", "off", "on")
"""The modules `beliefs_ROOM`: SQL Server; a VM that is read; a test clone that is off; one that runs."""

source = pytest.mark.source
"""Marker of a belief: the address of its documentation."""

_HERE = Path(__file__).parent
_OPTIONS = (
    *("-c", os.devnull, "--rootdir", str(_HERE), "--import-mode=importlib", "-s", "--assert=plain"),
    "--disable-plugin-autoload",
    *(f"-pno:{name}" for name in ("terminal", "cacheprovider", "faulthandler", "logging", "warnings")),
    *(f"-pno:{name}" for name in ("threadexception", "unraisableexception", "junitxml", "doctest")),
)


class Verdict(StrEnum):
    """The result of asking one server."""

    HELD = "held"
    DIFFERS = "differs"
    NOT_EVALUABLE = "not evaluable"


class Differs(Exception):
    """The server answered something else; the text says what was seen, without names."""


def expect(seen: object, wanted: object) -> None:
    """Raise Differs unless what was seen is `wanted`. Neither has names in it."""
    if seen != wanted:
        raise Differs(f"{seen} instead of {wanted}")


@dataclass(frozen=True)
class Belief:
    """A sentence about a kind of server, and where it is documented."""

    id: str
    says: str
    source: str
    since: int
    """The major version of SQL Server from which it is believed; 0: every one."""


@dataclass(frozen=True)
class Judged:
    """The result for one belief: what was seen if it differs, or why it could not be asked; no names."""

    id: str
    verdict: Verdict
    seen: str = ""


@dataclass(frozen=True)
class Answers:
    """One server's results for every belief. `of` describes it without names, such as its version.

    `simulated` is the lab's scenario if it is not a real server. `leftover` is what is left on it, as a
    sentence. `cut_short` is the error that ended it early: raise it after showing these results.
    """

    of: Mapping[str, object]
    leftover: str
    beliefs: tuple[Judged, ...]
    simulated: str | None
    cut_short: Exception | None = None

    def count(self, verdict: Verdict) -> int:
        """The number of beliefs with this verdict."""
        return sum(one.verdict is verdict for one in self.beliefs)

    def document(self) -> dict[str, object]:
        """A document for sending in."""
        beliefs = {one.id: {"verdict": str(one.verdict), "seen": one.seen} for one in self.beliefs}
        return {"schema": SCHEMA, **in_json(self.simulated), "of": dict(self.of), "beliefs": beliefs}


Open = Callable[[], AbstractContextManager[object]]
"""Opens what one belief is given as `asked`."""

Explain = Callable[[Exception], tuple[Verdict, str]]
"""What an error says of the belief that met it, without names. Raises what ends the asking."""


def ask(room: str, opened: Open, explain: Explain, judged: list[Judged]) -> None:
    """Run the beliefs of a room in their order, appending each result. Raises what ended it early."""
    asking = _BeliefRun(opened, explain, judged)
    code = _pytest(asking, room)
    if asking.ended:
        raise asking.ended
    if code == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), f"pytest ended with {code}"


@cache
def beliefs(room: str) -> tuple[Belief, ...]:
    """The beliefs of a room, in the order of asking."""
    listing = _Listing()
    _pytest(listing, room, "--collect-only")
    return tuple(map(_belief, listing.items))


def _pytest(plugin: object, room: str, *options: str) -> int:
    path = _HERE / f"beliefs_{room}.py"
    theirs = os.environ.pop("PYTEST_ADDOPTS", None)  # of somebody's own tests
    try:
        return pytest.main([*_OPTIONS, *options, str(path)], plugins=[plugin])
    finally:
        if theirs is not None:
            os.environ["PYTEST_ADDOPTS"] = theirs


def _belief(item: pytest.Item) -> Belief:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    (address,) = item.get_closest_marker("source").args  # type: ignore[union-attr]
    says = " ".join((item.obj.__doc__ or "").split())  # type: ignore[attr-defined]
    return Belief(_id(item), says.format(**parameters), address, parameters.get("since", 0))


def _id(item: pytest.Item) -> str:
    room, _, name = item.name.removeprefix("test_").rstrip("]").replace("[", "_", 1).partition("_")
    return f"{room}.{name}"


class _Listing:
    """Keeps what pytest collected."""

    items: tuple[pytest.Item, ...] = ()

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "source(address): where a belief is documented")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = tuple(session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            raise RuntimeError(report.longreprtext)


class _BeliefRun(_Listing):
    """Gives each belief its server, and keeps its result."""

    def __init__(self, opened: Open, explain: Explain, judged: list[Judged]) -> None:
        self.opened, self.explain, self.judged = opened, explain, judged
        self.ended: Exception | None = None

    @pytest.fixture
    def asked(self) -> Iterator[object]:
        with self.opened() as asked:
            yield asked

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        error = call.excinfo.value if call.excinfo else None
        if error is None and call.when != "call":
            return
        try:
            self.judged.append(Judged(_id(item), *self._verdict(error)))
        except Exception as ended:  # noqa: BLE001 - raised again by `ask`
            self.ended = self.ended or ended
            item.session.shouldstop = "ended early"

    def _verdict(self, error: BaseException | None) -> tuple[Verdict, str]:
        match error:
            case None:
                return Verdict.HELD, ""
            case pytest.skip.Exception():
                return Verdict.NOT_EVALUABLE, str(error.msg)
            case Differs():
                return Verdict.DIFFERS, str(error)
            case Exception():
                return self.explain(error)
        raise error


_SEEN = {
    "guest": "running",
    "host": "cores_and_threads numa_nodes numa_nodes_have_memory numa_options",
    "time": "two_figures",
    "vm": (
        "automatic_cores cores_divide cpu_allocation extra_config identity log_directory memory_allocation "
        "methods_disabled numa_info"
    ),
    "word": "connectionState inMaintenanceMode latencySensitivity powerState toolsRunningStatus",
}
SEEN_FOR_REAL = frozenset(f"{room}.{name}" for room, names in _SEEN.items() for name in names.split())
"""Beliefs that a recorded answer of a real server supports; of all others only the lab and documents know."""

_HEAD = """# What vnuma assumes about SQL Server and vSphere

Made by `vnuma contract > docs/reference/contract.md`. Each of these {count} assumptions is a test with its
source; the lab behaves as each says. *Lab only*: no recorded answer of a real server supports it yet.
The same command asks a real server; it needs pytest (`pip install 'vnuma[contract]'`). The result is *held*,
*differs*, or *not evaluable*: the server is too old, a right is missing, the VM lacks what the assumption
is about, or must not be changed (not marked as a test clone, or `--read-only`). `--output FILE` writes the
results without names or addresses, to send in.
"""

_TEXTS = {
    "sql": """
## SQL Server

`vnuma contract --sql HOST`, HOST as in the inventory. It logs in once for each assumption, creates and
drops the database `vnuma_contract`, and changes no setting. Without a test clone or its owner's tag it
needs `--production` and `--ticket`. *From* is the first major version.

""",
    "read": """
## vSphere, read

`vnuma contract --vcenter HOST`, HOST as in the inventory. Nothing is changed.

""",
    "off": """
## vSphere, changed

The same command without `--read-only`, on a VM that the inventory (`vnuma_test_clone: true`) or its owner's
tag marks as a test clone. The VM is leased as in a run, with baseline, mark and audit log. After a
confirmation (`--yes` in scripts) it is shut down, changed, powered on, and always restored (after a kill by
`vnuma restore`).

### While it is off

""",
    "on": """
### After its power-on, while it runs

""",
}


def markdown() -> str:
    head = _HEAD.format(count=sum(len(beliefs(room)) for room in ROOMS))
    return head + "".join(f"{_TEXTS[room]}{_list(room)}" for room in ROOMS)


def document() -> dict[str, object]:
    """The beliefs as plain values."""
    listed = [
        {
            "id": one.id,
            "says": one.says,
            "source": one.source,
            "asked": room,
            "lab_only": one.id not in SEEN_FOR_REAL,
        }
        for room in ROOMS
        for one in beliefs(room)
    ]
    return {"schema": "vnuma/beliefs/1", "beliefs": listed}


def _list(room: str) -> str:
    return "".join(
        f"- [`{one.id}`]({one.source}){f' (from {one.since})' if one.since else ''}"
        f"{'' if one.id in SEEN_FOR_REAL else ' *lab only*'}: {one.says}\n"
        for one in beliefs(room)
    )
