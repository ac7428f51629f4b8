"""Checks over time: new, gone and unchanged findings, their age, and the meaning of silence."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.estate.build import check, checked, estate_of, saved
from tests.support.cli import vnuma_here
from vnuma.checks.against_design import DRIFT, compare_with_design
from vnuma.checks.check_history import Earlier
from vnuma.checks.result import CheckResult
from vnuma.domain.vm.estate import Estate
from vnuma.engine.design_check.check import Filters, compare
from vnuma.engine.design_check.history import history, record
from vnuma.errors import InputError
from vnuma.store.change_detection import finding_totals
from vnuma.store.open import Store, default_url, open_store

STANDING = (("gone block T11", "sql-a"), ("unchanged block A02", "sql-a"), ("new block A02", "sql-b"))
DAYS = ["2026-11-20T06:10:00+00:00", "2026-11-25T06:10:00+00:00", "2026-12-24T18:00:00+00:00"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return open_store(default_url(tmp_path))


def on(day: int, estate: Estate) -> Estate:
    """The estate as it was read on one of the days."""
    return replace(estate, read_at=DAYS[day])


def standing(store: Store) -> dict[tuple[str, str], int]:
    """Days that each finding has stood, by rule and object."""
    (found,) = history(store)
    return {(it.rule, it.name): (found.until - it.first).days for it in (*found.new, *found.unchanged)}


def gone(store: Store) -> set[tuple[str, str]]:
    """What was found no more after the first check."""
    (found,) = history(store, datetime.fromisoformat(DAYS[0]))
    return {(item.rule, item.name) for item in found.gone}


def test_how_long_a_finding_has_been_open_is_reported(store: Store) -> None:
    """From the first check that found it to the newest; later findings are younger."""
    record(store, checked(on(0, estate_of("sql-a"))))
    record(store, checked(on(1, estate_of("sql-a", "sql-b"))))
    record(store, checked(on(2, estate_of("sql-a", "sql-b"))))
    stood = standing(store)
    assert (stood["T11", "sql-a"], stood["T11", "sql-b"]) == (34, 29)
    assert gone(store) == set()


def test_a_repaired_fault_is_gone_and_may_come_again(store: Store) -> None:
    """It ends with the check that no longer found it; if it comes back, it starts again."""
    record(store, checked(on(0, estate_of("sql-a"))))
    record(store, checked(on(1, estate_of("sql-a", cpuHotAddEnabled=False))))
    assert ("T11", "sql-a") in gone(store)
    record(store, checked(on(2, estate_of("sql-a"))))
    assert standing(store)["T11", "sql-a"] == 0
    assert ("T11", "sql-a") in gone(store)


def test_a_renamed_vm_keeps_its_findings_under_its_new_name(store: Store) -> None:
    """It is the same VM by its instance UUID: the finding continues under today's name."""
    before = estate_of("sql-a")
    vm = before.vms[0]
    renamed = replace(before, vms=(replace(vm, facts=replace(vm.facts, name="sql-prod")),))
    record(store, checked(on(0, before)))
    record(store, checked(on(1, renamed)))
    assert standing(store)["T11", "sql-prod"] == 5
    assert ("T11", "sql-a") not in standing(store)


def test_a_vm_that_is_gone_takes_its_findings_with_it(store: Store) -> None:
    """The whole estate was read, and it was not there."""
    record(store, checked(on(0, estate_of("sql-a", "sql-b"))))
    record(store, checked(on(1, estate_of("sql-a"))))
    assert ("T11", "sql-b") in gone(store)
    assert ("T11", "sql-a") not in gone(store)


def without_hot_add(estate: Estate) -> Estate:
    """The estate with the fact behind T11 unread."""
    (vm,) = estate.vms
    settings = {name: value for name, value in vm.facts.settings.items() if name != "cpuHotAddEnabled"}
    return replace(estate, vms=(replace(vm, facts=replace(vm.facts, settings=settings)),))


@pytest.mark.parametrize(
    "blind",
    [
        checked(on(1, estate_of("sql-a", "web")), filters=Filters(name="web")),
        checked(replace(on(1, estate_of("web")), whole=False)),
        checked(without_hot_add(on(1, estate_of("sql-a")))),
        checked(replace(on(1, estate_of("sql-a")), source="another")),
    ],
    ids=["left out by a filter", "not asked for by name", "fact not read", "another vCenter"],
)
def test_what_a_check_could_not_see_is_not_gone(store: Store, blind: CheckResult) -> None:
    """Silence means that a fault is gone only where the check would have found it."""
    record(store, checked(on(0, estate_of("sql-a"))))
    record(store, blind)
    first = next(one for one in history(store, datetime.fromisoformat(DAYS[0])) if one.source == "vcsa01")
    (found,) = [item for item in first.unchanged if (item.rule, item.name) == ("T11", "sql-a")]
    assert found.gone is None
    assert first.was_seen_last(found) == (blind.sources[0].name == "another")
    (vm,) = checked(estate_of("sql-a")).vms
    keys = {item.key: item.finding.name for item in vm.findings}
    since = compare(blind, Earlier(DAYS[0], keys)).since
    assert since is not None
    assert ("T11", "vm", "sql-a") not in since.fixed


