"""The roles' work outside a run, as the collection's actions call it: JSON in, JSON out.

Single steps on one VM, without lease; the store gets only its changes. Refuses a VM with a run's mark, and
one that is not a test clone unless a change ticket permits it.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from vnuma.checks.result import CheckResult, document
from vnuma.checks.rule import Severity
from vnuma.domain.arm.arm import Arm, only_in_runs
from vnuma.domain.study.study import PowerRules, Quiet
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.places import store_url
from vnuma.engine.access.target import Target
from vnuma.engine.audit.log import Journal
from vnuma.engine.cell.shape import (
    PowerSwitch,
    Shaped,
    edits_diff,
    not_left_off,
    plan_shape,
    shape,
    shaped_document,
)
from vnuma.engine.design_check.check import CheckRequest, run_check, sql_reader
from vnuma.engine.design_check.estates import read_target
from vnuma.engine.instance.sql_identity import require_by_hand
from vnuma.engine.lease.vcenter_retry import VCenterRetry, retry_vcenter
from vnuma.engine.lease.whose_vm import refuse_if_marked
from vnuma.engine.preflight.findings import Permit
from vnuma.errors import InputError, ThresholdMet
from vnuma.estate.waivers import load
from vnuma.sqlserver.client.connect import connect as connect_sql
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.statistics_time import timed
from vnuma.sqlserver.database import dataset as datasets
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.sqlserver.database.ownership import require_ours
from vnuma.sqlserver.instance.ready import wait_ready
from vnuma.sqlserver.instance.server import read_server, read_topology
from vnuma.store.open import open_store
from vnuma.vsphere import read
from vnuma.vsphere.apply import no_fence
from vnuma.vsphere.connect import Session, VmRef, connect
from vnuma.vsphere.power import wait_for_guest
from vnuma.vsphere.uptime import seconds_since_power_on
from vnuma.vsphere.wait import settle
from vnuma.words.plain_text import counted
from vnuma.words.validation import messages
from vnuma.workloads.cross_join.settings import CrossJoin
from vnuma.workloads.cross_join.workload import cross_join_queries

Document = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)
_POWER = {"on": Power.ON, "off": Power.OFF}


def _permitted(session: Session, target: Target, permit: Permit) -> tuple[VmRef, VmFacts]:
    """The VM, if it may be changed by hand. Raises VmHeld and PreflightBlocked."""
    ref = read.find_vm(session, target.vm)
    vm = read.read_vm(session, ref)
    refuse_if_marked(vm)
    permit.require(vm.name, permit.tagged(target, vm.moid), test_clone=target.test_clone)
    return ref, vm


def topology(target: Target, options: Document) -> Document:
    """Bring the VM into the shape of `arm`; does nothing if it has that shape already.

    A failure does not leave a VM off that it has shut down.
    """
    arm, rules, permit = _arm(options), _rules(options), _permit(options)
    first: list[tuple[VmFacts, Shaped]] = []

    def once(_tries: int) -> Shaped:
        with connect(vcenter(target)) as session:
            ref, _ = _permitted(session, target, permit)
            settle(session, ref, rules.task_timeout_s)
            vm, host = read.read_vm_on_host(session, ref)
            first.append((vm, plan_shape(arm, vm, host)))
            switch = PowerSwitch(session, ref, rules, no_fence, _journal(vm, permit))
            with not_left_off(switch, lambda: first[0][0].power is Power.ON):
                shape(switch, arm, vm, host, always_off=False)
        return first[0][1]  # an earlier try whose answer was lost may have made the change

    done = retry_vcenter(once, VCenterRetry(rules.vcenter_retry_s), lambda *_: None)
    return _shaped(done)


def plan_topology(target: Target, options: Document) -> Document:
    arm, permit = _arm(options), _permit(options)
    with connect(vcenter(target)) as session:
        _, vm = _permitted(session, target, permit)
        planned = plan_shape(arm, vm, read.read_host(session, session.host(vm.host_moid)))
    return _shaped(planned)


def power(target: Target, options: Document) -> Document:
    """Power the VM on (until its Tools run) or shut its guest down."""
    state, rules, permit = options["state"], _rules(options), _permit(options)
    with connect(vcenter(target)) as session:
        ref, vm = _permitted(session, target, permit)
        changed = vm.power is not _POWER[state]
        if changed:
            switch = PowerSwitch(session, ref, rules, no_fence, _journal(vm, permit))
            switch.on(vm.host_moid) if state == "on" else switch.off(back_on=False)
    return _powered(state, changed=changed)


def plan_power(target: Target, options: Document) -> Document:
    with connect(vcenter(target)) as session:
        _, vm = _permitted(session, target, _permit(options))
    return _powered(options["state"], changed=vm.power is not _POWER[options["state"]])


def _powered(state: str, *, changed: bool) -> Document:
    before = {"on": "off", "off": "on"}[state] if changed else state
    return {
        "changed": changed,
        "power": state,
        "diff": {"before": {"power": before}, "after": {"power": state}},
    }


def _journal(vm: VmFacts, permit: Permit) -> Journal:
    return Journal(open_store(store_url()), vm.key, vm.name, ticket=permit.ticket)


def ready(target: Target, options: Document) -> Document:
    """Wait for Tools and SQL Server, then read what the guest sees."""
    timeout_s = options["timeout"]
    quiet = Quiet.model_construct(
        cpu_percent=options["quiet_cpu_percent"], for_s=options["quiet_for"], timeout_s=timeout_s
    )
    with connect(vcenter(target)) as session:
        ref = read.find_vm(session, target.vm)
        wait_for_guest(session, ref, timeout_s=timeout_s)
        age, at = seconds_since_power_on(session, ref), time.monotonic()
    sql = sql_server(target)
    on_s = age + time.monotonic() - at  # logging out may take some time
    came_up = wait_ready(sql, database=None, powered_on_s=on_s, deadline_s=timeout_s, quiet=quiet)
    with connect_sql(sql) as connection:
        guest, server = read_topology(connection), read_server(connection)
    return {"changed": False, "ready": asdict(came_up), "guest": asdict(guest), "server": asdict(server)}


def dataset(target: Target, options: Document) -> Document:
    """Create the dataset, verify an existing one, or drop it. Raises PreflightBlocked."""
    diff = plan_dataset(target, options)["diff"]
    with connect_sql(sql_server(target)) as connection:
        require_by_hand(target, connection)
        if options["state"] == "absent":
            return {"changed": datasets.drop(connection, options["database"]), "diff": diff}
        facts = datasets.prepare(connection, _dataset_spec(options))
    return {"changed": facts.changed, "dataset": asdict(facts), "diff": diff}


def plan_dataset(target: Target, options: Document) -> Document:
    """What `dataset` would create or drop. Raises ForeignDatabase as it does."""
    name = options["database"]
    with connect_sql(sql_server(target)) as connection:
        there = require_ours(connection, name)
        if options["state"] == "absent":
            return {"changed": there, "diff": _database_diff(name if there else None, None)}
        changed = not (there and _is_whole(connection, _dataset_spec(options)))
    before = None if not there else f"{name}, with other rows" if changed else name
    return {"changed": changed, "diff": _database_diff(before, name)}


def _is_whole(connection: pyodbc.Connection, spec: DatasetSpec) -> bool:
    try:
        datasets.verify(connection, spec)
    except ServerError as error:
        if error.native is not None:
            raise
        return False
    return True


def _database_diff(before: str | None, after: str | None) -> Document:
    return {"before": {"sql.database": before}, "after": {"sql.database": after}}


def benchmark(target: Target, options: Document) -> Document:
    """Run the workload on the VM as it is and return every timing. Raises PreflightBlocked."""
    workload = _parsed(CrossJoin, options["workload"], "workload")
    with connect_sql(sql_server(target), options["database"]) as connection:
        require_by_hand(target, connection)
        timings = [
            {"size": query.size, "form": query.form, "iteration": iteration}
            | vars(timed(connection, query, workload.timeout_s))
            for query in cross_join_queries(workload)
            for iteration in range(1, options["iterations"] + 1)
        ]
    known = [{name: value for name, value in one.items() if value is not None} for one in timings]
    return {"changed": False, "timings": known}


def _shaped(done: Shaped) -> Document:
    return shaped_document(done) | {"diff": edits_diff(done.change)}


DEADLINES = {
    "shutdown_timeout": "shutdown_timeout_s",
    "on_shutdown_timeout": "on_shutdown_timeout",
    "tools_timeout": "tools_timeout_s",
}
"""Options of the actions that power a VM, and the study's rule that each stands for."""


