"""The command line itself: short help, mistakes, completion, and commands that the shell finds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.estate.build import estate_of, saved
from tests.report.build import Story, store_of, study_text
from tests.support.cli import command, in_json, on_terminal, vnuma, vnuma_here
from tests.support.stores import new_store
from tools.manual import entries
from vnuma.assets import asset
from vnuma.cli.screen import MANNER, runnable
from vnuma.store import leases, runs
from vnuma.store.schema import HEAD

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("verb", [(), ("run",), ("lab", "up")])
def test_h_is_help(verb: tuple[str, ...]) -> None:
    """On every verb, as on other command lines."""
    short, long = vnuma_here(*verb, "-h"), vnuma_here(*verb, "--help")

    assert short.code == 0, short.text
    assert short.out == long.out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("run",), "study file"),
        (("run", "a.yml", "--resume", "quick.1"), "--resume"),
        (("restore", "--theirs", "--baseline"), "--theirs"),
        (("power", "a.yml", "--effect", "0"), "--effect"),
        (("run", "studies/quick.yml", "--production"), "--ticket"),
        (("run", "studies/quick.yml", "--ticket", "a b"), "'a b'"),
        (("plan", "studies/quick.yml", "--require-tag", "sql"), "CATEGORY:NAME"),
        (("compare", "quick.1"), "two runs"),
        (("compare", "a.1", "a.2", "a.3", "--fail-if", "slower>2%"), "--fail-if"),
        (("results", "--table", "waits"), "--format csv"),
        (("results", "--all", "--format", "json"), "--all"),
        (("report", "quick.1", "-o", "a.PDF"), "vnuma report quick.1 --format pdf -o a.PDF"),
        (("report", "--format", "png", "-o", "a.html"), "--format html -o a.html"),
        (("check", "--sql", "--rvtools", "x.xlsx"), "--sql"),
        (("check", "--explain", "T99"), "--explain all"),
        (("check", "--explain", "T99", "--format", "json"), "--explain all"),
        (("run", "mine.1"), "--resume mine.1"),
        (("results", "--format", "docx"), "Invalid value for '--format': 'docx' is not one of"),
        (("predict", "--vcpus", "0"), "Invalid value for '--vcpus': must be at least 1."),
    ],
)
def test_a_mistake_on_the_command_line_ends_with_2(arguments: tuple[str, ...], named: str) -> None:
    """Nothing is looked for before: no store, no study, no file of these is there."""
    refused = vnuma_here(*arguments)

    assert (refused.code, refused.out) == (2, "")
    assert named in refused.err


def test_a_store_without_runs_proves_no_baseline(tmp_path: Path) -> None:
    """It knows no VM, so it cannot say that all are well."""
    new_store(tmp_path / "empty.db")
    ran = vnuma_here("restore", "--store", f"sqlite:///{tmp_path / 'empty.db'}")
    shown = vnuma_here("restore", "--dry-run", "--store", f"sqlite:///{tmp_path / 'empty.db'}")

    assert (ran.code, shown.code) == (0, 0), ran.text
    assert "at its baseline" not in ran.text + shown.text


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("lab", "status"), 4, "vnuma lab up"),
        (("doctor", "-i", asset("inventories/lab/lab.vnuma.yml")), 4, "\n  vnuma lab up\n"),
        *(((verb, "FOLDER/first"), 3, "FOLDER/first.yml?") for verb in ("plan", "run", "power")),
        (("results", "quik.1", "--store", "sqlite:///FOLDER/vnuma.db"), 3, "Did you mean quick.1?"),
    ],
)
def test_what_is_missing_comes_with_what_was_meant(
    arguments: tuple[str | Path, ...], code: int, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lab that does not run, a study without its ending, a mistyped run: no bug of vnuma's."""
    monkeypatch.setattr("vnuma.lab.status", lambda: None)
    store_of(tmp_path / "vnuma.db", Story())
    (tmp_path / "first.yml").write_text("name: first\n", encoding="utf-8")

    ran = vnuma_here(*(str(word).replace("FOLDER", str(tmp_path)) for word in arguments))

    assert (ran.code, ran.out) == (code, "")
    assert named.replace("FOLDER", str(tmp_path)) in ran.err


