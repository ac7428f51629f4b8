"""`vnuma serve`: what its pages say, that they follow the store, and that nothing in it can inject."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.report.build import Lost, Story, build, study_text
from tests.report.pages import Outline
from tests.report.serving import asked, listening, serving
from tests.support.cli import vnuma_here
from tests.support.stores import new_store
from vnuma.checks.check_history import RecordedCheck
from vnuma.errors import InputError, StoreError
from vnuma.serve import app, reader
from vnuma.serve.reader import Reader, SharedCache
from vnuma.store import audit, estate_checks, runs, tables
from vnuma.store.audit import AuditLine
from vnuma.store.estate_checks import NewFinding
from vnuma.store.open import Store, open_for_reading
from vnuma.store.rows import RunState

EVIL = "<img src=x onerror=alert(1)>&'--\u202e"
DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana" / "vnuma.json"
METRIC = re.compile(r"\b(vnuma_\w+)")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Site(NamedTuple):
    """A store, and where it is served."""

    store: Store
    address: str

    def page(self, path: str) -> str:
        """A page's HTML, balanced and without handlers or styles in its elements."""
        answer = asked(self.address, path)
        assert answer.status == 200, answer.text
        Outline(answer.text)
        return answer.text


def text(vms: str = "sql16", **changed: object) -> str:
    """A small study."""
    return study_text(**{"sizes": "500", "forms": "client", **changed}, vms=vms)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A finished run (1), one that has eight of twelve blocks (2), one of real machines (3), a check."""
    store = new_store(tmp_path_factory.mktemp("serve") / "vnuma.db")
    build(store, Story(text=text(), lost={("4x4", 3): (Lost(),)}))
    build(store, Story(text=text("sql17", blocks=12), stop_after=50, state=RunState.RUNNING))
    build(store, Story(text=text("sql18"), scenario=None))
    with store.write() as connection:
        check = RecordedCheck("vcsa01", "vcenter", NOON, "0.2.0", "paper", 2)
        number = estate_checks.add_check(connection, check)
        found = [NewFinding("T11", "vm", "vm-1", EVIL, "block"), NewFinding("A05", "vm", "vm-2", "b", "warn")]
        estate_checks.begin(connection, number, "vcsa01", found)
        line = AuditLine(NOON, "ops@ctl1", EVIL, "vc/1", None, None, "reconfigure", [], EVIL)
        audit.add_line(connection, line, None)
    with serving(store) as address:
        yield Site(store, address)


def test_the_first_page_lists_runs_states_and_vms_that_are_away(site: Site) -> None:
    """Newest first, each simulated one marked; a run without a supervisor is not called running."""
    page = Outline(site.page("/"))

    assert [row[:4] for row in page.rows[1:]] == [
        ["quick.3", "finished", "36/36", "sql18"],
        ["quick.2", "died simulated", "50/72", "sql17"],
        ["quick.1", "finished simulated", "36/36", "sql16"],
    ]
    assert re.findall(r"left by (\S+): vnuma restore (\S+)", page.text) == [("quick.2", "sql17")]


def test_an_unfinished_run_has_its_figures_but_no_verdict(site: Site) -> None:
    """Eight blocks would give verdicts; before the declared end the words are withheld."""
    page = site.page("/runs/quick.2")
    words = re.findall(r'<td class="word (\S+)">', page)

    assert page.count('class="cell valid"') == 50 + 1  # the legend has one
    assert page.count('class="interval"') == 4
    assert words == ["reference", *["withheld"] * 4]


def test_simulated_is_said_on_every_page_of_a_simulated_run(site: Site) -> None:
    """In title and banner; a real run's pages have neither."""
    compared = "/compare?before=quick.1&after=quick.2"
    for path in ("/runs/quick.1", "/runs/quick.1/report", "/audit?run=quick.1", compared, "/runs/quick.3"):
        page = site.page(path)
        marks = [page.count("<title>SIMULATED: "), page.count('<p class="banner"')]
        assert [bool(mark) for mark in marks] == [path != "/runs/quick.3"] * 2, path


