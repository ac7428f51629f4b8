"""Pages as HTML. What changes during a run is made once for all watchers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from urllib.parse import quote

from vnuma.checks.check_history import History, StandingFinding
from vnuma.checks.rules.catalogue import BY_ID
from vnuma.engine.design_check.history import history
from vnuma.engine.run.progress import Away, CellProgress, CellWord, Progress, VmProgress, line_of
from vnuma.errors import InputError, VnumaError
from vnuma.report.check.as_history import how_long
from vnuma.report.comparison.two_runs import compare_runs
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.model.words import progress_words
from vnuma.report.page.comparison_page import compared_html
from vnuma.report.page.page import answer_parts, environment
from vnuma.report.page.render import page_text
from vnuma.report.tables.history import study_history
from vnuma.serve.reader import Reader, SharedCache
from vnuma.store import audit, estate_checks
from vnuma.store.change_detection import figures_mark
from vnuma.store.tables import utc_now
from vnuma.words.plain_text import counted, duration
from vnuma.words.provenance import banner, kind

MOST = 300
"""Most lines of the audit log, or findings of an estate, on one page."""

REPORTS = 8
"""Most cached reports: each is about a megabyte."""

_SIGNS: Mapping[CellWord, str] = {
    "valid": "✓",
    "now": "▶",
    "pending": "·",
    "tried again": "↻",
    "given up": "✗",
    "left out": "-",
}
_NAME = re.compile(r"[\w.-]+", re.ASCII)


class Pages:
    """The pages of one store. Texts with figures are cached by run; no samples stay in memory."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._live = SharedCache[str](200)
        self._answers = SharedCache[tuple[str, Hashable]](200)
        self._reports = SharedCache[str](REPORTS)
        self._compared = SharedCache[str](REPORTS)
        self._estate = SharedCache[tuple[str, str | None]](1)
        self._behind = ThreadPoolExecutor(1, thread_name_prefix="figures")

    def runs(self) -> str:
        return _watched("Runs", self.runs_live(), "/")

    def run(self, name: str) -> str:
        """A run's progress, verdicts so far, and cells. Raises InputError."""
        progress = self._run(name)
        path = f"/runs/{quote(reference(progress), safe='')}"
        return _watched(progress.run.name, self.run_live(name), path, progress.run.simulated)

    def runs_live(self) -> str:
        """The changing part of the page of runs."""
        view = self.reader.view()
        lines = [(progress, line_of(progress)) for progress in reversed(view.runs)]
        return self._live.get("/", view.number, lambda: _filled("runs_live", view=view, lines=lines))

    def run_live(self, name: str) -> str:
        """The changing part of a run's page. Raises InputError."""
        view, progress = self.reader.view(), self._run(name)
        answers, mark = self._answers_of(progress)

        def make() -> str:
            return _filled(
                "run_live",
                view=view,
                progress=progress,
                line=line_of(progress),
                answers=answers,
                signs=_SIGNS,
            )

        return self._live.get(progress.run.id, (view.number, mark), make)

    def report(self, name: str) -> str:
        """The run's report. Raises InputError."""
        run_id = self._run(name).run.id
        return self._reports.get(run_id, self._mark(run_id), lambda: page_text(self._loaded(run_id)))

    def study(self, name: str) -> str:
        """Every run of a study, with what changed around them. Raises InputError."""
        table = study_history(self.reader.store, name)
        mine = (one.run for one in self.reader.view().runs if one.run.study_name == name)
        simulated = next((run.simulated for run in mine if run.simulated), None)
        return _page("study", f"Study {name}", simulated, table=table)

    def compare(self, before: str, after: str, allowed: Sequence[str]) -> str:
        """Two runs side by side, or the form for choosing them."""
        found, problem, simulated = "", None, None
        names = [progress.run.name for progress in self.reader.view().runs]
        if before and after:
            try:
                pair = [self._run(name).run for name in (before, after)]
                simulated = next((run.simulated for run in pair if run.simulated), None)
                found = self._compared_texts(pair[0].id, pair[1].id, allowed)
            except InputError as error:
                problem = error
        return _page(
            "compare",
            "Compare",
            simulated,
            names=names,
            before=before,
            after=after,
            allowed=" ".join(allowed),
            found=found,
            problem=problem,
        )

    def estate(self) -> str:
        """The recorded checks of estates: what is new, gone and unchanged."""
        store, simulated = self.reader.store, None
        with store.read() as connection:
            checks = estate_checks.checks_of(connection)
        try:
            text, simulated = self._estate.get("estate", checks, lambda: _estate(history(store)))
        except InputError:
            text = ""
        return _page("estate", "Estate", simulated, found=text)

    def audit(self, name: str) -> str:
        """Who changed what on which VM, newest first. Raises InputError."""
        run = self._run(name).run if name else None
        with self.reader.store.read() as connection:
            lines = audit.newest(connection, run.id if run else None, MOST)
        simulated = {one.run.name: one.run.simulated for one in self.reader.view().runs}
        return _page(
            "audit",
            "Audit",
            run.simulated if run else None,
            run=run,
            lines=lines,
            most=MOST,
            kinds={name: kind(word) for name, word in simulated.items() if word},
            value=_value,
        )

    def _answers_of(self, progress: Progress) -> tuple[str, Hashable]:
        """Answer and verdicts of each VM as HTML, and a mark of them. Reads nothing if no attempt ended.

        While the run goes on, a text that is one attempt behind is returned at once, and the next request
        gets the new one. After its end, requests wait for the final figures, since nothing would trigger
        another one.
        """
        run_id = progress.run.id
        mark = progress.run.state, tuple((vm.done, vm.valid, vm.last, vm.ended_by) for vm in progress.vms)

        def make() -> tuple[str, Hashable]:
            loaded = self._loaded(run_id)
            words, parts = progress_words(loaded), answer_parts(loaded)
            return _filled("answers", loaded=loaded, study=loaded.study, progress=words, parts=parts), mark

        if progress.run.state.ended:
            return self._answers.get(run_id, mark, make)
        return self._answers.latest(run_id, mark, make, self._behind)

    def _compared_texts(self, before: int, after: int, allowed: Sequence[str]) -> str:
        """Two compared runs. Raises InputError where they may not be compared."""

        def make() -> str:
            return compared_html(compare_runs([self._loaded(before)], [self._loaded(after)], allowed))

        key = (before, after, tuple(allowed))
        return self._compared.get(key, (self._mark(before), self._mark(after)), make)

    def _loaded(self, run_id: int) -> LoadedRun:
        return load_run(self.reader.store, str(run_id))

    def _mark(self, run_id: int) -> Hashable:
        with self.reader.store.read() as connection:
            return figures_mark(connection, run_id)

    def _run(self, name: str) -> Progress:
        view = self.reader.view()
        found = view.run(name)
        if found is None:
            raise view.trouble or InputError(f"The store has no run '{name}'.", fix="The list has every run.")
        return found