def test_before_the_first_run_there_is_no_store(vnuma_home: Path) -> None:
    """The default store is not a mistake; version says where it will be, for backups."""
    assert (vnuma_here("status").code, vnuma_here("baseline", "sql16").code) == (0, 9)
    told = vnuma_here("version").out
    places = [vnuma_home / name for name in ("vnuma.db", "vnuma.audit.jsonl")]
    assert [place for place in places if str(place) not in told or place.exists()] == []


@pytest.mark.parametrize(
    "words",
    [
        *(("status",), ("audit",), ("audit", "verify"), ("results",), ("report",), ("export", "latest")),
        *(("baseline", "show", "sql16"), ("baseline", "diff", "sql16"), ("compare", "a.1", "a.2")),
        *(("compare", "a.1", "a.2", "a.3"), ("check", "--history"), ("restore",), ("restore", "--dry-run")),
        *(("stop", "latest"), ("run", "--resume", "latest"), ("serve",)),
        ("power", str(ROOT / "studies/quick.yml"), "--pilot", "latest"),
    ],
    ids=" ".join,
)
def test_a_mistyped_store_is_named_and_not_created(words: tuple[str, ...], tmp_path: Path) -> None:
    """By every command that starts nothing new: an empty store would look as if nothing had been measured."""
    typo = tmp_path / "typo.db"

    ran = vnuma_here(*words, "--store", f"sqlite:///{typo}")

    assert (ran.code, ran.out) == (9, "")
    assert not typo.exists()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("vnuma results q", "quick.1"),
        ("vnuma check --vm sq", "sql16"),
        ("vnuma plan mine/f", "mine/first.yml"),
    ],
)
def test_names_of_runs_vms_and_studies_are_completed(typed: str, offered: str, tmp_path: Path) -> None:
    """By the store and the inventory that the shell's environment names, and the folder that is typed."""
    store_of(tmp_path / "vnuma.db", Story())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "first.yml").touch()
    asked = {"_VNUMA_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    places = {"VNUMA_STORE": f"sqlite:///{tmp_path / 'vnuma.db'}"}
    places["VNUMA_INVENTORY"] = str(ROOT / "inventories" / "example")

    shown = vnuma(env=asked | places, cwd=tmp_path)
    without = vnuma(env=asked | {"VNUMA_STORE": f"sqlite:///{tmp_path / 'none.db'}"}, cwd=tmp_path)

    assert (shown.out.split(), shown.err) == ([offered], "")
    assert without.err == ""  # a prompt is not the place for an error


def test_commands_in_messages_are_what_this_shell_finds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only commands: the product's name and paths stay as they are."""
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "vnuma")])
    monkeypatch.setenv("PATH", "/nowhere")
    text = "vnuma reads it (CN=vnuma lab CA). Next: vnuma plan x.yml; see /opt/vnuma run"

    assert runnable(text) == text.replace("vnuma plan", f"{tmp_path}/vnuma plan")
    playbook = tmp_path / "ansible-playbook"
    playbook.touch()
    assert runnable("ansible-playbook vnuma.vnuma.dataset -i x") == f"{playbook} vnuma.vnuma.dataset -i x"
    (tmp_path / "ansible-inventory").touch()
    assert runnable("ansible-inventory --list -i x") == f"{tmp_path}/ansible-inventory --list -i x"


