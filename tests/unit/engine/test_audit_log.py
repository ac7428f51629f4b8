"""The chain of the audit log: what standard tools confirm, and where a line does not follow from the last."""

from __future__ import annotations

import fcntl
import json
import re
import resource
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.workers import Worker, append_lines, change_and_die, together
from tests.support.cli import Ran, vnuma_here
from tests.support.postgresql import Cluster
from tests.support.stores import new_store
from vnuma.domain.vm.change import Edit
from vnuma.engine.access.places import audit_file
from vnuma.engine.audit.log import (
    Journal,
    as_json,
    audit_lines,
    digest,
    edits_of,
    new_line,
    read_audit_file,
    verify_file,
)
from vnuma.errors import (
    AuditAltered,
    CertificateRejected,
    InputError,
    PrivilegeMissing,
    QuestionPending,
    ReconfigureRefused,
    StoreError,
    StoreUnwritable,
    UnreadableAnswer,
    VCenterUnreachable,
    VmNotFound,
    VnumaError,
)
from vnuma.store.audit import AuditLine, changes
from vnuma.store.open import Store, open_store
from vnuma.store.tables import utc_now


@pytest.fixture
def journal(store: Store) -> Journal:
    """Of a VM, in a new store."""
    return Journal(store, "key", "sql16")


@pytest.fixture
def log(store: Store) -> Path:
    """The store's own log."""
    return audit_file(store.place)


def verified(place: Store | Path, *options: str) -> Ran:
    """What `vnuma audit verify` says of a store with its log, or of a log alone."""
    named = ("--store", f"sqlite:///{place.place.path}") if isinstance(place, Store) else (str(place),)
    return vnuma_here("audit", "verify", *named, *options)


def noted(journal: Journal) -> None:
    """Three lines that changed nothing."""
    for action in ("one", "two", "three"):
        journal.note(action, "detail")


def one(action: str) -> AuditLine:
    """A line as the journal gives it."""
    return AuditLine(utc_now(), "x", "x", "x", None, None, action, [], None)


def written(log: Path, *actions: str) -> list[bytes]:
    """A log of these actions, and its lines."""
    for action in actions:
        with new_line(log, one(action)):
            pass
    return log.read_bytes().splitlines(keepends=True)


def test_standard_tools_confirm_each_hash(tmp_path: Path) -> None:
    """By the rule that docs/changes.md gives, without anything of ours."""
    log = tmp_path / "a b.jsonl"
    lines = written(log, "mark", "power", "reconfigure")

    for number, line in enumerate(lines[1:], 1):
        tool = subprocess.run(
            f"sed -n {number}p '{log}' | sha256sum", shell=True, capture_output=True, text=True, check=True
        )
        assert json.loads(line)["previous"] == tool.stdout.split()[0]
    assert json.loads(lines[0])["previous"] is None


OFF, ON = Edit("power", "on", "off"), Edit("power", "off", "on")
Alter = Callable[[list[bytes]], list[bytes]]


def _changed(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[2].replace(b"third", b"other"), *lines[3:]]


def _inserted(lines: list[bytes]) -> list[bytes]:
    """By somebody who knows the rule: the line itself follows from the one before it."""
    new = json.loads(lines[2]) | {"action": "invented"}
    return [*lines[:2], f"{json.dumps(new)}\n".encode(), *lines[2:]]


def _without_hash(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[-1].split(b', "previous"')[0] + b"}\n"]


@pytest.mark.parametrize(
    ("alter", "number"),
    [
        (_changed, 4),
        (_inserted, 4),
        (lambda lines: [lines[0], lines[3], *lines[1:]], 2),
        (lambda lines: [*lines[:1], *lines[3:]], 2),
        (lambda lines: lines[2:], 1),
        (lambda lines: [*lines[:2], b"never\n", *lines[2:]], 3),
        (_without_hash, 6),
    ],
)
def test_the_first_line_that_was_altered_is_named(alter: Alter, number: int, tmp_path: Path) -> None:
    """Exit code 10 in scripts."""
    log = tmp_path / "log"
    lines = written(log, "first", "second", "third", "fourth", "fifth")
    assert verify_file(log).problem is None

    log.write_bytes(b"".join(alter(lines)))
    ran = verified(log)

    assert (ran.code, re.findall(r"line (\d+) ", ran.err)[:1]) == (10, [str(number)]), ran.text


