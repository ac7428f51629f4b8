"""Shell completion. An error gives no suggestions, since a prompt is no place for a message."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path

from vnuma.errors import VnumaError

_ENDINGS = (".yml", ".yaml")


def _begun(names: Callable[[], list[str]]) -> Callable[[str], list[str]]:
    """The names that start with what was typed."""

    @wraps(names)
    def offered(incomplete: str) -> list[str]:
        with suppress(VnumaError, OSError):
            return [name for name in names() if name.startswith(incomplete)]
        return []

    offered.__annotations__ = {"incomplete": str, "return": list[str]}
    del offered.__wrapped__  # its signature has no `incomplete`
    return offered


@_begun
def run_names() -> list[str]:
    from vnuma.engine.access.places import store_url
    from vnuma.store.open import open_store
    from vnuma.store.runs import measuring_runs

    with open_store(store_url(), create=False).read() as connection:
        return [*(run.name for run in measuring_runs(connection)), "latest"]


@_begun
def vm_names() -> list[str]:
    """Names of the inventory's VMs and machines."""
    from vnuma.cli.options import find_inventory
    from vnuma.cli.screen import MANNER

    MANNER.quiet = True
    return sorted(find_inventory(None).hosts)


def study_files(incomplete: str) -> list[str]:
    """Study files in the folder typed, and in `studies`; without any, the shell offers its own files."""
    folder = incomplete.rpartition("/")[0]
    places = [Path(folder)] if folder else [Path(), Path("studies")]
    found = [
        str(file) for place in places if place.is_dir() for file in place.iterdir() if file.suffix in _ENDINGS
    ]
    return sorted(name for name in found if name.startswith(incomplete))