def test_facts_are_recorded_in_their_order(store: Store) -> None:
    """An older snapshot, or the same one again, is refused: it would turn the history round."""
    record(store, checked(on(1, estate_of("sql-a"))))
    for day in (0, 1):
        with pytest.raises(InputError):
            record(store, checked(on(day, estate_of("sql-a"))))
    assert len(history(store)[0].checks) == 1


def test_two_vcenters_have_their_own_hosts(store: Store) -> None:
    """Managed object ids repeat from vCenter to vCenter: a host's finding there is another one."""
    here = estate_of("sql-a")
    host = replace(next(iter(here.hosts.values())), numa_reported=True)
    host = replace(host, numa_nodes=host.numa_nodes[:1])
    here = replace(here, clusters=(replace(here.clusters[0], hosts=(host,)),))
    (vm,) = here.vms
    there = replace(
        here, source="vcsa02", vms=(replace(vm, facts=replace(vm.facts, vcenter_uuid="another")),)
    )
    result = checked(here, there)
    assert len([group for group in result.groups if group.judged.finding.rule == "T22"]) == 2
    record(store, result)
    assert [sum(it.rule == "T22" for it in one.unchanged) for one in history(store)] == [1, 1]


def recorded(folder: Path, url: str, estate: Estate) -> dict[str, Any]:
    """A recorded check of the estate, as JSON."""
    return check("--snapshot", saved(folder, estate), "--record", "--store", url)


def test_a_recorded_check_says_what_changed_since_the_last(tmp_path: Path) -> None:
    """The check marks what is new; the history has it in words, worst first, and as JSON."""
    url = f"sqlite:///{tmp_path / 'h.db'}"
    recorded(tmp_path, url, on(0, estate_of("sql-a")))
    first = vnuma_here("check", "--history", "--store", url).out
    since = recorded(tmp_path, url, on(1, estate_of("sql-a", "sql-b", cpuHotAddEnabled=False)))["baseline"]
    shown = vnuma_here("check", "--history", "--store", url).out
    told = json.loads(vnuma_here("check", "--history", "--store", url, "--format", "json").out)
    (later,) = json.loads(
        vnuma_here("check", "--history", "--since", "2026-11-26", "--store", url, "--format", "json").out
    )["sources"]
    words = re.findall(r"^found +(\w+)", first, re.MULTILINE)
    lines = {tuple(line.split()[:5]): line.split("  ")[-1] for line in shown.splitlines()}

    assert words == sorted(words, key=["block", "warn", "info"].index)
    assert {"block", "info"} <= set(words)
    assert since["checked_at"] == DAYS[0]
    assert {"rule": "T11", "kind": "vm", "name": "sql-a"} in since["fixed"]
    assert since["new"] > 0
    assert [lines[*key.split(), "vm", name] for key, name in STANDING] == [
        "for at least 5 days, until 2026-11-25",
        "since 2026-11-20, at least 5 days",
        "since 2026-11-25",
    ]
    assert {item["state"] for item in told["sources"][0]["findings"]} == {"new", "gone", "unchanged"}
    assert {item["state"] for item in later["findings"]} <= {"unchanged"}


def test_a_history_needs_a_record(tmp_path: Path) -> None:
    """Without a store, without a record, with a wrong date or a study: none is an empty history."""
    url = f"sqlite:///{tmp_path / 'h.db'}"
    assert vnuma_here("check", "--history", "--store", url).code == 9
    open_store(url)
    file = saved(tmp_path, estate_of("sql-a"))
    for code, options in (
        (3, ("--history",)),
        (2, ("--history", "--since", "soon")),
        (2, ("--snapshot", file, "--record", "--baseline", file)),
    ):
        assert vnuma_here("check", *options, "--store", url).code == code


def against(result: CheckResult, design: Estate, present: Estate) -> CheckResult:
    """The check, compared with this design too."""
    found = compare_with_design([design], [present], lambda _estate, _vm: True, lambda _name: True)
    return replace(result, drift=found)


def test_drift_from_a_design_is_recorded_like_a_finding(store: Store) -> None:
    """Since when a VM is not as designed, also in /metrics; a check without the design does not end it."""
    design = estate_of("sql-a", "sql-b")
    changed = estate_of("sql-a", "sql-b", numCoresPerSocket=4)
    now = replace(changed, vms=(changed.vms[0], design.vms[1]))

    record(store, against(checked(on(0, now)), design, on(0, now)))
    record(store, checked(on(1, now)))

    (found,) = history(store)
    (drift,) = [item for item in (*found.new, *found.unchanged) if item.rule == DRIFT]
    assert (drift.name, drift.severity, found.was_seen_last(drift)) == ("sql-a", "warn", False)
    with store.read() as connection:
        assert (DRIFT, 1) in {(row.rule, row.number) for row in finding_totals(connection)}
    before = record(store, against(checked(on(2, design)), design, on(2, design)))
    assert (DRIFT, "sql-a") in gone(store)
    assert before
    since = compare(against(checked(on(2, design)), design, design), before).since
    assert since
    assert (DRIFT, "vm", "sql-a") in since.fixed


def test_drift_is_not_gone_where_the_design_no_longer_has_the_vm(store: Store) -> None:
    """Nothing was compared: the other design says nothing of it."""
    present = estate_of("sql-a", numCoresPerSocket=4)
    record(store, against(checked(on(0, present)), estate_of("sql-a"), on(0, present)))
    record(store, against(checked(on(1, present)), estate_of("sql-z"), on(1, present)))
    assert (DRIFT, "sql-a") in standing(store)
