"""Who may read what `vnuma serve` serves: this machine, a token, a proxy that has proven the reader."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.report.build import Story, build, study_text
from tests.report.serving import asked, serving
from tests.support.cli import vnuma_here
from tests.support.stores import new_store
from tests.vsphere.tls_server import self_signed
from vnuma.engine.lease.supervision import ask_to_stop
from vnuma.errors import InputError, UsageError
from vnuma.serve.access import Access, Proxy, Tls
from vnuma.serve.app import server_of
from vnuma.store import runs
from vnuma.store.rows import RunState

TOKEN = "correct-horse-battery-staple"
WRITER = "another-horse-with-a-saw"


@pytest.fixture(scope="module")
def open_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Loopback without a token."""
    with serving(new_store(tmp_path_factory.mktemp("open") / "vnuma.db")) as address:
        yield address


@pytest.fixture(scope="module")
def token_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Loopback with a token."""
    store = new_store(tmp_path_factory.mktemp("token") / "vnuma.db")
    with serving(store, Access(token=TOKEN)) as address:
        yield address


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_changed(open_site: str, method: str) -> None:
    """Whatever the address."""
    assert asked(open_site, "/", method).status == 405


def test_every_answer_says_what_a_browser_may_do(open_site: str) -> None:
    """Scripts and styles of this server alone, no frames, nothing kept."""
    for path in ("/", "/nix", "/runs/nix", "/metrics"):
        headers = asked(open_site, path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_a_name_that_is_not_this_machine_s_is_refused(open_site: str) -> None:
    """A page elsewhere cannot read this one by giving its own name this address; nor by a broken one."""
    for name in ("evil.example", "evil.example@localhost", "localhost:99999", "localhost/x", "[::1", ""):
        assert asked(open_site, "/", Host=name).status == 421, name
    assert asked(open_site, "/", Host="[::1]:8765").status == 200
    assert asked(open_site, "/", Host="localhost:8765").status == 200


def test_without_the_token_nothing_is_shown(token_site: str) -> None:
    """Programs get 401, browsers the form, and come back to where they wanted."""
    for path in ("/", "/metrics", "/events", "/runs/quick.1/report"):
        assert asked(token_site, path).status == 401
    browser = asked(token_site, "/audit?run=x", Accept="text/html")
    assert (browser.status, browser.headers["location"]) == (303, "/sign-in?after=%2Faudit%3Frun%3Dx")
    assert 'value="/audit?run=x"' in asked(token_site, browser.headers["location"]).text


def test_the_token_opens_it_for_programs(token_site: str) -> None:
    """As a bearer token; another one does not."""
    assert asked(token_site, "/metrics", Authorization=f"Bearer {TOKEN}").status == 200
    assert asked(token_site, "/metrics", Authorization="Bearer wrong").status == 401
    assert asked(token_site, "/metrics", Authorization=f"Bearer {TOKEN}", Host="a.example").status == 200
    for name in ("a@evil.example", "evil.example:99999"):
        assert asked(token_site, "/metrics", Authorization=f"Bearer {TOKEN}", Host=name).status == 421


def test_a_run_is_stopped_by_a_writer_alone(tmp_path: Path) -> None:
    """By the token in the form or the request; not by a reader's, from another site, or without one."""
    store = new_store(tmp_path / "vnuma.db")
    build(store, Story(text=study_text(sizes="500", forms="client"), stop_after=9, state=RunState.RUNNING))
    stopped: list[str] = []

    def stop(run: str) -> str:
        stopped.append(run)
        return ask_to_stop(run, after_cell=False, url=f"sqlite:///{store.place.path}")

    path, right, wrong = "/runs/quick.1/stop", urlencode({"token": WRITER}), urlencode({"token": TOKEN})
    with serving(store, Access(writer=WRITER), {"stop": stop}) as address:
        host = address.removeprefix("http://")
        refused = [
            asked(address, path, "POST", wrong),
            asked(address, path, "POST"),
            asked(address, path, "POST", right, Origin="https://evil.example"),
            asked(address, path, "POST", right, Origin="null"),
        ]
        assert [answer.status for answer in refused] == [403] * 4
        assert stopped == []
        assert asked(address, path, "PUT", right).status == 405
        assert asked(address, "/runs/nix/stop", "POST", right).status == 404
        assert f'action="{path}"' in asked(address, "/runs/quick.1").text
        done = asked(address, path, "POST", right, Origin=f"http://{host}")
        assert (done.status, done.headers["location"]) == (303, "/runs/quick.1")
        assert asked(address, path, "POST", Authorization=f"Bearer {WRITER}").status == 303
    with store.read() as connection:
        assert runs.get_run(connection, "quick.1").stop_requested
    with serving(store, Access(token=TOKEN)) as address:
        bearer = f"Bearer {TOKEN}"
        assert asked(address, path, "POST", right, Authorization=bearer).status == 405
        assert "Stop this run" not in asked(address, "/runs/quick.1", Authorization=bearer).text
    with pytest.raises(InputError, match="same token"):
        Access(token=TOKEN, writer=TOKEN).require_safe()