@given(st.data())
def test_no_altered_line_but_the_last_goes_unnoticed(data: st.DataObject) -> None:
    """Whichever byte changes to whatever, even to a newline."""
    lines: list[bytes] = []
    for _ in range(5):
        line = {**as_json(one("power")), "previous": digest(lines[-1]) if lines else None}
        lines.append(f"{json.dumps(line)}\n".encode())
    content = bytearray(b"".join(lines))
    at = data.draw(st.integers(0, len(content) - len(lines[-1]) - 1))
    content[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))

    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        assert verify_file(Path(file.name)).problem


def test_what_is_missing_at_the_end_is_shown_by_the_store_and_by_a_hash_kept_elsewhere(
    store: Store, journal: Journal, log: Path
) -> None:
    """The file alone cannot show it."""
    noted(journal)
    whole = verify_file(log)
    assert verified(store, "--hash", whole.hashes[-1]).code == 0

    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    by_store = verified(store)
    by_hash = verified(log, "--hash", whole.hashes[-1])
    as_json = json.loads(verified(store, "--format", "json").out)

    assert verified(log).code == 0
    assert by_store.code == 10, by_store.text
    assert (as_json["intact"], as_json["lines_only_in_store"], as_json["files"][0]["lines"]) == (False, 1, 2)
    assert by_hash.code == 10, by_hash.text


def _forged(lines: list[bytes], *more: Mapping[str, object]) -> bytes:
    """The log with these lines at its end, by somebody who knows how to chain them."""
    for document in more:
        chained = {**document, "previous": digest(lines[-1]) if lines else None}
        lines = [*lines, f"{json.dumps(chained)}\n".encode()]
    return b"".join(lines)


def _invented(lines: list[bytes]) -> bytes:
    return _forged(lines, json.loads(lines[-1]) | {"action": "invented"})


def _repeated(lines: list[bytes]) -> bytes:
    return _forged([], *(json.loads(line) for line in (*lines[:2], *lines)))


@pytest.mark.parametrize("forge", [_invented, _repeated])
def test_lines_that_were_added_with_a_correct_chain_are_shown_by_the_store(
    forge: Callable[[list[bytes]], bytes], tmp_path: Path, store: Store, journal: Journal, log: Path
) -> None:
    """The file alone is intact; the store never had them. A restore from the log says so too."""
    noted(journal)
    log.write_bytes(forge(log.read_bytes().splitlines(keepends=True)))
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("{}", encoding="utf-8")

    ran = verified(store)
    url = f"sqlite:///{store.place.path}"
    shown = vnuma_here("restore", "--store", url, "--from-audit", log, "-i", inventory, "--dry-run")

    assert verified(log).code == 0
    assert ran.code == 10, ran.text
    assert (shown.code, "the store lacks" in shown.out) == (0, True), shown.text


def test_lines_of_a_store_that_was_lost_are_no_forgery(tmp_path: Path) -> None:
    """A new store next to the log knows only what is written from now on."""
    url = f"sqlite:///{tmp_path / 'vnuma.db'}"
    Journal(open_store(url), "key", "sql16").note("one", "detail")
    for file in tmp_path.glob("vnuma.db*"):
        file.unlink()
    store = open_store(url)
    Journal(store, "key", "sql16").note("two", "detail")

    ran = verified(store)

    assert ran.code == 0, ran.text


def test_a_change_whose_line_cannot_be_written_was_never_made(
    store: Store, journal: Journal, log: Path
) -> None:
    """It is refused, neither place has it, and the log is intact as soon as it can be written."""
    log.mkdir()
    with pytest.raises(StoreUnwritable), journal.change("power", (OFF,)):
        raise AssertionError("the change was begun")
    log.rmdir()

    assert audit_lines(store, None) == ()
    assert verified(store).code == 0


MOMENTS = 10
"""Steps of writing a change's two lines: text, its sync, the row's commit, newline, its sync; twice."""


