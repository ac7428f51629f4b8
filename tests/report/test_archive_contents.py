"""What an archive holds: raw data, tables, pictures, and all that is needed to do the study again."""

from __future__ import annotations

import csv
import io
import re
import statistics
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.report.build import ARMS, Story, study_text
from tests.support.cli import vnuma_here
from vnuma.domain.study.order import plan_cells
from vnuma.domain.study.study_file import parse_study
from vnuma.report.archive.raw import COLUMNS, dictionary
from vnuma.report.archive.write import export_run, named_tables
from vnuma.report.charts.pictures import palette, pictures
from vnuma.report.model.model import LoadedRun
from vnuma.store import samples
from vnuma.store.open import Store
from vnuma.store.rows import Sample


def test_raw_data_is_every_sample(exported: tuple[Store, LoadedRun, Path]) -> None:
    """CSV and Parquet hold all iterations, uncounted ones too, with one meaning for each column."""
    store, loaded, path = exported
    with zipfile.ZipFile(path) as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("samples.csv").decode())))
        table = pq.read_table(io.BytesIO(archive.read("samples.parquet")))
    with store.read() as conn:
        stored = len(list(samples.iter_samples(conn, loaded.run.id)))

    assert len(rows) == table.num_rows == stored
    assert list(rows[0]) == table.column_names == [column.name for column in COLUMNS]
    for row, other in zip(rows, table.to_pylist(), strict=True):
        assert float(row["elapsed_ms"]) == other["elapsed_ms"]
        assert row["attempt_outcome"] == other["attempt_outcome"]
        assert (row["parse_cpu_ms"], other["parse_cpu_ms"]) == ("", None)
    assert {row["attempt_outcome"] for row in rows} == {"valid", "failed"}


