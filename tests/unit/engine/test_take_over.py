"""What taking a target over stores, whose VM a session may touch, and which rows a new run has."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.build import study_text
from tests.store.build import claim, new_vm
from tests.support.away import LAB, session_at
from tests.support.hosts import vm_of
from tests.support.studies import plan_of, study
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import SqlTarget, Target
from vnuma.engine.audit.log import Journal, audit_lines
from vnuma.engine.lease.baseline import (
    DEADLINES,
    SomebodysChange,
    lease_with_baseline,
    refuse_foreign_changes,
)
from vnuma.engine.lease.whose_vm import ended_with_its_lab, find_by_key
from vnuma.engine.preflight.findings import Finding, Permit
from vnuma.engine.preflight.preflight import LOCK
from vnuma.engine.run.start import (
    StudyRequest,
    add_vms,
    client_of,
    create_run,
    refuse_unprepared,
    reopen,
    take_over_targets,
)
from vnuma.errors import InputError, PreflightBlocked, VCenterUnreachable, VmHeld, VmNotFound
from vnuma.store import attempts, cells, facts, leases, runs, sites
from vnuma.store.open import Store
from vnuma.store.rows import Outcome, Run, RunState, StopRequest, Vm

OLD: dict[str, object] = {"settings": {"numCPUs": 16}}
NEW: dict[str, object] = {"settings": {"numCPUs": 8}}
HASHES = ["baseline", "baseline", DEADLINES]


@pytest.mark.parametrize(
    ("known", "found", "noted"),
    [(None, NEW, HASHES[1:]), (OLD, OLD, []), (OLD, NEW, HASHES)],
    ids=["the first", "as stored", "corrected"],
)
def test_a_baseline_is_in_the_audit_log_before_the_store_has_it(
    store: Store, run: Run, known: dict[str, object] | None, found: dict[str, object], noted: list[str]
) -> None:
    """A corrected one after the one that it replaces. The run holds the VM, and no attempt stays open."""
    with store.write() as connection:
        vm = leases.add_vm(connection, run.id, vm_key="v/i", name="sql16", path="p", esxi_host="e")
        token = leases.take_lease(connection, vm.vm_key, run.id, "ops@ctl1")
        if known:
            cells.save(connection, vm.id, token, known)
    journal, now = Journal(store, vm.vm_key, vm.name, run), replace(vm, baseline=known)

    taken = lease_with_baseline(store, run, now, dict(found), journal, study())

    with store.read() as connection:
        assert leases.get_vm(connection, vm.id).baseline == found
        assert leases.token_of(connection, vm.vm_key, run.id) == taken == token + 1
    assert [line.action for line in audit_lines(store, run.name)] == noted


def test_no_attempt_of_an_earlier_process_stays_open(store: Store, run: Run) -> None:
    """Its measurement would keep other VMs of the host waiting."""
    leased = new_vm(store, run, arms=1)
    opened, journal = claim(store, leased), Journal(store, leased.vm.vm_key, "sql16", run)

    lease_with_baseline(store, run, replace(leased.vm, baseline=OLD), OLD, journal, study())

    with store.read() as connection:
        assert attempts.get_attempt(connection, opened.id).outcome is Outcome.INTERRUPTED


@pytest.mark.parametrize(("cores", "refused"), [(4, False), (16, False), (8, True)])
def test_a_vm_that_somebody_changed_is_not_continued_with(
    store: Store, run: Run, cores: int, refused: bool
) -> None:
    """A setting has its value from the baseline, or one that an attempt of this run wrote."""
    leased = new_vm(store, run, arms=1)
    one = claim(store, leased)
    edit = {"setting": "numCoresPerSocket", "before": 4, "after": 16}
    with store.write() as connection:
        attempts.save_plan(connection, one.id, one.token, intended={}, change=[edit], predicted={})
    known = replace(leased.vm, baseline={"settings": vm_of().settings})
    context = VmContext(store, run, study(), known, Target(name="sql16"), leased.token)

    with pytest.raises(SomebodysChange) if refused else nullcontext():
        refuse_foreign_changes(context, vm_of(numCoresPerSocket=cores))


@pytest.mark.parametrize(("uuid", "raised"), [("vc", VCenterUnreachable), ("other", VmNotFound)])
def test_only_the_vcenter_of_its_key_is_asked_for_a_vm(uuid: str, raised: type[Exception]) -> None:
    """Another one may have a VM of that UUID: a copy."""
    with pytest.raises(raised):
        find_by_key(session_at(uuid), "vc/1", "sql16")


@pytest.mark.parametrize(
    ("lab", "uuid", "name"),
    [(None, "other", LAB), ("paper", "other", "VMware vCenter Server"), ("paper", "vc", LAB)],
    ids=["a real VM", "a real vCenter", "the same lab"],
)
def test_a_vm_is_given_up_with_its_lab_alone(lab: str | None, uuid: str, name: str) -> None:
    """Neither a real one, nor one whose lab still answers: nothing is asked."""
    assert not ended_with_its_lab(session_at(uuid, name), lab, "vc/1")
    with pytest.raises(VCenterUnreachable):  # another lab has to show that it has a VM of that UUID
        ended_with_its_lab(session_at("other", LAB), "paper", "vc/1")


HERE = {"sql16": Target(name="sql16")}
FREETDS: dict[str, object] = {"name": "FreeTDS"}
SQL = SqlTarget.model_validate({"host": "h", "kerberos": True, "driver": "freetds"})


def asking(targets: dict[str, Target] | None = None) -> StudyRequest:
    """A study of sql16 with two arms."""
    return StudyRequest(
        study(), study_text(), targets or HERE, Permit(ticket="CHG1"), Inventory(Path("hosts.yml"))
    )


def found(id_: str) -> Finding:
    return Finding.block(id_, "x", "y")


@pytest.mark.parametrize(
    ("findings", "lease", "key", "raised"),
    [
        ((), None, "v/2", None),
        ((), None, "v/i", InputError),
        ((found("P01"),), None, "v/2", PreflightBlocked),
        ((found("P01"), found(LOCK)), '{"run": "other.1"}', "v/2", PreflightBlocked),
        ((found(LOCK),), '{"run": "other.1"}', "v/2", VmHeld),
    ],
    ids=["ready", "one VM twice", "blocked", "blocked and held", "held"],
)
def test_a_study_starts_only_where_every_vm_is_free(
    findings: tuple[Finding, ...], lease: str | None, key: str, raised: type[Exception] | None
) -> None:
    """What blocks it besides another controller is named first."""
    one = plan_of(study())
    assert one.shape
    shape = replace(one.shape, vm=replace(one.shape.vm, lease=lease))
    plans = {"a": replace(one, findings=findings, shape=shape), "b": replace(one, key=key, shape=None)}

    with pytest.raises(raised) if raised else nullcontext():
        refuse_unprepared(plans)


@pytest.mark.parametrize("site", [None, "site-b"])
def test_a_run_has_its_planned_vms_cells_and_sites_before_any_change(store: Store, site: str | None) -> None:
    """An arm that is left out has no cell; a target of another site comes with that site's process."""
    targets = HERE | {"sql-b": Target(name="sql-b", site=site)}
    plan = replace(plan_of(study()), left_out={"4x4": "too large"}, simulated="paper")

    run = create_run(store, asking(targets), {"sql16": plan}, {"name": "FreeTDS"})

    with store.read() as connection:
        (vm,) = leases.vms_of_run(connection, run.id)
        arms = {cell.arm for cell in cells.cells_of_run(connection, run.id)}
        parts = [site.name for site in sites.sites_of_run(connection, run.id)]
        permit = {fact.key: fact.value for fact in facts.facts_of_run(connection, run.id, "permit")}
    assert (vm.name, arms, run.simulated, run.ticket) == ("sql16", {"1x16"}, "paper", "CHG1")
    assert (parts, permit.get("ticket")) == ((["site-b"], "CHG1") if site else ([], None))
    with store.write() as connection, pytest.raises(InputError):
        add_vms(connection, run, asking(), {"sql16": plan}, None)