def test_a_browser_signs_in_once(token_site: str) -> None:
    """It keeps a cookie that no script reads, no other site sends, and that is not the token."""
    sent = urlencode({"token": TOKEN, "after": "/estate"})
    signed = asked(token_site, "/sign-in", "POST", sent)
    cookie = signed.headers["set-cookie"]

    assert (signed.status, signed.headers["location"]) == (303, "/estate")
    assert TOKEN not in cookie
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert asked(token_site, "/", Cookie=cookie.split(";")[0]).status == 200
    assert asked(token_site, "/", Cookie="vnuma_reader=wrong").status == 401


@pytest.mark.parametrize(
    "after", ["//evil.example", "//[", "https://evil.example", "/\\evil.example", "x", "/a\nb"]
)
def test_signing_in_leads_nowhere_else(token_site: str, after: str) -> None:
    """The way back is a path of this server."""
    signed = asked(token_site, "/sign-in", "POST", urlencode({"token": TOKEN, "after": after}))

    assert signed.headers["location"] == "/"


def test_a_wrong_token_is_said_and_not_shown(token_site: str) -> None:
    """Nor is a form of any size read."""
    refused = asked(token_site, "/sign-in", "POST", urlencode({"token": "guess-guess-guess", "after": "/"}))
    assert (refused.status, "guess" in refused.text) == (403, False)
    assert asked(token_site, "/sign-in", "POST", "token=" + "x" * 10_000).status == 403


def test_a_proxy_s_header_counts_from_its_address_alone(tmp_path: Path) -> None:
    """Anybody can send a header: a page of another site too, where the proxy is on its reader's machine."""
    store = new_store(tmp_path / "vnuma.db")
    proxy = Proxy("127.0.0.1", "X-User")
    with serving(store, Access(proxy=proxy, token=TOKEN, public_names=("Vnuma.example",))) as address:
        assert asked(address, "/", X_User="ada").status == 200
        assert asked(address, "/").status == 401
        assert asked(address, "/", X_User="ada", Host="vnuma.example").status == 200
        assert "--public-name" in asked(address, "/", X_User="ada", Host="evil.example").text
    with serving(store, Access(proxy=Proxy("10.0.0.9", "X-User"))) as address:
        assert asked(address, "/", X_User="ada").status == 401


def test_tls_with_a_token(tmp_path: Path) -> None:
    """The cookie then travels over TLS alone."""
    pem = self_signed(tmp_path, "site")
    context = ssl.create_default_context(cafile=str(pem))
    with serving(new_store(tmp_path / "vnuma.db"), Access(tls=Tls(pem, pem), token=TOKEN)) as address:
        assert address.startswith("https://")
        assert asked(address, "/metrics", context=context, Authorization=f"Bearer {TOKEN}").status == 200
        signed = asked(address, "/sign-in", "POST", urlencode({"token": TOKEN}), context)
        assert "secure" in signed.headers["set-cookie"].lower()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "vnuma.example"])
@pytest.mark.parametrize("given", [{}, {"token": TOKEN}, {"tls": Tls(Path(__file__), Path(__file__))}])
def test_an_address_of_others_needs_tls_and_proof(host: str, given: dict[str, object]) -> None:
    """Neither is enough alone; what to give is named."""
    with pytest.raises(UsageError, match="TLS and a token") as refused:
        Access(host, **given).require_safe()  # type: ignore[arg-type]
    assert "--certificate" in (refused.value.fix or "")


def test_the_verb_refuses_before_it_reads_anything() -> None:
    """A mistake on the command line: exit 2."""
    ran = vnuma_here("serve", "--host", "0.0.0.0")
    assert (ran.code, "--token-file" in ran.err) == (2, True)


def test_a_token_that_can_be_guessed_is_refused() -> None:
    """Too short."""
    with pytest.raises(InputError, match="fewer than 16"):
        Access(token="secret").require_safe()


def test_a_key_that_does_not_belong_is_an_error_of_input(tmp_path: Path) -> None:
    """Not a traceback."""
    pem, other = self_signed(tmp_path, "site"), self_signed(tmp_path, "other")
    with pytest.raises(InputError, match="cannot be used"):
        server_of(new_store(tmp_path / "vnuma.db"), Access(tls=Tls(pem, other)), {})