def test_a_comparison_is_refused_with_what_differs(site: Site) -> None:
    """As `vnuma compare` does; what may differ can be allowed in the form."""
    page = Outline(site.page("/compare?before=quick.1&after=quick.3"))

    assert (page.tags["section"], page.tags["form"], page.tags["table"]) == (1, 1, 0)
    assert set(re.findall(r"--allow (\S+\w)", page.text)) == {"study.source"}


def test_the_estate_page_shows_open_findings_and_for_how_long(site: Site) -> None:
    """Rule, severity, object and time."""
    rows = Outline(site.page("/estate")).rows[1:]

    assert [(row[0].partition(" ")[0], *row[1:3]) for row in rows] == [
        *(("T11", "block", "found"), ("A05", "warn", "found"))
    ]
    assert rows[1][3].split()[-5:] == ["object", "vm", "b,", "since", "2026-11-20"]


def test_names_from_elsewhere_are_text(site: Site) -> None:
    """A VM, an object or an error may be called anything."""
    for path in ("/estate", "/audit"):
        outline = Outline(site.page(path))
        assert outline.tags["img"] == 0
        assert outline.text.count("onerror=alert(1)") > 0


@pytest.mark.parametrize(
    "path",
    ["/runs/nix", "/runs/nix/report", "/audit?run=nix", "/events?page=/runs/nix", "/nix", "/what-if/n"],
)
def test_an_unknown_run_or_page_is_not_found(site: Site, path: str) -> None:
    """Page and stream say so, with the links to what exists."""
    answer = asked(site.address, path)

    assert answer.status == 404
    assert {"/", "/audit", "/estate"} <= set(Outline(answer.text).addresses)


