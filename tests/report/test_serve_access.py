"""Who may read what `vnuma serve` serves: this machine, or a token."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.serving import asked, serving
from tests.support.cli import vnuma_here
from tests.support.stores import new_store
from tests.vsphere.tls_server import self_signed
from vnuma.errors import InputError, UsageError
from vnuma.serve import connections
from vnuma.serve.app import server_of
from vnuma.serve.connections import Access

TOKEN = "correct-horse-battery-staple"


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


@pytest.mark.parametrize("path", ["/", "/nix", "/runs/nix", "/metrics"])
def test_every_answer_says_what_a_browser_may_do(open_site: str, path: str) -> None:
    """Scripts and styles of this server alone, no frames, nothing kept."""
    headers = asked(open_site, path).headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))

    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'none'")
    assert not [rule for rule in policy.values() if re.search("unsafe|http|\\*", rule)]
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


def test_a_name_that_is_not_this_machine_s_is_refused(open_site: str) -> None:
    """A page elsewhere cannot read this one by giving its own name this address; nor by a broken one."""
    for name in ("evil.example", "evil.example@localhost", "localhost:99999", "localhost/x", "[::1", ""):
        assert asked(open_site, "/", Host=name).status == 421, name
    assert asked(open_site, "/", Host="[::1]:8765").status == 200
    assert asked(open_site, "/", Host="localhost:8765").status == 200


def test_without_the_token_nothing_is_shown(token_site: str) -> None:
    """Programs get 401; a browser asks for the token itself, as the answer says."""
    for path in ("/", "/metrics", "/events", "/runs/quick.1/report", "/static/style.css"):
        answer = asked(token_site, path)
        assert (answer.status, answer.headers["www-authenticate"].split()[0]) == (401, "Basic")


def test_the_token_opens_it_for_programs(token_site: str) -> None:
    """As a bearer token; another one does not."""
    assert asked(token_site, "/metrics", Authorization=f"Bearer {TOKEN}").status == 200
    assert asked(token_site, "/metrics", Authorization="Bearer wrong").status == 401
    assert asked(token_site, "/metrics", Authorization=f"Bearer {TOKEN}", Host="a.example").status == 200
    for name in ("a@evil.example", "evil.example:99999"):
        assert asked(token_site, "/metrics", Authorization=f"Bearer {TOKEN}", Host=name).status == 421


@pytest.mark.parametrize(
    ("credentials", "status"),
    [
        (f"ada:{TOKEN}", 200),
        (f":{TOKEN}", 200),
        (f"{TOKEN}:", 401),
        ("ada:guess-guess-guess", 401),
        ("", 401),
    ],
)
def test_a_browser_sends_the_token_as_a_password(token_site: str, credentials: str, status: int) -> None:
    """With any user name."""
    encoded = b64encode(credentials.encode()).decode()
    assert asked(token_site, "/", Authorization=f"Basic {encoded}").status == status


@pytest.mark.parametrize("header", ["Basic", "Basic %%%", "Basic /w==", "Digest x", "Bearer", "Bearer \xe9"])
def test_credentials_that_cannot_be_read_are_wrong_ones(token_site: str, header: str) -> None:
    """No traceback: the answer is the same as without any."""
    assert asked(token_site, "/", Authorization=header).status == 401


def _half_sent(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), timeout=30)
    made.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
    return made


def test_half_a_request_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is closed at the limit, and the descriptor is free again."""
    monkeypatch.setattr(connections, "HEADERS_S", 0.2)
    with serving(new_store(tmp_path / "vnuma.db")) as address, _half_sent(address) as held:
        with contextlib.suppress(ConnectionResetError):
            assert held.recv(100) == b""
        assert asked(address, "/").status == 200


def test_more_connections_than_the_cap_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are there are still served."""
    monkeypatch.setattr(connections, "most_connections", lambda: 2)
    with serving(new_store(tmp_path / "vnuma.db")) as address:
        first = _half_sent(address)
        with first, _half_sent(address), _half_sent(address) as third:
            with contextlib.suppress(ConnectionResetError):
                assert third.recv(100) == b""
            first.sendall(b"\r\n")
            assert first.recv(12) == b"HTTP/1.1 200"


def test_a_full_process_logs_one_line() -> None:
    """asyncio reports each connection without a descriptor; other messages stay as they are."""
    kept = connections.OneLineWhenFull()

    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord(
            "asyncio", logging.ERROR, __file__, 1, text, (), (OSError, OSError(24), None)
        )

    first, second, other = (record(text) for text in ("socket.accept() out of system resource",) * 2 + ("x",))
    assert [kept.filter(one) for one in (first, second, other)] == [True, False, True]
    assert (first.exc_info, other.exc_info is None) == (None, False)


def test_tls_with_a_token(tmp_path: Path) -> None:
    """Encrypted, with the token as a bearer token."""
    pem = self_signed(tmp_path, "site")
    context = ssl.create_default_context(cafile=str(pem))
    with serving(new_store(tmp_path / "vnuma.db"), Access(tls=(pem, pem), token=TOKEN)) as address:
        assert address.startswith("https://")
        assert asked(address, "/metrics", context=context, Authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "vnuma.example"])
@pytest.mark.parametrize("given", [{}, {"token": TOKEN}, {"tls": (Path(__file__), Path(__file__))}])
def test_an_address_of_others_needs_tls_and_proof(host: str, given: dict[str, object]) -> None:
    """Neither is enough alone; what to give is named."""
    with pytest.raises(UsageError) as refused:
        Access(host, **given).require_safe()  # type: ignore[arg-type]
    assert re.findall(r"--certificate|--token-file", str(refused.value.fix)) == [
        "--certificate",
        "--token-file",
    ]


def test_the_verb_refuses_before_it_reads_anything() -> None:
    """A mistake on the command line: exit 2."""
    assert vnuma_here("serve", "--host", "0.0.0.0").code == 2


def test_a_machine_without_a_store_is_served_what_needs_none(tmp_path: Path) -> None:
    """The other pages say what is missing; a store that was named and does not exist is an error (9)."""
    environment = {**os.environ, "VNUMA_HOME": str(tmp_path)} | {"PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "vnuma", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout
        address = re.search(r"http://[^/]+", served.stdout.readline())
        assert address
        answers = [asked(address[0], page) for page in ("/what-if/", "/", "/nix")]
        served.terminate()
    assert [answer.status for answer in answers] == [200, 503, 503]
    assert vnuma_here("serve", "--store", f"sqlite:///{tmp_path}/nix.db").code == 9


def test_secrets_that_protect_nothing_are_errors_of_input(tmp_path: Path) -> None:
    """A token that can be guessed, and a key that does not belong to its certificate."""
    pem, other = self_signed(tmp_path, "site"), self_signed(tmp_path, "other")
    with pytest.raises(InputError):
        Access(token="secret").require_safe()
    with pytest.raises(InputError):
        server_of(new_store(tmp_path / "vnuma.db"), Access(tls=(pem, other)))
