"""One study over months and hosts: a line for each of its runs, with what changed since the line before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from vnuma.errors import InputError
from vnuma.report.model.grid import GridTable
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.model.words import differences_words
from vnuma.store import runs
from vnuma.store.open import Store
from vnuma.store.rows import Vm
from vnuma.words.provenance import kind

_SURROUNDINGS = ("VM", "Host", "ESXi", "BIOS", "SQL Server")


def study_history(store: Store, named: str) -> GridTable:
    """Every run of a study, oldest first; a surrounding that changed is marked with *. A run, or `latest`,
    names its study.

    Differences are from each run's own reference, with 95% intervals. Raises InputError without any run.
    """
    with store.read() as connection:
        found = runs.measuring_runs(connection)
    study = next((run.study_name for run in reversed(found) if named in (run.name, "latest")), named)
    names = [run.name for run in found if run.study_name == study]
    if not names:
        raise InputError(f"The store has no run of a study '{study}'.", fix="vnuma status lists the runs.")
    return history_of([load_run(store, name) for name in names], study)


def history_of(loaded: Sequence[LoadedRun], study: str) -> GridTable:
    """The same for these runs."""
    found = [(run, vm, _differences(run, vm)) for run in loaded for vm in run.vms]
    arms = list(dict.fromkeys(arm for _, _, differences in found for arm in differences))
    around = _marked([_surroundings(run, vm) for run, vm, _ in found])
    rows = [
        (_name(run), f"{run.run.created_at:%Y-%m-%d}", *changed, *(differences.get(arm, "") for arm in arms))
        for (run, _, differences), changed in zip(found, around, strict=True)
    ]
    caption = f"Study {study}: difference from the reference (95%); * changed since the line above"
    return GridTable(caption, ("Run", "Date", *_SURROUNDINGS, *arms), tuple(rows))


def _name(run: LoadedRun) -> str:
    return f"{run.label} ({kind(run.simulated)})" if run.simulated else run.label


def _differences(run: LoadedRun, vm: Vm) -> Mapping[str, str]:
    arms = run.primary_of(vm).arms
    return dict(zip([arm.arm for arm in arms], differences_words([arm.verdict for arm in arms]), strict=True))


def _surroundings(run: LoadedRun, vm: Vm) -> tuple[str, ...]:
    host = run.vm_facts(vm, "host")
    servers = run.attempt_facts(vm, "boot", "server").values()
    versions = dict.fromkeys(str(server["version"]) for server in servers if server.get("version"))
    parts = (vm.name, vm.esxi_host, host.get("esxi"), host.get("bios"), ", ".join(versions))
    return tuple(str(part or "not known") for part in parts)


def _marked(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    marked, before = list[tuple[str, ...]](), None
    for row in rows:
        marked.append(tuple(f"{now}*" if before and now != before[n] else now for n, now in enumerate(row)))
        before = row
    return marked
