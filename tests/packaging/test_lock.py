"""The locked packages are what pyproject.toml asks for, pinned by hash, from whichever registry."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.installation import ROOT
from tools.dist import applies, requirements

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
RUN, BUILD, DEV, DOCS = "requirements.lock", "tools/build.lock", "tools/dev.lock", "tools/docs.lock"
ASKED = {
    RUN: [*PROJECT["project"]["dependencies"], *EXTRAS["postgresql"], *EXTRAS["serve"]],
    DEV: [*GROUPS["dev"], *(text for name, texts in EXTRAS.items() if name != "lab" for text in texts)],
    BUILD: GROUPS["build"],
    DOCS: GROUPS["docs"],
    "tools/pip.lock": GROUPS["pip"],
    "tools/go.lock": GROUPS["go"],
    "tools/odbc.lock": GROUPS["odbc"],
}
"""What pyproject.toml asks for, by the lock that pins it."""

TOGETHER = {DEV: (RUN, BUILD, DEV), DOCS: (RUN, BUILD, DEV, DOCS)}
"""A lock that is installed together with others names only what those lack."""


def pins(lock: Path) -> list[tuple[Requirement, int]]:
    """Each pinned requirement of a lock with the number of its hashes."""
    joined = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    found = []
    for line in joined.splitlines():
        requirement, *hashes = re.split(r"\s+--hash=sha256:", line.strip())
        found.append(
            (Requirement(requirement), sum(bool(re.fullmatch(r"[0-9a-f]{64}", text)) for text in hashes))
        )
    return found


@pytest.mark.parametrize("lock", ASKED)
def test_each_dependency_is_locked_within_its_bounds(lock: str) -> None:
    """Whatever pyproject.toml asks for is pinned to a version that it allows: else `make lock`."""
    locked: dict[str, list[str]] = {}
    for pin, _ in [pin for part in TOGETHER.get(lock, (lock,)) for pin in pins(ROOT / part)]:
        (only,) = pin.specifier
        locked.setdefault(canonicalize_name(pin.name), []).append(only.version)
    for text in ASKED[lock]:
        asked = Requirement(text)
        versions = locked.get(canonicalize_name(asked.name), [])

        assert versions, f"{asked.name} is not in {lock}"
        assert all(asked.specifier.contains(version) for version in versions), f"{asked}: {versions}"


@pytest.mark.parametrize("lock", ASKED)
def test_each_pin_is_exact_and_has_hashes(lock: str) -> None:
    """One version and the hashes of its files, from the registry that the user's pip is set to."""
    for pin, hashes in pins(ROOT / lock):
        assert [item.operator for item in pin.specifier] == ["=="], str(pin)
        assert hashes > 0, str(pin)
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert re.findall("://|--index-url|--find-links", text) == []


def names(lock: str) -> set[str]:
    """The packages that a lock pins on this machine."""
    return {canonicalize_name(pin.name) for pin, _ in pins(ROOT / lock) if applies(pin.marker)}


def test_what_running_needs_is_locked_and_nothing_else() -> None:
    """The lock of the run-time set is what the dependencies ask for, each with its own dependencies.

    So are the driver for PostgreSQL and `vnuma serve`: images and the archive cannot get them later.
    """
    needed: set[str] = set()
    waiting = [Requirement(text) for text in ASKED[RUN]]
    while waiting:
        asked = waiting.pop()
        needed.add(canonicalize_name(asked.name))
        waiting += [one for one in requirements(asked) if canonicalize_name(one.name) not in needed]

    assert names(RUN) == needed


def test_the_docs_are_locked_with_all_that_they_need() -> None:
    """Set-up installs without resolving: what one of these packages asks for is pinned in some lock."""
    pinned = names(RUN) | names(BUILD) | names(DEV) | names(DOCS)
    asked = {
        canonicalize_name(requirement.name)
        for name in names(DOCS)
        for requirement in map(Requirement, distribution(name).requires or [])
        if applies(requirement.marker)
    }

    assert asked <= pinned


def test_each_pin_is_in_one_lock() -> None:
    """Set-up installs several locks together: two versions of a package cannot meet."""
    assert not names(RUN) & names(BUILD)
    assert not names(DEV) & (names(RUN) | names(BUILD))
    assert not names(DOCS) & (names(RUN) | names(BUILD) | names(DEV))