def trouble(error: VnumaError) -> str:
    """The page for an error: what went wrong, and what to do."""
    return _page("trouble", "Not available", None, error=error)


def trouble_live(error: VnumaError) -> str:
    """The same as the changing part of a page already shown."""
    return _filled("trouble_live", error=error)


def _watched(title: str, live: str, path: str, simulated: str | None = None) -> str:
    return _page("watched", title, simulated, live=live, mark=mark_of(live), watch=path)


def _page(name: str, title: str, simulated: str | None, **values: object) -> str:
    return _filled(name, title=title, banner=banner(simulated), page=name, **values)


def mark_of(live: str) -> str:
    """A mark of a page's changing part, equal for equal text."""
    return hashlib.sha256(live.encode()).hexdigest()[:16]


def reference(progress: Progress) -> str:
    """A run's part of an address: its name, or its id where an imported name is not a valid file name."""
    name = progress.run.name
    return name if _NAME.fullmatch(name) and name not in (".", "..") else str(progress.run.id)


def rows_of(vm: VmProgress, labels: Sequence[str]) -> list[tuple[int, list[CellProgress | None]]]:
    """A VM's cells by block, each in the order of `labels`; None where a block lacks one."""
    by_place = {(cell.block, cell.label): cell for cell in vm.cells}
    blocks = sorted({cell.block for cell in vm.cells})
    return [(block, [by_place.get((block, label)) for label in labels]) for block in blocks]


def _estate(found: Sequence[History]) -> tuple[str, str | None]:
    text = _filled(
        "estate_found",
        found=found,
        how_long=how_long,
        most=MOST,
        counted=counted,
        by_rule=_by_rule,
        title_of=lambda rule: BY_ID[rule].title if rule in BY_ID else "",
    )
    return text, next((one.simulated for one in found if one.simulated), None)


def _by_rule(items: Sequence[StandingFinding]) -> Iterable[tuple[str, Sequence[StandingFinding]]]:
    """The findings of each rule, the worst rule first as they are."""
    found: dict[str, list[StandingFinding]] = {}
    for item in items:
        found.setdefault(item.rule, []).append(item)
    return found.items()


def _value(value: object) -> str:
    return "none" if value in (None, "", []) else str(value)


def moment(at: datetime | None) -> str:
    """A time of today, or of another day, in UTC, since watchers are in several time zones."""
    if at is None:
        return ""
    return f"{at:%H:%M}" if at.date() == utc_now().date() else f"{at:%Y-%m-%d %H:%M}"


def _away_words(vm: Away) -> str:
    why = f" ({vm.outcome})" if vm.outcome else ""
    return f"in use by {vm.run}" if vm.in_use else f"left by {vm.run}{why}: vnuma restore {vm.vm}"


def _filled(name: str, **values: object) -> str:
    return (
        environment()
        .get_template(f"serve/{name}.html.j2")
        .render(
            **values,
            away_words=_away_words,
            duration=duration,
            ends=lambda seconds: moment(utc_now() + timedelta(seconds=seconds)),
            kind=kind,
            moment=moment,
            quote=lambda text: quote(text, safe=""),
            reference=reference,
            rows_of=rows_of,
        )
    )
