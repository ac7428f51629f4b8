"""What the test on a new root runs, and what it takes along from this machine."""

from __future__ import annotations

import pytest

from tools.fresh import HANDED_THROUGH, readme_commands


def test_the_first_commands_are_those_of_the_readme() -> None:
    """README word by word: clone, then one command; only the address is the clone at hand."""
    clone, demo = readme_commands()

    assert clone == "git clone /srv/vnuma.git vnuma && cd vnuma"
    assert demo == "make demo"


@pytest.mark.parametrize("name", ["https_proxy", "PIP_INDEX_URL", "GOPROXY", "SSL_CERT_FILE"])
def test_the_way_to_the_registries_is_taken_along(name: str) -> None:
    """Proxies, mirrors and certificates of this machine hold in the new root too."""
    assert HANDED_THROUGH.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VNUMA_ODBC_DRIVER", "PIP_CACHE_DIR"]
)
def test_nothing_that_was_prepared_is_taken_along(name: str) -> None:
    """What would hide that set-up forgot something stays here."""
    assert not HANDED_THROUGH.fullmatch(name)