@pytest.mark.parametrize(
    ("moment", "server"),
    [
        *((moment, False) for moment in range(MOMENTS + 1)),
        (8, True),
        *(pytest.param(moment, True, marks=pytest.mark.long) for moment in (2, 3, 7)),
    ],
)
def test_a_process_that_is_killed_while_it_writes_contradicts_nothing(
    moment: int, server: bool, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whichever step: the log verifies at once and later, and both places have what may have been made."""
    monkeypatch.setenv("VNUMA_HOME", str(tmp_path))
    if server:
        url = request.getfixturevalue("postgresql").new_store()
    else:
        url = f"sqlite:///{new_store(tmp_path / 'vnuma.db').place.path}"
    worker = Worker(change_and_die, url, moment)
    made = worker.answer_or_end() == "made"
    worker.end()

    store = open_store(url)
    killed = vnuma_here("audit", "verify", "--store", url)
    both = (audit_lines(store, None), changes(read_audit_file(audit_file(store.place))))
    Journal(store, "key", "sql16").note("later", "")

    assert killed.code == 0, killed.text
    assert made == (moment >= MOMENTS // 2)
    for lines in both:
        assert len(edits_of(lines)) == 1 or not made, lines
    assert vnuma_here("audit", "verify", "--store", url).code == 0


def test_a_line_that_was_made_unfinished_by_hand_is_missed(store: Store, journal: Journal, log: Path) -> None:
    """Without its newline a restore would pass over it: but its change went on."""
    with journal.change("power", (OFF,)):
        pass
    intended, made = log.read_bytes().splitlines()
    chained = json.loads(made) | {"previous": None}
    log.write_bytes(intended + f"{json.dumps(chained)}\n".encode())

    ran = verified(store)

    assert ran.code == 10, ran.text
    assert isinstance(verify_file(log).problem, AuditAltered)


def test_a_log_that_was_moved_away_during_a_change_is_intact_in_both_parts(
    journal: Journal, log: Path
) -> None:
    """The new one begins with the outcome, whose line before is in the old one; later changes go on there."""
    moved = log.with_name("moved.audit.jsonl")
    with journal.change("power", (OFF,)):
        log.rename(moved)
    with journal.change("power", (ON,)):
        pass

    assert [verify_file(part).problem for part in (moved, log)] == [None, None]
    assert [line.outcome for line in read_audit_file(log)] == ["made", "intended", "made"]


def test_a_change_that_is_made_after_a_killed_try_is_intact(journal: Journal, log: Path) -> None:
    """The text that the kill left without a newline never counted, and the outcome is the later line's."""
    for _ in range(2):
        with journal.change("power", (OFF,)):
            pass
        kept = log.read_bytes()
        log.write_bytes(kept.splitlines()[0])
    log.write_bytes(kept)

    found = verify_file(log)

    assert (found.problem, len(found.unfinished), len(found.lines)) == (None, 1, 2)


@pytest.mark.parametrize(
    ("text", "intact"), [(b"{", True), (b'{"at": "2026', True), (b"any other file", False)]
)
def test_a_file_without_a_finished_line_is_intact_only_as_a_begun_log(
    tmp_path: Path, text: bytes, intact: bool
) -> None:
    """A process may be killed at any byte. A file that is not a log is never called intact."""
    (tmp_path / "log").write_bytes(text)

    assert (verify_file(tmp_path / "log").problem is None) is intact


OUTCOMES: list[tuple[Exception | None, str, int]] = [
    (None, "made", 1),
    (ZeroDivisionError("its process ended"), "intended", 1),  # it has no second line
    (ReconfigureRefused("refused"), "failed", 0),
    (VCenterUnreachable("gone"), "unknown", 1),
    (CertificateRejected("a proxy's, while it was read back"), "unknown", 1),
    (UnreadableAnswer("a task of another form"), "unknown", 1),
    (QuestionPending("the task waits"), "unknown", 1),
    (VmNotFound("out of sight when it was read back"), "unknown", 1),
    (PrivilegeMissing("withdrawn when it was read back"), "unknown", 1),
]


@pytest.mark.parametrize(("error", "outcome", "edits"), OUTCOMES)
def test_each_change_has_its_outcome(
    error: Exception | None, outcome: str, edits: int, store: Store, journal: Journal, log: Path
) -> None:
    """In store and file, as a word; one whose answer was lost may have been made."""
    with suppress(VnumaError, ZeroDivisionError), journal.change("power", (OFF,)):
        if error:
            raise error

    (line,) = audit_lines(store, None)
    assert line.outcome == outcome
    assert len(edits_of([line])) == edits
    written_lines = list(read_audit_file(log))
    assert [one.outcome for one in written_lines] == list(dict.fromkeys(["intended", outcome]))
    assert changes(written_lines) == (replace(line, run=None),)


OLD = {key: value for key, value in as_json(one("old")).items() if key not in ("outcome", "home")}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (f"{json.dumps(OLD)}\n".encode(), 10),
        (b"name: quick\nvm: sql16\n", 10),
        (b"\xff\xfe\n", 10),
        (None, 3),
    ],
    ids=["an earlier version's", "a study", "not UTF-8", "missing"],
)
def test_what_is_no_log_of_this_version_is_refused(tmp_path: Path, content: bytes | None, code: int) -> None:
    """Nothing is undone from it by guessing; the error has a next step."""
    log = tmp_path / "log"
    if content is not None:
        log.write_bytes(content)

    assert verified(log).code == code
    with pytest.raises(InputError) as caught:
        list(read_audit_file(log))
    assert caught.value.fix


