"""What the test on a new root runs, and what it takes along from this machine."""

from __future__ import annotations

from tools.fresh import HANDED_THROUGH, readme_commands


def test_the_first_commands_are_those_of_the_readme() -> None:
    """README word by word: clone, then one command; only the address is the clone at hand."""
    clone, demo = readme_commands()

    assert clone == "git clone /srv/vnuma.git vnuma && cd vnuma"
    assert demo == "make demo"


def test_the_way_to_the_registries_is_taken_along_and_nothing_that_was_prepared() -> None:
    """Proxies, mirrors and certificates hold in the new root too; what would hide a lack stays here."""
    way = ["https_proxy", "PIP_INDEX_URL", "GOPROXY", "SSL_CERT_FILE"]
    prepared = ["PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VNUMA_ODBC_DRIVER", "PIP_CACHE_DIR"]

    assert [name for name in (*way, *prepared) if HANDED_THROUGH.fullmatch(name)] == way
