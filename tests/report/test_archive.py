"""A run in one file: made once, read elsewhere, analysed to the same figures; anything else is refused."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.build import Story, build, study_text
from tests.support.cli import vnuma_here
from vnuma.domain.study.order import SCOPE, declaration, hash_of
from vnuma.errors import InputError
from vnuma.report.archive.raw import print_samples
from vnuma.report.archive.read import NAME, open_archive
from vnuma.report.archive.write import export_run
from vnuma.report.comparison.two_runs import compare_runs
from vnuma.report.export.results import as_json
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.model.trust import plan_check
from vnuma.report.page.render import page_text
from vnuma.store import facts
from vnuma.store.open import Store
from vnuma.store.rows import RunState
from vnuma.store.samples import iter_samples


def rewritten(archive: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """A copy of the archive whose files were changed; None leaves a file out."""
    with zipfile.ZipFile(archive) as before, zipfile.ZipFile(target, "w") as after:
        for info in before.infolist():
            content = change(info.filename, before.read(info))
            if content is not None:
                after.writestr(info.filename, content)
    return target


def test_a_run_read_from_its_archive_has_the_store_s_results(
    exported: tuple[Store, LoadedRun, Path],
) -> None:
    """Byte for byte, with every attempt, fact, column of raw data and picture of the store's run."""
    store, loaded, path = exported
    inside, name = open_archive(path)
    again = load_run(inside, name)

    assert as_json(again) == as_json(loaded)
    assert again.study_text == loaded.study_text
    assert replace(again, facts=loaded.facts, run=loaded.run) == loaded
    assert again.run == replace(
        loaded.run, inventory=None, supervisor_pid=None, supervisor_host=None, heartbeat_at=None
    )
    assert again.facts[:-1] == loaded.facts
    with zipfile.ZipFile(path) as archive:
        assert archive.read("samples.csv").decode() == printed(inside, again) == printed(store, loaded)


def printed(store: Store, loaded: LoadedRun) -> str:
    """The raw data as `vnuma results --table samples` prints it."""
    out = io.StringIO()
    print_samples(store, loaded, out)
    return out.getvalue()


def test_the_declared_plan_is_carried(store: Store, tmp_path: Path) -> None:
    """With its hash and its time, so that a reader sees what the exporter saw; as a file of its own too."""
    name = build(store, Story(text=study_text(sizes="500", forms="client", blocks=2))).name
    run = load_run(store, name)
    plan = declaration(run.study, run.study_sha256, ["quick.0"])
    with store.write() as conn:
        facts.add_run_facts(conn, run.run.id, SCOPE, {"plan": plan, "sha256": hash_of(plan)})
    loaded = load_run(store, name)
    export_run(store, loaded, tmp_path / "run.zip")
    again = load_run(*open_archive(tmp_path / "run.zip"))

    assert plan_check(again).sha256 == hash_of(plan)
    assert plan_check(again) == plan_check(loaded)
    with zipfile.ZipFile(tmp_path / "run.zip") as archive:
        assert json.loads(archive.read("plan.json")) == {"plan": plan, "sha256": hash_of(plan)}


def test_odd_values_come_back_as_they_were(store: Store, tmp_path: Path) -> None:
    """Text that a spreadsheet would run, times in parts of a microsecond, line breaks in a study."""
    story = Story(text=study_text(vms="'=sql16'", sizes="500", forms="client", blocks=2) + "# ü\r\n")
    loaded = load_run(store, build(store, story).name)
    export_run(store, loaded, tmp_path / "run.zip")
    inside, name = open_archive(tmp_path / "run.zip")

    assert load_run(inside, name).study_text == loaded.study_text
    with store.read() as one, inside.read() as other:
        stored = list(iter_samples(one, loaded.run.id))
        assert list(iter_samples(other, loaded.run.id)) == stored
    assert len(stored) > 10


READ = {
    "results": (("results", "RUN"), ("results", "RUN", "--all")),
    "report": (("report", "RUN", "--format", "markdown", "-o", "page.md"),),
    "power": (("power", "STUDY", "--pilot", "RUN"),),
    "baseline": (("baseline", "show", "sql16", "--run", "RUN"),),
}