@pytest.mark.parametrize("words", [("status",), ("run",)])
def test_a_study_to_start_with_is_named_as_this_folder_finds_it(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout has the folder studies; other folders have none."""
    monkeypatch.chdir(tmp_path)
    named = re.search(r"vnuma run (\S+)", vnuma_here(*words).text)

    assert named
    assert Path(named[1]).is_file()


def test_stop_names_a_command_that_this_shell_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its hint is for typing, like any other."""
    monkeypatch.setattr("vnuma.engine.lease.supervision.ask_to_stop", lambda *_, **__: "Check: vnuma status")
    monkeypatch.setattr("vnuma.cli.screen.command", lambda: "venv/bin/vnuma")

    assert vnuma_here("stop", "latest").out == "Check: venv/bin/vnuma status\n"


def test_every_command_that_prints_data_prints_json_too() -> None:
    """The others do something, or write a file of a format of its own."""
    acts = {"init", "demo", "setup", "run", "stop", "restore", "report", "serve", "export"}
    acts |= {"inventory save", "lab up", "lab down", "lab build", "lab fault"}
    acts |= {"store init", "store copy"}
    lacking = {
        entry.words.removeprefix("vnuma ")
        for entry in entries()
        if not any(name.startswith("--format") and "json" in name for name, _ in entry.options)
    }

    assert lacking == acts


@pytest.mark.parametrize(
    "words",
    [
        ("contract",),
        ("reanalyse", str(ROOT / "studies/published/dakic2019.csv")),
        ("evidence", str(ROOT / "tests/data/logs/sql_errorlog.yml")),
        ("audit",),
        ("audit", "verify"),
    ],
)
def test_json_is_one_document_with_its_schema(words: tuple[str, ...], tmp_path: Path) -> None:
    """Also of verbs that say most in words."""
    new_store(tmp_path / "vnuma.db")
    store = ("--store", f"sqlite:///{tmp_path / 'vnuma.db'}") if words[0] == "audit" else ()

    assert in_json(*words, *store)["schema"].startswith("vnuma/")


def test_versions_are_reported_for_a_bug_report() -> None:
    """What figures and stores depend on, with a reason where something is missing."""
    told = in_json("version")

    assert told["schema"] == "vnuma/version/1"
    assert told["store"]["schema"] == HEAD
    assert told["packages"]["pyodbc"] == version("pyodbc")
    assert (told["odbc"]["name"] is None) == (told["odbc"]["reason"] is not None)


def test_the_collection_has_the_product_s_version() -> None:
    """Galaxy reads its own file."""
    collection = YAML(typ="safe").load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert collection["version"] == project["version"]


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_vm_at_its_baseline_needs_no_restore(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Named or not: a script may ask twice. A name that no run has is a mistake."""
    store = store_of(tmp_path / "vnuma.db", Story())
    with store.write() as connection:
        run = runs.get_run(connection, "quick.1")
        leases.release_lease(connection, "vc/sql16", leases.raise_token(connection, "vc/sql16", run.id))
    restore = ("restore", "--store", f"sqlite:///{tmp_path / 'vnuma.db'}", *options)

    named, mistyped = vnuma_here(*restore, "sql16"), vnuma_here(*restore, "sql61")

    assert (named.code, named.err) == (0, "")
    assert mistyped.code == 3


def test_verbs_stand_in_groups_each_with_the_same_manners() -> None:
    """What is done first comes first; every verb may be quiet, verbose or coloured."""
    listed = vnuma_here("--help").out
    places = [listed.index(f"{group}:") for group in ("Prepare", "Look ahead", "Measure", "Read")]

    assert places == sorted(places)
    for verb in (("status",), ("lab", "up"), ("baseline", "diff")):
        shown = vnuma_here(*verb, "--help").out
        assert all(option in shown for option in ("--quiet", "--verbose", "--color")), verb


def unheard(*arguments: str, store: Path | None = None) -> tuple[int, str]:
    """The exit code and standard error of a command whose standard output nobody reads."""
    environment = {"VNUMA_STORE": f"sqlite:///{store}"} if store else {}
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        command(*arguments),
        env={**os.environ, **environment},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    return ran.returncode, ran.stderr


def test_a_reader_that_has_enough_is_no_bug(tmp_path: Path) -> None:
    """As `| head` has: nothing is said. A gate in a pipeline ends as it would with a reader."""
    store_of(tmp_path / "vnuma.db", Story())
    gate = ("check", "--snapshot", str(saved(tmp_path, estate_of("sql-a"))), "--fail-on", "block")

    assert unheard(*gate)[0] == 10
    assert unheard("results", "--format", "csv", "--table", "samples", store=tmp_path / "vnuma.db") == (0, "")


def test_output_that_is_closed_is_no_bug() -> None:
    """As a service leaves it: nothing can be said, and the verb does its work."""
    closed = ["/bin/sh", "-c", 'exec "$@" >&- 2>&-', "sh"]

    assert subprocess.run([*closed, *command("version")], check=False).returncode == 0


@pytest.mark.parametrize("group", ["store", "lab", "inventory", "baseline", "audit"])
def test_no_line_in_a_list_of_commands_is_cut(group: str) -> None:
    """A line that is too long wraps."""
    listed = "\n".join(on_terminal(60, group, "--help")).partition("Commands:")[2]

    assert listed.strip()
    assert listed.count("...") == 0


@pytest.mark.parametrize("columns", [60, 80])
def test_examples_in_help_can_be_copied(columns: int) -> None:
    """Each begins a line, and no option is split: a shell joins lines at a backslash."""
    shown = "\n".join(on_terminal(columns, "init", "--help"))
    whole = shown.replace("\\\n", " ")

    assert all(len(line) <= columns for line in shown.splitlines())
    assert "vnuma init --vcenter vc1 --user u --vm sql16 --sql-host sql16 --test-clone" in " ".join(
        whole.split()
    )


@pytest.mark.parametrize("verb", ["check", "doctor", "predict", "evidence"])
def test_help_has_words_for_what_options_take(verb: str) -> None:
    """Not Python's types; choices stay."""
    shown = vnuma_here(verb, "--help").out

    assert re.findall(r"<(int|str|float|list|path|auto)", shown) == ["auto"]


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"TERM": "dumb"}, False),
        (("--color", "never"), {}, False),
    ],
)
def test_colour_marks_words_on_a_terminal_that_wants_it(
    tmp_path: Path, given: tuple[str, ...], environment: dict[str, str], expected: bool
) -> None:
    """The same words stand there without it."""
    store_of(tmp_path / "vnuma.db", Story())
    store = {"VNUMA_STORE": f"sqlite:///{tmp_path / 'vnuma.db'}"}
    lines = on_terminal(80, "results", *given, env=store | environment)

    assert ["\x1b[31mslower by" in "\n".join(lines), "slower by" in "\n".join(lines)] == [expected, True]