@pytest.mark.parametrize(
    ("site", "client", "stored"),
    [("site-b", FREETDS, FREETDS), ("site-b", None, {}), (None, FREETDS, {})],
)
def test_the_client_of_another_site_is_a_fact_of_its_vms(
    store: Store, site: str | None, client: dict[str, object] | None, stored: dict[str, object]
) -> None:
    """Its driver affects their times."""
    run = create_run(store, asking({}), {}, None)
    with store.write() as connection:
        sites.add_sites(connection, run.id, ["site-b"])
        part = runs.at_site(connection, run, site)
        add_vms(connection, part, asking(), {"sql16": plan_of(study())}, client)
        noted = facts.facts_of_run(connection, run.id, facts.CLIENT)

    assert {fact.key: fact.value for fact in noted} == stored


@pytest.mark.parametrize(("sql", "has_client"), [(None, False), (SQL, True)])
def test_only_sql_server_has_a_client_that_affects_times(sql: SqlTarget | None, has_client: bool) -> None:
    """Its driver and encryption."""
    seen = client_of({"sql16": Target(name="sql16", sql=sql)})

    assert ("encryption" in (seen or {})) is has_client


def box_of(store: Store, name: str, text: str) -> tuple[Run, Vm]:
    """A run of a machine that nothing shapes, as its preflight saw it."""
    with store.write() as connection:
        run = runs.create_run(connection, runs.save_study(connection, "held", text), seed=1)
        vm = leases.add_vm(connection, run.id, vm_key=f"linux/{name}", name=name, path=name, esxi_host=name)
        facts.add_vm_facts(connection, vm.id, "machine", {"numa_balancing": "1"})
    return run, vm


def test_a_machine_is_taken_over_with_its_kernels_settings(store: Store) -> None:
    """The run works then, and a second take-over keeps the baseline under a new token."""
    text = study_text(vms="box")
    run, vm = box_of(store, "box", text)
    machine = {"box": Target(name="box")}

    tokens = [take_over_targets(store, run, parse_study(text, "s"), machine)["box"] for _ in range(2)]

    with store.read() as connection:
        assert leases.get_vm(connection, vm.id).baseline == {"kernel": {"numa_balancing": "1"}}
        assert leases.token_of(connection, vm.vm_key, run.id) == tokens[1] == tokens[0] + 1
        assert runs.get_run(connection, run.name).state is RunState.RUNNING


@pytest.mark.parametrize("inventory", [None, "new.yml"])
def test_a_run_is_reopened_by_the_inventory_that_is_given(
    store: Store, tmp_path: Path, inventory: str | None
) -> None:
    """A stop that was requested is over; without an inventory it keeps its own."""
    run = create_run(store, asking(), {"sql16": plan_of(study())}, None)
    with store.write() as connection:
        runs.request_stop(connection, run.id, StopRequest.NOW)

    reopen(store, run.name, tmp_path / inventory if inventory else None)

    with store.read() as connection:
        now = runs.get_run(connection, run.name)
    assert (now.stop_requested, Path(str(now.inventory)).name) == (None, inventory or "hosts.yml")