@pytest.mark.parametrize("verb", READ)
def test_a_verb_reads_an_archive_where_it_reads_a_run(
    exported: tuple[Store, LoadedRun, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
) -> None:
    """As it reads the run itself, with the file's name beside the run's; no store is made or needed."""
    store, _, path = exported
    # In random order leaving arms would be simulated, for seconds.
    (tmp_path / "study.yml").write_text(exported[1].study_text.replace("randomised", "fixed"))
    monkeypatch.setenv("VNUMA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def answers(run: str, *options: str) -> str:
        said = ""
        for words in READ[verb]:
            given = [{"RUN": run, "STUDY": "study.yml"}.get(word, word) for word in words]
            ran = vnuma_here(*given, *options)
            assert ran.code == 0, ran.text
            said += ran.out + (Path("page.md").read_text() if verb == "report" else "")
        return said

    theirs = answers(str(path))
    assert not list((tmp_path / "home").glob("vnuma.db*"))
    url = f"sqlite:///{store.place.path}"
    ours = answers("quick.1", "--store", url).replace(f" --store {url}", "")  # in commands that it names
    named = theirs.count(f"(from {path.name})")
    without = theirs.replace(f"(from {path.name})", "").replace(path.name, "quick.1")
    assert named > 0
    assert "".join(without.split()) == "".join(ours.split())


def test_archives_and_runs_are_compared(
    exported: tuple[Store, LoadedRun, Path], store: Store, tmp_path: Path
) -> None:
    """Of one name, each with its file's; the same run in two files is not compared with itself."""
    _, _, path = exported
    for sizes, within_sd in (("500", 0.003), ("500, 1000", 0.002)):
        build(store, Story(text=study_text(sizes=sizes, forms="client"), within_sd=within_sd))
    here = ("--store", f"sqlite:///{store.place.path}")
    copy = tmp_path / "copy.zip"
    copy.write_bytes(path.read_bytes())
    theirs = load_run(*open_archive(path))
    run, other = (load_run(store, name) for name in ("quick.1", "quick.2"))

    assert compare_runs([theirs], [run]).names == (f"quick.1 (from {path.name})", "quick.1")
    with pytest.raises(InputError) as refused:
        compare_runs([theirs], [other])
    assert str(refused.value.fix).endswith(f"{path.name} quick.2 --allow study.sizes")
    ran = [
        vnuma_here("compare", path, *more).code for more in (("quick.1", *here), (copy,), ("quick.2", *here))
    ]
    assert ran == [0, 3, 3]


def test_the_page_names_the_archive_that_it_was_made_from(exported: tuple[Store, LoadedRun, Path]) -> None:
    """Beside the run's name, on every page."""
    _, loaded, path = exported
    pages = [page_text(run) for run in (load_run(*open_archive(path)), loaded)]

    assert [page.count(f"quick.1 (from {path.name})") > 0 for page in pages] == [True, False]


def newer(name: str, content: bytes) -> bytes:
    """As a later vnuma may write it."""
    if name != NAME:
        return content
    return json.dumps(json.loads(content) | {"format": 9, "product_version": "7.1.0"}).encode()


def one_letter(name: str, content: bytes) -> bytes:
    """One letter of one file, whose size is as before."""
    return content.replace(b"equivalent", b"equivalenz", 1) if name == "results.json" else content


@pytest.mark.parametrize(
    ("change", "more", "named", "fix"),
    [
        (one_letter, "", "results.json", "vnuma export RUN"),
        (lambda _, content: content, "more.csv", "more.csv", "vnuma export RUN"),
        (newer, "", "x.zip", "Install vnuma 7.1.0 or newer."),
    ],
    ids=["a changed file", "a file that nobody exported", "a newer format"],
)
def test_an_archive_that_is_not_as_exported_is_refused(
    exported: tuple[Store, LoadedRun, Path],
    tmp_path: Path,
    change: Callable[[str, bytes], bytes | None],
    more: str,
    named: str,
    fix: str,
) -> None:
    """With the file that is not; nothing is guessed about what is not known yet."""
    path = rewritten(exported[2], tmp_path / "x.zip", change)
    if more:
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(more, "1\n")

    with pytest.raises(InputError) as caught:
        open_archive(path)

    assert caught.value.what.split()[0] == named
    assert str(caught.value.fix).endswith(fix)


@pytest.mark.parametrize(
    ("state", "fix"),
    [
        *((state, "stop quick.1") for state in (RunState.RUNNING, RunState.PLANNED, RunState.CONFLICT)),
        (RunState.STOPPED, "restore sql16"),  # it still owes a restore
    ],
)
def test_a_run_that_is_not_over_is_not_archived(
    store: Store, tmp_path: Path, state: RunState, fix: str
) -> None:
    """It would change behind the archive's back; the command that ends it is named."""
    loaded = load_run(store, build(store, Story(stop_after=3, state=state)).name)
    with pytest.raises(InputError) as caught:
        export_run(store, loaded, tmp_path / "x.zip")

    assert re.search(f"vnuma {fix}\\b", str(caught.value.fix))
    assert list(tmp_path.glob("*.zip*")) == []


def test_an_archive_is_a_new_file_that_ends_in_zip(store: Store, tmp_path: Path) -> None:
    """Commands know one by its name; a file that is there may be the only copy of what a store has lost."""
    loaded, path = load_run(store, build(store, Story()).name), tmp_path / "kept.zip"
    path.write_bytes(b"kept")

    for name in ("kept.zip", "run.bin"):
        with pytest.raises(InputError):
            export_run(store, loaded, tmp_path / name)

    assert path.read_bytes() == b"kept"
    assert {one.name for one in tmp_path.iterdir()} == {"kept.zip", "vnuma.db"}
