"""The check over an estate: subjects, filters, waivers, an earlier check, and what is not evaluated."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tests.estate.build import TODAY, checked, estate_of, failed, saved, since, waiver
from tests.estate.workbooks import export, write
from vnuma.checks.rule import Severity
from vnuma.checks.rules.catalogue import RULES
from vnuma.engine.design_check.check import CheckRequest, Filters, compare
from vnuma.engine.design_check.history import earlier
from vnuma.errors import InputError
from vnuma.estate.rvtools import read_rvtools
from vnuma.estate.waivers import load
from vnuma.report.check.as_page import as_page
from vnuma.report.check.words import mixed_words


def test_every_rule_is_passed_failed_or_not_evaluated() -> None:
    """Nothing is lost: each VM's findings, passes and reasons add up to the rules that were asked."""
    result = checked(estate_of("sql-a", "sql-b"))
    for vm in result.vms:
        assert vm.passed + len(failed(vm)) + len(vm.not_evaluated) == len(result.rules)
        assert not failed(vm) & vm.not_evaluated.keys()


def test_what_only_a_study_has_is_not_asked_of_an_estate() -> None:
    """Rules on measuring and changing are for studies; the result says how many rules there are."""
    result = checked(estate_of("sql-a"))
    assert {"Q01"}.isdisjoint(rule.id for rule in result.rules)
    assert result.every_rule == len(RULES)


def test_sql_rules_without_a_login_are_not_evaluated() -> None:
    """Without --sql no rule on SQL Server passes."""
    (vm,) = checked(estate_of("sql-a")).vms
    sql = {rule.id for rule in RULES if rule.needs == frozenset({"sql"})}
    assert sql <= vm.not_evaluated.keys()
    assert vm.not_evaluated["S05"] == "no login to SQL Server was given (--sql)"


def test_a_missing_host_keeps_its_rules_from_passing() -> None:
    """An orphan's host rules have the orphan's reason; its own rules are evaluated."""
    estate = estate_of("lost", cpuAffinity=tuple(range(16)))
    (vm,) = estate.vms
    orphan = replace(
        vm,
        facts=replace(vm.facts, host_moid="", host_name=""),
        absent={"host": "the VM has no host (orphaned)"},
    )
    (found,) = checked(replace(estate, vms=(orphan,))).vms
    assert found.not_evaluated["T22"] == "the VM has no host (orphaned)"
    assert failed(found) >= {"A02"}


def test_one_hosts_fault_is_one_finding() -> None:
    """What is wrong with a host is grouped, with the VMs that it was seen from."""
    estate = estate_of("sql-a", "sql-b", "sql-c")
    host = next(iter(estate.hosts.values()))
    interleaved = replace(host, numa_nodes=host.numa_nodes[:1], numa_reported=True)
    cluster = replace(estate.clusters[0], hosts=(interleaved,))
    result = checked(replace(estate, clusters=(cluster,)))
    (group,) = [group for group in result.groups if group.judged.finding.rule == "T22"]
    assert (group.judged.finding.kind, group.judged.finding.name) == ("host", "esx01")
    assert [name for name, _ in group.vms] == ["sql-a", "sql-b", "sql-c"]


def test_vms_stand_worst_first() -> None:
    """Blocks, then warnings, then the rest."""
    bad, good = estate_of("z-bad"), estate_of("a-good", cpuHotAddEnabled=False, cpuAffinity=())
    result = checked(replace(bad, vms=(*good.vms, *bad.vms)))
    assert [vm.name for vm in result.vms] == ["z-bad", "a-good"]
    assert result.vms[0].worst is Severity.BLOCK


