"""What every test can ask for: a home of its own, and labs of its own."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import settings

from tests.support import postgresql as postgresql_server
from tests.support.lab import LabHandle, start_lab
from tests.support.long_slice import chosen
from tests.support.skips import fail_unlisted
from vnuma import lab as vnuma_lab
from vnuma.collector import collect_rarely
from vnuma.store.postgresql import close_kept

_QUICK = Path(__file__).parent / "unit"

collect_rarely()
settings.register_profile("vnuma", deadline=None)  # a busy machine does not make an answer wrong
settings.load_profile("vnuma")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--long-slice SEED`: only some of the long tests, chosen by the seed."""
    parser.addoption("--long-slice", metavar="SEED", help="a few long tests, chosen by SEED (a commit)")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the slice's tests alone, where one is asked for; keep folders together, the slow ones first.

    A folder's tests share an emulated guest, browsers and runs, which each process would start for itself.
    """
    items.sort(key=lambda item: (item.path.is_relative_to(_QUICK), item.path.parent))
    seed = config.getoption("--long-slice", None)
    if seed is None:
        return
    slice_ = chosen(seed, [item.nodeid for item in items if item.get_closest_marker("long")])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in slice_])
    items[:] = [item for item in items if item.nodeid in slice_]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test is skipped only for a listed reason."""
    report = yield
    fail_unlisted(report)
    return report


def pytest_collection_finish() -> None:
    """What collecting has loaded stays until the end: it is not searched for garbage again and again."""
    collect_rarely()


class LabFactory(Protocol):
    """`lab(scenario, **overrides)`: start a lab that ends with the test."""

    def __call__(self, scenario: str | dict[str, Any] = "paper", **overrides: Any) -> LabHandle: ...


@pytest.fixture(autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """SIGINT is heard by each test and by what it starts, and no test leaves a handler behind.

    A shell that puts the tests into the background has them ignore it, and children inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths where nothing is yet. `tmp_path` makes a folder, which most tests have no use for."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def vnuma_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home for stores, labs and logs, so that tests never meet a user's own."""
    home = next(homes)
    monkeypatch.setenv("VNUMA_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def lab_binary() -> Path:
    """The lab's program: the one that VNUMA_LAB names, else built once and cached."""
    return vnuma_lab.ready_program()


@pytest.fixture(autouse=True)
def no_connection_is_kept() -> Iterator[None]:
    """A test leaves no connection to a PostgreSQL server behind, whose number is limited."""
    yield
    close_kept()


@pytest.fixture
def lab(lab_binary: Path, tmp_path: Path) -> Iterator[LabFactory]:
    """A factory of labs, each in a folder of its own, that end with the test."""
    with ExitStack() as running:
        folders = (tmp_path / f"lab{number}" for number in count())

        def start(scenario: str | dict[str, Any] = "paper", **overrides: Any) -> LabHandle:
            handle = start_lab(lab_binary, next(folders), scenario, overrides)
            running.callback(handle.stop)
            return handle

        yield start


@pytest.fixture(scope="module")
def shared_lab(lab_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHandle]:
    """One lab (scenario `paper`) for a module's tests that only read and never change a VM."""
    handle = start_lab(lab_binary, tmp_path_factory.mktemp("shared-lab"), "paper", {})
    yield handle
    handle.stop()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[postgresql_server.Cluster]:
    """A private server."""
    server = postgresql_server.start(postgresql_server.find_binaries())
    yield server
    server.stop()
