"""A run in one file: made once, read elsewhere, analysed to the same figures; anything else is refused."""

from __future__ import annotations

import json
import shlex
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report.build import Story, build, study_text
from tests.support.cli import vnuma_here
from tests.support.stores import new_store
from vnuma.domain.study.declaration import SCOPE, declaration, hash_of
from vnuma.engine.run.recover import reopen
from vnuma.errors import InputError
from vnuma.report.archive.manifest import NAME
from vnuma.report.archive.read import differences, import_run
from vnuma.report.archive.write import export_run
from vnuma.report.export.results import document
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.model.trust import plan_check
from vnuma.store import facts, runs
from vnuma.store.open import Store
from vnuma.store.rows import RunState


def rewritten(archive: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """A copy of the archive whose files were changed; None leaves a file out."""
    with zipfile.ZipFile(archive) as before, zipfile.ZipFile(target, "w") as after:
        for info in before.infolist():
            content = change(info.filename, before.read(info))
            if content is not None:
                after.writestr(info.filename, content)
    return target


def test_an_imported_run_gives_the_same_figures(
    exported: tuple[Store, LoadedRun, Path], store: Store
) -> None:
    """Every figure of the document, to the last digit; the run keeps its name where that is free."""
    _, loaded, path = exported
    found = import_run(store, path)
    again = load_run(store, found.run)

    assert (found.run, found.differences) == ("quick.1", ())
    ours, theirs = document(again), document(loaded)
    assert ours == theirs
    assert again.study_text == loaded.study_text
    assert len(again.facts) == len(loaded.facts) + 1
    assert [a.effective for a in again.attempts] == [a.effective for a in loaded.attempts]


def test_the_declared_plan_is_carried(store: Store, tmp_path: Path) -> None:
    """With its hash and its time, so that an importer sees what the exporter saw."""
    ours = new_store(tmp_path / "ours.db")
    name = build(ours, Story(text=study_text(sizes="500", forms="client", blocks=2))).name
    run = load_run(ours, name)
    plan = declaration(run.study, run.study_sha256, ["quick.0"])
    with ours.write() as conn:
        facts.add_run_facts(conn, run.run.id, SCOPE, {"plan": plan, "sha256": hash_of(plan)})
    loaded = load_run(ours, name)
    export_run(ours, loaded, tmp_path / "run.zip")
    again = load_run(store, import_run(store, tmp_path / "run.zip").run)

    assert plan_check(again).sha256 == hash_of(plan)
    assert plan_check(again) == plan_check(loaded)


def test_a_taken_name_gives_the_next_number(exported: tuple[Store, LoadedRun, Path], store: Store) -> None:
    """Another run of that name stays what it is."""
    build(store, Story(text=study_text(sizes="500", forms="client", blocks=2)))
    found = import_run(store, exported[2])

    assert (found.archived_as, found.run) == ("quick.1", "quick.2")
    assert load_run(store, "quick.1").study.design.blocks == 2


def test_the_same_run_is_not_imported_twice(exported: tuple[Store, LoadedRun, Path], store: Store) -> None:
    """Into its own store, or a second time into another: refused, and nothing is added."""
    import_run(store, exported[2])
    for target in (store, exported[0]):
        with pytest.raises(InputError, match=r"has that run already: quick\.1"):
            import_run(target, exported[2])


def test_an_imported_run_cannot_continue(exported: tuple[Store, LoadedRun, Path], store: Store) -> None:
    """Its VMs are not ours to change, and none counts as away from its baseline."""
    found = import_run(store, exported[2])

    with pytest.raises(InputError, match="was imported"):
        reopen(store, found.run)
    assert all(vm.at_baseline for vm in load_run(store, found.run).vms)


def test_a_changed_file_is_named(
    exported: tuple[Store, LoadedRun, Path], store: Store, tmp_path: Path
) -> None:
    """One digit in one file: refused, with its name; the store stays empty."""
    changed = rewritten(
        exported[2],
        tmp_path / "x.zip",
        lambda name, content: (
            content.replace(b"equivalent", b"faster", 1) if name == "results.json" else content
        ),
    )
    with pytest.raises(InputError, match=r"results.json in x.zip is not what its manifest says"):
        import_run(store, changed)
    with pytest.raises(InputError, match="no run"):
        load_run(store, "latest")


@pytest.mark.parametrize(
    ("gone", "words"), [("samples.csv", "samples.csv is missing"), (NAME, "is not an archive of vnuma")]
)
def test_a_missing_file_is_named(
    exported: tuple[Store, LoadedRun, Path], store: Store, tmp_path: Path, gone: str, words: str
) -> None:
    """An incomplete archive is refused."""
    changed = rewritten(
        exported[2], tmp_path / "x.zip", lambda name, content: None if name == gone else content
    )
    with pytest.raises(InputError, match=words):
        import_run(store, changed)


def test_an_added_file_is_named(
    exported: tuple[Store, LoadedRun, Path], store: Store, tmp_path: Path
) -> None:
    """What the manifest does not know is not ours."""
    path = tmp_path / "x.zip"
    path.write_bytes(exported[2].read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.txt", "x")
    with pytest.raises(InputError, match=r"more.txt is not in its manifest"):
        import_run(store, path)


@pytest.mark.parametrize("kept", [0, 100, 5000])
def test_a_cut_archive_is_refused(
    exported: tuple[Store, LoadedRun, Path], store: Store, tmp_path: Path, kept: int
) -> None:
    """As after a broken copy: one sentence, and what to do."""
    path = tmp_path / "cut.zip"
    path.write_bytes(exported[2].read_bytes()[:kept])
    with pytest.raises(InputError, match=r"cut.zip is not an archive of vnuma") as caught:
        import_run(store, path)
    assert "vnuma export" in str(caught.value.fix)


def test_damage_inside_is_found(
    exported: tuple[Store, LoadedRun, Path], store: Store, tmp_path: Path
) -> None:
    """Bytes turned in the middle of the file: some file is named as damaged or changed."""
    path = tmp_path / "bad.zip"
    content = bytearray(exported[2].read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"bad\.zip"):
        import_run(store, path)


def test_a_newer_format_names_the_version_needed(
    exported: tuple[Store, LoadedRun, Path], store: Store, tmp_path: Path
) -> None:
    """Nothing is guessed about what is not known yet."""

    def newer(name: str, content: bytes) -> bytes:
        if name != NAME:
            return content
        return json.dumps(json.loads(content) | {"format": 9, "product_version": "7.1.0"}).encode()

    path = rewritten(exported[2], tmp_path / "x.zip", newer)
    with pytest.raises(InputError, match=r"written by vnuma 7\.1\.0 in archive format 9") as caught:
        import_run(store, path)
    assert "Install vnuma 7.1.0 or newer" in str(caught.value.fix)


def test_a_store_of_a_newer_product_inside_is_refused(
    exported: tuple[Store, LoadedRun, Path], store: Store, tmp_path: Path
) -> None:
    """The archive is named with the version that reads it, and nothing was imported."""

    def newer(name: str, content: bytes) -> bytes:
        if name != "manifest.json":
            return content
        document = json.loads(content) | {"store_schema": "9999", "product_version": "7.1.0"}
        return json.dumps(document).encode()

    path = rewritten(exported[2], tmp_path / "x.zip", newer)
    with pytest.raises(InputError, match=r"store in x\.zip was written by vnuma 7\.1\.0") as caught:
        import_run(store, path)
    assert caught.value.fix == "Install vnuma 7.1.0 or newer. Nothing was imported."
    with store.read() as connection:
        assert runs.list_runs(connection) == ()


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.PLANNED, RunState.CONFLICT])
def test_a_run_that_has_not_ended_is_not_archived(store: Store, tmp_path: Path, state: RunState) -> None:
    """It would change behind the archive's back; the report shows it as it is."""
    loaded = load_run(store, build(store, Story(stop_after=3, state=state)).name)
    with pytest.raises(InputError, match="made of a run that has ended") as caught:
        export_run(store, loaded, tmp_path / "x.zip")
    assert "vnuma stop quick.1 ends it" in str(caught.value.fix)
    assert list(tmp_path.glob("*.zip*")) == []