def _rules(options: Document) -> PowerRules:
    """The deadlines that the options name; the others are a study's usual ones."""
    return PowerRules.model_construct(
        **{field: options[name] for name, field in DEADLINES.items() if name in options}
    )


def _permit(options: Document) -> Permit:
    """What the role's options `production` and `ticket` allow."""
    return Permit.given(options["production"], options["ticket"] or None)


def _dataset_spec(options: Document) -> DatasetSpec:
    names = ("database", "source", "transaction_history_rows", "sales_order_detail_rows")
    return DatasetSpec(**{name: options[name] for name in names})


def _arm(options: Document) -> Arm:
    arm = _parsed(Arm, options["arm"], "arm")
    for name in only_in_runs():
        if getattr(arm, name) != Arm.model_fields[name].default:
            raise InputError(
                f"option arm is invalid: {name} is not a setting of the VM; only a run sets and restores it.",
                fix=f"Remove {name} here, or write a study and use vnuma run.",
            )
    return arm


def _parsed(model: type[Model], data: Document, option: str) -> Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        what = f"option {option} is invalid: {messages(error, option)}."
        raise InputError(what, fix="docs/reference/study.md describes every field.") from None


NEVER = "never"


def design_check(target: Target, options: dict[str, Any]) -> dict[str, Any]:
    """The check's document; with `failed` where something as bad as `fail_on` says was found."""
    asked = CheckRequest(
        sql=sql_reader([target]) if options["sql"] else None,
        waivers=load(Path(options["waivers"])) if options["waivers"] else (),
    )
    result = run_check([read_target(target)], asked)
    if not result.vms:
        why = next((item.why for item in result.unseen if item.kind == "vm"), "it is a template")
        raise InputError(f"{target.vm} could not be checked: {why}.", fix="vnuma doctor checks its vCenter.")
    return {"changed": False, "check": document(result)} | _verdict(result, options["fail_on"])


def _verdict(result: CheckResult, fail_on: str) -> dict[str, Any]:
    if fail_on == NEVER:
        return {}
    found = list(result.open(Severity(fail_on)))
    if not found:
        return {}
    lines = [
        f"{group.judged.finding.rule} {group.judged.finding.name}: {group.judged.finding.title}"
        for group in found
    ]
    return {
        "failed": True,
        "msg": f"{counted(len(found), 'finding')} of severity {fail_on} or worse.\n" + "\n".join(lines),
        "exit_code": ThresholdMet.exit_code,
        "error": ThresholdMet.__name__,
    }