@pytest.mark.parametrize(
    "words",
    [
        *(("results",), ("status",), ("compare", "one", "other")),
        ("power", "study"),
        (
            "predict",
            "--vcpus",
            "16",
            "--memory",
            "64",
            "--host-nodes",
            "2x16/96@6.0",
            "--edition",
            "standard",
        ),
    ],
    ids=lambda words: words[0],
)
def test_what_a_command_shows_fits_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Sixty columns are enough: a wider line would be cut within a word."""
    store_of(tmp_path / "vnuma.db", Story(), Story())
    monkeypatch.chdir(tmp_path)
    Path("fixed.yml").write_text(study_text(sizes="500", forms="client"), encoding="utf-8")
    given = {"one": "quick.1", "other": "quick.2", "study": "fixed.yml"}
    store = {"VNUMA_STORE": f"sqlite:///{tmp_path / 'vnuma.db'}", "NO_COLOR": "1"}

    shown = on_terminal(60, *(given.get(word, word) for word in words), env=store)

    lines = [re.sub(r"\x1b\[[?0-9;]*[A-Za-z]|\r", "", line) for line in shown]
    assert len(lines) > 3
    assert [line for line in lines if len(line) > 60] == []


@pytest.mark.parametrize(
    ("store", "shown"),
    [
        ("my runs.db", "vnuma report --store 'my runs.db' q.1; vnuma doctor; vnuma stop --store x q.1"),
        ("postgresql://me:secret@there/vnuma", "vnuma report q.1; vnuma doctor; vnuma stop --store x q.1"),
        (None, "vnuma report q.1; vnuma doctor; vnuma stop --store x q.1"),
    ],
)
def test_commands_in_messages_read_the_store_that_was_named(
    monkeypatch: pytest.MonkeyPatch, store: str | None, shown: str
) -> None:
    """Pasted, they would read another store. A password is never shown."""
    monkeypatch.setattr(MANNER, "store", store)

    assert runnable("vnuma report q.1; vnuma doctor; vnuma stop --store x q.1") == shown