def test_the_report_of_an_imported_run_is_read_from_the_store_that_has_it(
    exported: tuple[Store, LoadedRun, Path], tmp_path: Path
) -> None:
    """The command that is shown works as it stands."""
    url = f"sqlite:///{tmp_path / 'an other.db'}"

    ran = vnuma_here("import", exported[2], "--store", url)

    (shown,) = (line for line in ran.out.splitlines() if line.startswith("Report"))
    words = shlex.split(shown.partition("vnuma ")[2])
    assert vnuma_here(*words, "-o", tmp_path / "run.html").code == 0, ran.text


def test_a_vm_that_is_not_restored_comes_first(store: Store, tmp_path: Path) -> None:
    """A stopped run that still owes a restore names the command."""
    loaded = load_run(store, build(store, Story(stop_after=3, state=RunState.STOPPED)).name)
    with pytest.raises(InputError, match=r"sql16 of quick\.1 is not at its baseline") as caught:
        export_run(store, loaded, tmp_path / "x.zip")
    assert caught.value.fix == "vnuma restore sql16"


def test_an_archive_that_is_there_is_not_overwritten(store: Store, tmp_path: Path) -> None:
    """It may be the only copy of what a store has lost since."""
    loaded, path = load_run(store, build(store, Story()).name), tmp_path / "kept.zip"
    path.write_bytes(b"kept")

    with pytest.raises(InputError, match="exists already"):
        export_run(store, loaded, path)

    assert path.read_bytes() == b"kept"


def test_differences_are_reported_by_their_place() -> None:
    """A figure that came out otherwise is named; keys that a newer product adds are not."""
    before = {"arms": [{"ratio": 1.01, "verdict": "slower"}], "recommended": [], "analyses": []}
    after = {"arms": [{"ratio": 1.02, "verdict": "slower", "new": 1}], "recommended": [], "analyses": []}

    assert differences(before, after) == ["arms[0].ratio: 1.01 became 1.02"]
    assert differences(before, before) == []