def test_metrics_are_prometheus_s(site: Site) -> None:
    """Runs, cells, failures, VMs and findings, with what is simulated as a label."""
    found = {
        (sample.name, *sorted(filter(None, sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(asked(site.address, "/metrics").text)
        for sample in family.samples
    }

    assert found["vnuma_runs", "finished", "paper", "true"] == 1
    assert found["vnuma_runs", "false", "finished"] == 1
    assert found["vnuma_cells", "paper", "true", "valid"] == 36 + 50
    assert found["vnuma_failures", "failed", "paper", "tools_timeout", "true"] == 1
    assert found["vnuma_vms_not_at_baseline", "true"] == 0
    assert found["vnuma_findings", "T11", "block", "paper", "true", "vcsa01"] == 1


def test_the_dashboard_asks_for_metrics_that_are_there(site: Site) -> None:
    """Each of its queries, with its labels: examples/grafana/vnuma.json."""
    families = text_string_to_metric_families(asked(site.address, "/metrics").text)
    there = {one.name: set().union(*(sample.labels for sample in one.samples)) for one in families}
    there["vnuma_run_seconds_left"] = {"run", "simulated", "scenario"}  # no run of this store is running
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]

    assert {name for query in queries for name in METRIC.findall(query)} == there.keys()
    for query in queries:
        for name, matched in re.findall(METRIC.pattern + r"\{([^}]*)\}", query):
            assert set(re.findall(r"(\w+)=", matched)) <= there[name], query
        for grouped in re.findall(r"\bby \(([^)]*)\)", query):
            labels = set().union(*(there[name] for name in METRIC.findall(query)))
            assert set(grouped.replace(" ", "").split(",")) <= labels, query


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is looked at without a pause."""
    for module in (app, reader):
        monkeypatch.setattr(module, "POLL_S", 0.02)


def heading(page: str) -> str:
    """Its first heading."""
    return " ".join(re.sub("<[^>]*>", "", page.partition("<h1>")[2].partition("</h1>")[0]).split())


@pytest.mark.usefixtures("at_once")
def test_a_watcher_hears_of_changes(tmp_path: Path) -> None:
    """The stream begins with the present state and sends each new one; a stopped store is said."""
    store = new_store(tmp_path / "vnuma.db")
    run = build(store, Story(text=text(), stop_after=9, state=RunState.RUNNING))
    with serving(store) as address, listening(address, "/runs/quick.1") as sent:
        assert heading(next(sent)) == "quick.1: died"
        with store.write() as connection:
            runs.set_run_state(connection, run.id, RunState.STOPPED)
        assert heading(next(sent)) == "quick.1: stopped"
        store.place.path.rename(tmp_path / "gone.db")
        assert next(sent).count('role="alert"') == 1


def test_who_comes_after_a_run_s_end_sees_its_last_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first load of the page has them, though somebody looked while the run went on."""
    monkeypatch.setattr(reader, "POLL_S", 0.0)
    store = new_store(tmp_path / "vnuma.db")
    run = build(store, Story(text=text(), state=RunState.RUNNING))
    with serving(store) as address:
        before = asked(address, "/runs/quick.1").text
        with store.write() as connection:
            runs.set_run_state(connection, run.id, RunState.FINISHED)
        after = asked(address, "/runs/quick.1").text

    assert [page.count("<b>So far, with 36 of 36 ") for page in (before, after)] == [1, 0]


@pytest.mark.usefixtures("at_once")
def test_a_run_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """It is listed with the reason; its watchers get it too, and HEAD starts no stream."""
    store = new_store(tmp_path / "vnuma.db")
    first, second = (build(store, Story(text=text(vm), stop_after=3)) for vm in ("sql16", "sql17"))
    with serving(store) as address, listening(address, f"/runs/{first.name}") as sent:
        next(sent)
        with store.write() as connection:
            studies = tables.study
            connection.execute(
                studies.update().where(studies.c.id == first.study_id).values(yaml="nonsense: 1")
            )
            runs.set_run_state(connection, first.id, RunState.FINISHED)
        assert next(sent).count(f"{first.name} cannot be read") == 1
        page = Outline(asked(address, "/").text)
        assert page.text.count(f"{first.name} cannot be read") == 1
        assert [row[0] for row in page.rows[1:]] == [second.name]
        statuses = [asked(address, path).status for path in (f"/runs/{second.name}", f"/runs/{first.name}")]
        assert [*statuses, asked(address, "/metrics").status] == [200, 503, 200]
        assert asked(address, "/events", "HEAD").text == ""


@pytest.mark.parametrize("error", [InputError("no"), RuntimeError("bug"), StoreError("gone")])
def test_what_failed_behind_is_created_again(error: Exception) -> None:
    """No older value stays for good; only while the store is away it is still given."""
    kept = SharedCache[str](1)
    kept.get("run", 1, lambda: "old")

    def failing() -> str:
        raise error

    with ThreadPoolExecutor(1) as behind:
        assert kept.latest("run", 2, failing, behind) == "old"
    with ThreadPoolExecutor(1) as behind:
        if isinstance(error, StoreError):
            assert kept.latest("run", 2, lambda: "new", behind) == "old"
        else:
            with pytest.raises(type(error)):
                kept.latest("run", 2, failing, behind)
    with ThreadPoolExecutor(1) as behind:
        assert kept.latest("run", 2, lambda: "new", behind) == "new"


def test_the_store_is_read_once_for_all_and_only_where_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a poll all get the same view; an unchanged run is not read again."""
    store = new_store(tmp_path / "vnuma.db")
    first, second = (build(store, Story(text=text(vm), stop_after=3)) for vm in ("sql16", "sql17"))
    reading = Reader(store)
    before = reading.view()
    with store.write() as connection:
        runs.set_run_state(connection, second.id, RunState.STOPPED)

    assert reading.view() is before
    monkeypatch.setattr(reading, "_next", 0.0)
    after = reading.view()
    assert after.run(first.name) is before.run(first.name)
    assert after.run(second.name) is not before.run(second.name)


def test_a_store_opened_for_reading_cannot_be_written(tmp_path: Path) -> None:
    """The database itself refuses it."""
    place = new_store(tmp_path / "vnuma.db").place
    reading = open_for_reading(f"sqlite:///{place.path}")

    with pytest.raises(StoreError), reading.write() as connection:
        runs.save_study(connection, "quick", "x")


def test_without_its_packages_the_verb_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not installed by default."""
    monkeypatch.setattr("vnuma.errors.find_spec", lambda _: None)
    ran = vnuma_here("serve")

    assert ran.code == 4
    packages = " ".join(ran.err.split()).partition(" -m pip install ")[2].split()
    assert packages[:3] == ["starlette", "uvicorn", "prometheus-client"]
