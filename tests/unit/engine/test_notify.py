"""Notifications of a run, by real servers on loopback, never at the cost of the run or of a secret."""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sqlserver.authority import Authority
from tests.support.told import web_server
from vnuma.engine import notify as notify_module
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.doctor.diagnose import diagnose_notify
from vnuma.engine.notify import (
    Channel,
    Notifier,
    Ready,
    channels_of,
    event_line,
    ready_channels,
    shown_url,
    text,
    title,
)
from vnuma.errors import InputError

SECRET_PATH = "/hooks/T0/B0/s3cr3t"
HOSTILE = "sql16\r\nBcc: evil@example.com\n=?utf-8?q?=0D=0ABcc:_evil@example.com?=\x85\u2028<!channel> [click](https://evil.example)"
ENDED = event_line(
    "ended",
    "quick.4",
    simulated=True,
    words="10 of 10 cells valid. 4x4 is faster by 3.1%.",
    exit_code=0,
    next=None,
    vms=[{"name": "sql16", "at_baseline": True, "words": "sql16: 31 of 31 settings read back equal"}],
)
TROUBLE = event_line(
    "trouble", "quick.4", simulated=False, vm=HOSTILE, words=f"{HOSTILE} is away.", next=f"look at {HOSTILE}"
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A CA that the tests trust by name."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Path:
    """Of the servers on loopback."""
    return authority.certificate()


@pytest.fixture(autouse=True)
def loopback_needs_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine needs for the internet."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def by_webhook(**fields: Any) -> Channel:
    """A webhook channel, whose address is a separate argument."""
    return Channel.model_validate({"webhook": {"url": {"env": "HOOK"}, **fields}})


def told(way: Channel, url: str = "", event: Any = ENDED) -> list[str]:
    """The failures of notifying about one event."""
    notifier = Notifier([Ready(way, url)])
    notifier.hear(event)
    notifier.wait()
    return notifier.failures()


@given(st.text(st.characters()))
def test_any_name_gives_a_title_of_one_line(name: str) -> None:
    """A title is one printable line, whatever the name."""
    assert len(title({**TROUBLE, "vm": name, "words": name}).splitlines()) == 1


def test_a_webhook_gets_the_event_itself(authority: Authority, certificate: Path) -> None:
    """Over verified TLS, at the path that its address has."""
    with web_server(certificate) as server:
        failures = told(by_webhook(ca_file=str(authority.ca_file)), server.address + SECRET_PATH)

    assert failures == []
    assert server.posts == [(SECRET_PATH, ENDED)]


@contextmanager
def refusing(certificate: Path) -> Iterator[str]:
    """A web server that knows no such path."""
    with web_server(certificate, status=404) as server:
        yield server.address


@contextmanager
def redirecting(certificate: Path) -> Iterator[str]:
    """A web server that redirects to another, which gets nothing."""
    with web_server(None) as other:
        where = {"Location": f"{other.address}/elsewhere"}
        with web_server(certificate, status=302, headers=where) as server:
            yield server.address
        assert other.posts == []


@contextmanager
def unknown_ca(_certificate: Path) -> Iterator[str]:
    """A web server whose certificate is not of the CA that is trusted."""
    folder = _certificate.parent / "other"
    folder.mkdir(exist_ok=True)
    with web_server(Authority(folder).certificate()) as server:
        yield server.address
        assert server.posts == []


@contextmanager
def in_the_clear(_certificate: Path) -> Iterator[str]:
    """A web server without TLS."""
    with web_server(None) as server:
        yield server.address
        assert server.posts == []


@pytest.mark.parametrize(
    ("server", "says"),
    [(refusing, "404"), (redirecting, "302"), (unknown_ca, "certificate"), (in_the_clear, "https")],
)
def test_a_webhook_that_fails_is_reported_by_its_server_alone(
    server: Callable[[Path], AbstractContextManager[str]], says: str, authority: Authority, certificate: Path
) -> None:
    """Its path is a secret."""
    with server(certificate) as address:
        (failure,) = told(by_webhook(ca_file=str(authority.ca_file)), address + SECRET_PATH)

    assert [says in failure, "127.0.0.1" in failure, "s3cr3t" in failure] == [True, True, False]


@pytest.mark.parametrize(
    "url", ["https://u:pw@h.example/s", "https://h.example:99999/s", "https://[/s", "s", ""]
)
def test_what_is_shown_of_an_address_is_never_its_secret(url: str) -> None:
    """User, path and query are left out, and an invalid one as a whole."""
    shown = shown_url(url)

    assert "pw" not in shown
    assert not shown.endswith("/s")


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends, and the failure is reported once."""
    monkeypatch.setattr(notify_module, "BOUND_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        notifier = Notifier([Ready(by_webhook(tls="none"), f"http://127.0.0.1:{silent.getsockname()[1]}/")])
        notifier.hear(ENDED)
        notifier.wait()
        (failure,) = notifier.failures()

    assert failure
    assert notifier.failures() == []


def test_a_command_gets_title_and_text_in_its_environment(tmp_path: Path) -> None:
    """For programs that send mail or chat messages; a hostile name is data, also to a shell."""
    file = tmp_path / "$(id)"  # an argument stays what it is
    assert told(Channel(command=("tee", str(file)))) == []
    assert json.loads(file.read_text(encoding="utf-8")) == ENDED
    file = tmp_path / "said"
    script = f'printf "%s|%s|%s" "$VNUMA_EVENT" "$VNUMA_TITLE" "$VNUMA_TEXT" >{file}'
    assert told(Channel(command=("sh", "-c", script)), event=TROUBLE) == []

    assert file.read_text(encoding="utf-8") == f"trouble|{title(TROUBLE)}|{text(TROUBLE)}"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("false",), "exit status 1"),
        (("/nonexistent/hook",), "no such file"),
        (("sleep", "60"), "did not end"),
    ],
)
def test_a_command_that_fails_is_reported(
    command: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it ends badly, is not there, or does not end."""
    monkeypatch.setattr(notify_module, "COMMAND_S", 0.2)

    (failure,) = told(Channel(command=command))

    assert [part for part in (says, command[0]) if part not in failure] == []


def test_a_command_that_takes_too_long_ends_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its group is killed: the pipe that a child has inherited is closed."""
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    monkeypatch.setattr(notify_module, "COMMAND_S", 1.0)

    told(Channel(command=("sh", "-c", f"exec 3>'{pipe}'; sleep 60 & wait")))

    os.close(writer)
    assert select.select([reader], [], [], 10.0)[0] == [reader]
    os.close(reader)


def test_an_event_that_a_way_does_not_name_is_not_told(tmp_path: Path) -> None:
    """Each way tells its own events."""
    file = tmp_path / "events"
    assert told(Channel(command=("tee", str(file)), events=("not_at_baseline",))) == []

    assert not file.exists()


def inventory(folder: Path, ways: object, **variables: Any) -> Path:
    """An inventory of two hosts with these ways."""
    path = folder / "hosts.yml"
    hosts = {"a": {"own": "x"}, "b": {"own": "x"}}
    document = {"all": {"vars": {"vnuma_notify": ways, **variables}, "hosts": hosts}}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("way", "says"),
    [
        ({"webhook": {"url": "https://h.example/s3cr3t"}}, "reference"),
        ({"webhook": "https://h.example/s3cr3t"}, "mapping"),
        ({"webhook": {"url": {"env": "U"}}, "command": ["true"]}, "one of"),
        ({"mail": {"host": "h.example"}}, "mail"),
        ({"command": "true"}, "list"),
        ({"command": ["true"], "events": ["finished"]}, "not_at_baseline"),
    ],
)
def test_what_is_wrong_with_a_way_is_said_by_its_place(tmp_path: Path, way: object, says: str) -> None:
    """Before anything starts; a secret in the open is refused and not repeated."""
    with pytest.raises(InputError) as raised:
        channels_of(Inventory(inventory(tmp_path, [way])), ["a"])

    said = str(raised.value)
    assert [says in said, "host a: vnuma_notify.0" in said, "s3cr3t" in said] == [True, True, False]


def test_hosts_with_the_same_way_are_told_of_once(tmp_path: Path) -> None:
    """By a lookup too, whose result is a secret of each host."""
    hook = {"webhook": {"url": "https://{{ own }}.example{{ lookup('env', 'HOME') }}"}}
    ready, lacking = ready_channels(Inventory(inventory(tmp_path, [hook])), ["a", "b"])

    assert [one.name for one in ready] == ["webhook https://x.example/..."]
    assert lacking == ()


def test_the_doctor_sends_a_test_where_it_is_asked_for(tmp_path: Path) -> None:
    """Each way, and one whose secret is missing fails."""
    file = tmp_path / "events"
    where = inventory(tmp_path, [{"command": ["tee", str(file)]}, by_webhook().model_dump(exclude_none=True)])

    shown = list(diagnose_notify(Inventory(where), ["a", "b"], send=False))
    assert not file.exists()
    sent = list(diagnose_notify(Inventory(where), ["a", "b"], send=True))

    assert [item.state for item in shown] == [item.state for item in sent] == ["FAIL", "ok"]
    assert json.loads(file.read_text(encoding="utf-8"))["event"] == "test"
