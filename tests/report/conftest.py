"""A store of its own for each test of the reports, and each run's story written once."""

from __future__ import annotations

import hashlib
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.report.build import Load, Lost, Story, build, store_of, study_text
from tests.support.made_once import made_once
from tests.support.stores import new_store
from vnuma.report.archive.write import default_path, export_run
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.store.open import Store, open_store

ARCHIVED = Story(
    text=study_text(sizes="500", forms="client"),
    lost={("4x4", 3): (Lost(),)},
    given_up=frozenset({("8x2", 2)}),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty SQLite store."""
    return new_store(tmp_path / "vnuma.db")


@pytest.fixture(scope="session")
def told() -> list[tuple[Story, LoadedRun]]:
    """The runs loaded so far. They are values: no test can change one."""
    return []


@pytest.fixture(scope="session")
def loaded(told: list[tuple[Story, LoadedRun]], tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Write a run's story into its own store and load it as reports do."""

    def load(story: Story) -> LoadedRun:
        known = next((run for past, run in told if past == story), None)
        if known is None:
            known = load_run(_written(tmp_path_factory, story), "latest")
            told.append((story, known))
        return known

    return load


def _written(factory: pytest.TempPathFactory, story: Story) -> Store:
    """The story's store, which all workers read; each has its own where a local function makes the times."""
    try:
        name = hashlib.sha256(pickle.dumps(story)).hexdigest()
    except (AttributeError, pickle.PicklingError):
        return store_of(factory.mktemp("told") / "vnuma.db", story)
    folder = made_once(factory, f"told-{name}", lambda folder: build(new_store(folder / "vnuma.db"), story))
    return open_store(f"sqlite:///{folder / 'vnuma.db'}")


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, LoadedRun, Path]:
    """A run with a repeated attempt and a missing cell, and its archive."""
    folder = made_once(tmp_path_factory, "exported", _export)
    store = open_store(f"sqlite:///{folder / 'vnuma.db'}")
    loaded = load_run(store, "latest")
    return store, loaded, folder / default_path(loaded).name


def _export(folder: Path) -> None:
    store = store_of(folder / "vnuma.db", ARCHIVED)
    loaded = load_run(store, "latest")
    export_run(store, loaded, folder / default_path(loaded).name)


BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)


QUIET = [
    *("--no-sandbox", "--disable-gpu", "--disable-software-rasterizer", "--disable-gpu-compositing"),
    *("--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The machine's Chromium or Chrome, in which a test's pages are closed after it: they would go on."""
    yield chromium
    for context in chromium.contexts:
        context.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """It, for the tests of a module."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium or Chrome on this machine")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()