def test_sql_servers_stand_first_among_equals() -> None:
    """In the list of VMs and in each rule's findings, as far as names tell."""
    result = checked(estate_of("app1", "mySQL2", "sql1"))
    assert [vm.name for vm in result.vms] == ["mySQL2", "sql1", "app1"]
    names = [group.judged.finding.name for group in result.groups if group.judged.finding.rule == "T11"]
    assert names == ["mySQL2", "sql1", "app1"]


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        (Filters(name="sql-*"), {"sql-a", "sql-b"}),
        (Filters(folder="Prod"), {"sql-a", "sql-b", "web"}),
        (Filters(folder="/DC1/vm/Prod"), {"sql-a", "sql-b", "web"}),
        (Filters(folder="Test"), set()),
        (Filters(cluster="SQL-*"), {"sql-a", "sql-b", "web"}),
        (Filters(cluster="OTHER"), set()),
        (Filters(name="*b", cluster="SQL-PROD-A"), {"sql-b", "web"}),
    ],
)
def test_filters_choose_vms(filters: Filters, left: set[str]) -> None:
    """By name, folder and cluster; the number of excluded ones is shown."""
    result = checked(estate_of("sql-a", "sql-b", "web"), filters=filters)
    assert {vm.name for vm in result.vms} == left
    assert result.left_out == 3 - len(left)


def test_a_waived_finding_stays_and_does_not_count() -> None:
    """It has its reason, and no longer decides how bad the VM is."""
    result = checked(estate_of("sql-a", cpuAffinity=()), waivers=[waiver()], today=TODAY)
    (item,) = [item for item in result.vms[0].findings if item.finding.rule == "T11"]
    assert item.waived == "CR-17"
    assert result.vms[0].worst is not Severity.BLOCK
    assert {"T11"}.isdisjoint(group.judged.finding.rule for group in result.open(Severity.BLOCK))


def test_a_waiver_holds_to_the_end_of_its_last_day() -> None:
    """It is valid on that day and not on the next, which is reported."""
    lasting = checked(estate_of("sql-a"), waivers=[waiver(until=TODAY)], today=TODAY)
    ended = checked(estate_of("sql-a"), waivers=[waiver(until=TODAY)], today=date(2026, 11, 21))
    assert lasting.waivers == ()
    assert ended.waivers == ("waiver T11 sql-* (CR-17) expired on 2026-11-20: its findings count again",)
    assert {"T11"} <= {group.judged.finding.rule for group in ended.open(Severity.BLOCK)}


def test_a_waiver_for_nothing_is_reported() -> None:
    """A waiver that covers no finding is named: the fault is gone, or the pattern is wrong."""
    result = checked(estate_of("sql-a"), waivers=[waiver(object_="other")], today=TODAY)
    assert result.waivers == ("waiver T11 other (CR-17) matches no finding",)


GOOD = "rule: T11, object: a, reason: CR-17, until: 2027-03-31"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD.replace(", until: 2027-03-31", ""), "until: field required"),
        (GOOD.replace("T11", "T99"), "Rule T99 does not exist"),
        (GOOD.replace("CR-17", "''"), "reason: must not be empty"),
        (GOOD.replace("03-31", "13-01"), "is not YAML: month must be in 1"),
        (GOOD.replace("2027-03-31", "soon"), r"waivers\.0\.until: input should be a valid date"),
    ],
)
def test_a_waiver_that_cannot_be_meant_is_refused(text: str, says: str, tmp_path: Path) -> None:
    """Without an end, a reason or a known rule, on a day that no month has: its place is named."""
    file = tmp_path / "waivers.yml"
    file.write_text(f"waivers: [{{{text}}}]")
    with pytest.raises(InputError, match=says):
        load(file)


@pytest.mark.parametrize("text", [f"[{{{GOOD}}}]", "name: quick", "waivers: [", "a: ["])
def test_a_file_without_waivers_is_refused_with_an_example(text: str, tmp_path: Path) -> None:
    """A file of another shape."""
    file = tmp_path / "waivers.yml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load(file)
    assert str(caught.value.fix).startswith("Write each entry as {rule: T11")