def test_without_pyarrow_the_archive_lacks_the_parquet_file_alone(
    exported: tuple[Store, LoadedRun, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """samples.csv holds the same; the command names what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    store, loaded, path = exported
    lean = tmp_path / "lean.zip"
    export_run(store, loaded, lean)
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(lean) as archive:
        assert set(whole.namelist()) - set(archive.namelist()) == {"samples.parquet"}
        assert archive.read("samples.csv") == whole.read("samples.csv")


@pytest.mark.parametrize("table", ["waits", "samples"])
def test_the_command_prints_a_table_as_the_archive_has_it(
    exported: tuple[Store, LoadedRun, Path], table: str
) -> None:
    """`vnuma results --format csv --table NAME` is NAME.csv."""
    _, loaded, path = exported
    place = f"sqlite:///{path.parent / 'vnuma.db'}"

    ran = vnuma_here("results", loaded.run.name, "--format", "csv", "--table", table, "--store", place)

    assert ran.code == 0, ran.text
    with zipfile.ZipFile(path) as archive:
        assert ran.out == archive.read(f"{table}.csv").decode()


def medians_of(
    store: Store, run: int, figure: Callable[[Sample], float]
) -> dict[tuple[str, int], list[float]]:
    """Medians of the valid boots by arm and size, straight from the stored samples."""
    found: dict[tuple[int, int], list[float]] = {}
    arms: dict[int, str] = {}
    with store.read() as conn:
        for item in samples.iter_samples(conn, run):
            if item.attempt_outcome == "valid" and not item.sample.warmup:
                arms[item.attempt_id] = item.arm
                found.setdefault((item.attempt_id, item.sample.size), []).append(figure(item.sample))
    grouped: dict[tuple[str, int], list[float]] = {}
    for (attempt, size), values in found.items():
        grouped.setdefault((arms[attempt], size), []).append(statistics.median(values))
    return grouped


def test_the_archives_tables_are_the_stores_figures(exported: tuple[Store, LoadedRun, Path]) -> None:
    """Table 1 and waits: a column an arm, each figure the one that the samples give, rounded for show."""
    store, loaded, path = exported
    medians = medians_of(store, loaded.run.id, lambda sample: sample.elapsed_ms or 0.0)
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if name.startswith("tables/")}
        table, waits = (
            list(csv.reader(io.StringIO(archive.read(f"tables/sql16-{name}.csv").decode())))
            for name in ("client-elapsed_ms", "waits-2")
        )

    stems = {f"tables/sql16-client-{key}" for key in ("elapsed_ms", "cpu_ms", "client_ms")}
    stems |= {f"tables/sql16-waits-{number}" for number in (1, 2)}
    assert names == {f"{stem}.{ending}" for stem in stems for ending in ("csv", "md", "tex")}
    assert table[0] == ["rows a side", *ARMS]
    assert table[1] == ["500", *(f"{statistics.median(medians[arm, 500]):,.0f}" for arm in ARMS)]
    assert [row[0] for row in table] == ["rows a side", "500", "ms", "%", "95%"]
    assert waits == [["wait type", *ARMS], ["ASYNC_NETWORK_IO", *["93.0"] * len(ARMS)]]


def test_every_column_is_described() -> None:
    """The dictionary names each column of the raw data, and each field of a sample is a column."""
    described = re.findall(r"^\| (\w+) \|", dictionary(), re.MULTILINE)
    names = [column.name for column in COLUMNS]

    assert set(names) <= set(described)
    assert set(Sample.__dataclass_fields__) <= set(names)


def test_the_archive_says_what_it_is(exported: tuple[Store, LoadedRun, Path]) -> None:
    """Simulated runs are marked in the file's name and first words; tables and charts come in all forms.

    The README leads with its commands from the file to a second run, on the lab that it was measured on.
    """
    with zipfile.ZipFile(exported[2]) as archive:
        names = set(archive.namelist())
        readme, latex = (
            archive.read(name).decode() for name in ("README.md", "tables/sql16-client-elapsed_ms.tex")
        )
        png, pdf = (archive.read(f"charts/forest.{ending}") for ending in ("png", "pdf"))
    commands = re.findall(r"(?:    |`)vnuma (results|report|lab up \w+|plan|run [\w.]+|compare)", readme)

    assert exported[2].name == "quick.1.simulated.vnuma.zip"
    assert readme.splitlines()[2] == "**SIMULATED (lab, scenario paper): not measured on hardware**"
    assert re.findall(r"\\caption\{(SIMULATED).*(lower is faster)", latex) == [
        ("SIMULATED", "lower is faster")
    ]
    assert (png[:4], pdf[:4]) == (b"\x89PNG", b"%PDF")
    assert {"study.yml", "methods.md", "report.html", "results.json", "columns.md"} <= names
    assert commands == ["results", "report", "compare", "lab up paper", "plan", "run study.yml", "compare"]


def test_the_archive_plans_the_same_cells_again(
    exported: tuple[Store, LoadedRun, Path],
) -> None:
    """Study and seed come out of the archive: order, arms and work are those that were run."""
    _, loaded, path = exported
    with zipfile.ZipFile(path) as archive:
        study = parse_study(archive.read("study.yml").decode(), "study.yml")

    (vm,) = loaded.vms
    order = [(cell.label, cell.block, cell.position) for cell in plan_cells(study, 0)]
    assert order == [(cell.label, cell.block, cell.position) for cell in loaded.cells_of(vm)]


def test_every_picture_says_unit_n_direction_and_that_it_is_simulated(
    exported: tuple[Store, LoadedRun, Path],
) -> None:
    """In light and in dark no colour is left to a page, and the words are in the picture itself."""
    words = re.compile("SIMULATED|faster|boots|var\\(")
    for scheme in ("light", "dark"):
        drawn = {name: set(words.findall(svg)) for name, svg in pictures(exported[1], scheme)}
        figures = {name for name in drawn if not name.startswith(("topology", "host"))}

        assert (len(drawn), len(figures)) == (4 + 1 + 5, 4)
        for name, said in drawn.items():
            assert said >= {"SIMULATED"} | ({"faster", "boots"} if name in figures else set())
            assert not said & {"var("}
    assert palette("light")["paper"] != palette("dark")["paper"]


def test_tables_of_a_vm_with_a_slash_in_its_name_are_files(loaded: Callable[[Story], LoadedRun]) -> None:
    """vSphere and inventories allow names that no file may have."""
    run = loaded(Story(text=study_text(vms="'sql/16 (copy)'", sizes="500", forms="client")))
    names = [name for name, _ in named_tables(run)]

    assert {name.partition("-")[0] for name in names} == {"sql_16_copy_"}
    assert len(set(names)) == len(names)