def test_processes_that_append_at_the_same_time_make_one_chain(tmp_path: Path) -> None:
    """Each line once, none between the parts of another."""
    log = tmp_path / "log"
    assert together(3, append_lines, log, 25) == ["appended"] * 3

    found = verify_file(log)
    assert (len(found.lines), found.problem) == (75, None)
    assert len({line.action for line in read_audit_file(log)}) == 75


def test_a_line_that_a_full_disk_cut_short_breaks_no_chain(tmp_path: Path) -> None:
    """It is refused, and so is its change; the next one follows its remainder."""
    log = tmp_path / "log"
    written(log, "first")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 40, before[1]))
        with pytest.raises(StoreError):
            written(log, "lost")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    written(log, "second", "third")

    found = verify_file(log)
    assert (len(found.lines), found.problem) == (3, None)
    assert [line.action for line in read_audit_file(log)] == ["first", "second", "third"]


def test_who_holds_the_log_for_long_is_not_waited_for(
    store: Store, journal: Journal, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suspended process must not prevent a VM's restore, which continues without the line."""
    monkeypatch.setattr("vnuma.engine.audit.log._WAIT_S", 0.05)
    with log.open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreError):
            journal.note("power", "")
        Journal(store, "key", "sql16", on_store_error=lambda _: None).note("restore", "")

    assert log.read_bytes() == b""


def test_each_home_of_a_shared_store_has_its_own_lines(
    postgresql: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes of other sites write theirs where they are: in no home is a line missing."""
    url = postgresql.new_store()
    for home in "ab":
        monkeypatch.setenv("VNUMA_HOME", str(tmp_path / home))
        Journal(open_store(url), "key", "sql16").note("power", home)

    for home, lines in (("a", 1), ("b", 1), ("c", 0)):
        monkeypatch.setenv("VNUMA_HOME", str(tmp_path / home))
        told = json.loads(vnuma_here("audit", "verify", "--store", url, "--format", "json").out)
        assert (told["intact"], sum(file["lines"] for file in told["files"])) == (True, lines)


@pytest.mark.parametrize("fails", [False, True], ids=["made", "unknown"])
def test_an_outcome_whose_intention_could_not_be_written_ends_no_earlier_change(
    store: Store, log: Path, *, fails: bool
) -> None:
    """A kill left a change without an outcome; a restore on a full disk writes only how its own ended."""
    journal = Journal(store, "key", "sql16", on_store_error=lambda _: None)
    with suppress(KeyboardInterrupt), journal.change("power", [OFF]):
        raise KeyboardInterrupt
    kept = log.rename(log.with_name("kept"))
    log.mkdir()

    with suppress(VCenterUnreachable), journal.change("power", [ON]):
        log.rmdir()
        kept.rename(log)
        if fails:
            raise VCenterUnreachable("It is away.")

    found = [(line.outcome, edits_of([line])) for line in audit_lines(store, None)]
    assert found == [("intended", [OFF]), ("unknown" if fails else "made", [ON])]