def test_an_earlier_check_tells_new_fixed_and_unchanged(tmp_path: Path) -> None:
    """A finding is the same by rule and object, whatever its words."""
    before = checked(estate_of("sql-a", "sql-b"))
    fixed = estate_of("sql-a", "sql-b", cpuHotAddEnabled=False)
    result = since(before, checked(fixed), tmp_path)
    assert result.since is not None
    assert ("T11", "vm", "sql-a") in result.since.fixed
    assert result.since.unchanged > 0
    again = since(checked(fixed), before, tmp_path)
    changes = {item.finding.rule: item.change for item in again.vms[0].findings}
    assert changes["T11"] == "new"
    assert set(changes.values()) == {"new", "unchanged"}


def test_what_cannot_be_evaluated_any_more_is_not_fixed(tmp_path: Path) -> None:
    """A finding whose rule had no facts this time is neither gone nor there."""
    estate = estate_of("sql-a")
    (vm,) = estate.vms
    blind = {name: value for name, value in vm.facts.settings.items() if name != "cpuHotAddEnabled"}
    unread = replace(
        vm,
        facts=replace(vm.facts, settings=blind),
        absent={**vm.absent, "cpuHotAddEnabled": "the account lacks the privilege System.Read"},
    )
    result = since(checked(estate), checked(replace(estate, vms=(unread,))), tmp_path)
    assert result.since is not None
    assert ("T11", "vm", "sql-a") in result.since.unknown
    assert ("T11", "vm", "sql-a") not in result.since.fixed


def test_a_snapshot_is_an_earlier_check_too(tmp_path: Path) -> None:
    """Today's rules over the facts of then."""
    file = saved(tmp_path, estate_of("sql-a"))
    result = compare(checked(estate_of("sql-a")), earlier(file, CheckRequest()))
    assert result.since is not None
    assert (result.since.new, result.since.fixed) == (0, ())


def test_an_export_is_checked_as_far_as_it_goes(tmp_path: Path) -> None:
    """From RVTools the hot-add rule fails; rules on affinity and keys are evaluated with defaults, or not."""
    result = checked(read_rvtools(write(tmp_path / "e.xlsx", export())))
    found = {vm.name: vm for vm in result.vms}
    vm = found["vm0"]
    assert [failed(found[name]) & {"T11"} for name in ("vm0", "vm1")] == [set(), {"T11"}]
    assert vm.assumed["A02"] == "assumes default affinity, not shown by RVTools"
    assert vm.assumed["T17"] == "assumes default numa.* keys, not shown by RVTools"
    assert vm.guest == "~1*"
    assert {"T22"} <= vm.not_evaluated.keys()
    without = checked(read_rvtools(tmp_path / "e.xlsx"), assume_defaults=False)
    (vm,) = [vm for vm in without.vms if vm.name == "vm0"]
    assert {"A02", "T17"} <= vm.not_evaluated.keys()
    assert (vm.assumed, vm.guest) == ({}, "")


def test_a_rule_that_weighs_differently_says_how_often() -> None:
    """A rule's line has its worst severity; where it is milder on others, both counts stand there."""
    result = checked(estate_of("a", "b", "c"))
    assert mixed_words(result, "T11") == ""
    vms = list(result.vms)
    for number in (1, 2):
        (hot_add,) = [item for item in vms[number].findings if item.finding.rule == "T11"]
        info = replace(hot_add, finding=replace(hot_add.finding, severity=Severity.INFO))
        vms[number] = replace(vms[number], findings=(info,))
    mixed = replace(result, vms=tuple(vms))
    assert mixed.severities["T11"] == {Severity.BLOCK: 1, Severity.INFO: 2}
    assert mixed_words(mixed, "T11") == "1 block, 2 info"
    assert as_page(mixed).count("(1 block, 2 info)") == 1
    assert next(entry[1:] for entry in mixed.by_rule if entry[0].id == "T11") == (Severity.BLOCK, 3)
