"""Everything a study needs from the outside, checked one by one, without changing anything."""

from __future__ import annotations

import platform
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from vnuma import __version__, lab
from vnuma.domain.study.order import METHOD
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.linux import LinuxFacts
from vnuma.domain.vm.role import LOGIN
from vnuma.domain.vm.setting import Power
from vnuma.engine.access import guest_shell
from vnuma.engine.access.connections import shared_logins, sql_server, vcenter
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.places import audit_file, store_url
from vnuma.engine.access.target import Target
from vnuma.engine.doctor import diagnose_vm
from vnuma.engine.doctor.diagnose_vm import Diagnosis, State
from vnuma.engine.lease.whose_vm import parse_mark
from vnuma.engine.notify import TEST, VARIABLE, Notifier, event_line, ready_channels
from vnuma.engine.preflight.findings import Finding
from vnuma.engine.preflight.preflight import (
    server_findings,
    unencrypted_connection,
    unused_login,
    vm_findings,
)
from vnuma.errors import DriverMissing, EnvironmentProblem, VmNotFound, VnumaError
from vnuma.sqlserver.client.connect import connect as connect_sql
from vnuma.sqlserver.client.driver import discover
from vnuma.sqlserver.instance import server as sql_facts
from vnuma.store.place import parse_place
from vnuma.store.schema import HEAD
from vnuma.vsphere import read, surroundings
from vnuma.vsphere.connect import connect
from vnuma.words.plain_text import counted
from vnuma.words.provenance import why_no_hardware
from vnuma.workloads.page_cache.workload import obstacles_of_guest
from vnuma.workloads.shell import linux_question

PACKAGES = ("ansible-core", "ansible-runner", "pyvmomi", "pyodbc", "SQLAlchemy", "numpy", "scipy", "pandas")
"""Whose versions a bug report needs; pandas is an extra."""

_PIP_TIMEOUT_S = 300


def machine_document() -> dict[str, Any]:
    """Versions of all that figures and stores depend on. What is missing is null, a driver with a reason."""
    built = lab.find_built()
    driver: dict[str, str | None]
    try:
        found = discover()
        driver = {"name": found.name, "version": found.version, "reason": None}
    except DriverMissing as error:
        driver = {"name": None, "version": None, "reason": f"{error.what} {error.fix}"}
    return {
        "schema": "vnuma/version/1",
        "vnuma": __version__,
        "method": METHOD,
        "store": {"schema": HEAD, "sqlite": sqlite3.sqlite_version},
        "python": platform.python_version(),
        "system": platform.platform(),
        "odbc": driver,
        "lab": str(built) if built else None,
        "packages": {name: _installed(name) for name in PACKAGES},
    }


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine_lines() -> list[str]:
    """Python, lab and ODBC driver, the store and its audit log, in a line each."""
    has, place = machine_document(), parse_place(store_url())
    odbc = has["odbc"]
    driver = f"none: {odbc['reason']}" if odbc["reason"] else f"{odbc['name']} {odbc['version']}"
    return [
        f"vnuma   {has['vnuma']}, Python {has['python']}",
        f"lab     {has['lab'] or 'not built yet: vnuma lab build'}",
        f"ODBC    {driver}",
        f"store   {place}",
        f"audit   {audit_file(place)}",
    ]


def fetch_odbc_wheel() -> None:
    """Install the wheel into this environment. Raises EnvironmentProblem with pip's last words."""
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "mssql-python-odbc"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_PIP_TIMEOUT_S, umask=0o022
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise EnvironmentProblem(
            f"pip could not install mssql-python-odbc: {last[0]}",
            fix="Check the network. Installed by pipx: pipx inject vnuma mssql-python-odbc. "
            "By uv: uv tool install --with mssql-python-odbc FILE.",
        )


def diagnose(targets: Mapping[str, Target], inventory: Inventory) -> list[Diagnosis]:
    """Check driver, vCenter, VM, privileges and SQL Server; a guest without one is asked by its shell."""
    logins = shared_logins()
    if logins:
        logins.once = True
    if not targets:
        return [_guarded("driver", partial(_driver, "auto"))]
    return [*_from_outside(targets.values()), *diagnose_guests(targets.values(), inventory)]


def _from_outside(targets: Iterable[Target]) -> Iterator[Diagnosis]:
    """What vCenter and SQL Server answer."""
    servers = [target for target in targets if target.sql]
    for name in dict.fromkeys(target.server.driver for target in servers):
        yield _guarded("driver", partial(_driver, name))
    yield from diagnose_vm.tickets(servers)
    for target in targets:
        power = (yield from _vsphere(target)) if target.vcenter else None
        if target.sql:
            yield from _found(unencrypted_connection(target), "SQL wire")
            yield from _found(unused_login(target), "SQL login")
            yield _guarded("SQL Server", partial(_sql, target, power))


FOLDER = "/var/tmp"
"""Asked about; a study may name another."""


def diagnose_guests(targets: Iterable[Target], inventory: Inventory) -> Iterator[Diagnosis]:
    """Ask every guest without SQL Server once; what each said, or why it said nothing."""
    guests = {target.name: target for target in targets if target.sql is None}
    answers = guest_shell.run_on(list(guests), inventory, linux_question(FOLDER)) if guests else {}
    for name, target in guests.items():
        try:
            facts = guest_shell.facts_of(name, answers[name])
            yield from _machine(name, facts, shaped=target.vcenter is not None)
        except VnumaError as error:
            yield Diagnosis.failed("machine", error)


def _machine(name: str, machine: LinuxFacts, *, shaped: bool) -> Iterator[Diagnosis]:
    yield Diagnosis("ok", "machine", f"{name}: {machine.hostname}, {machine.words}")
    if machine.provenance:
        yield Diagnosis("warn", "machine", why_no_hardware(machine.provenance))
    nodes = tuple(
        f"node {node.id}: {counted(len(node.cpus), 'CPU')}, {node.memory_mb:,} MB, "
        f"{node.free_mb + node.cached_mb:,} MB free or cache"
        for node in machine.nodes
    )
    if len(machine.nodes) == 1 and not shaped:
        yield Diagnosis("warn", "NUMA", "one node: arms that need two are left out", nodes)
    else:
        yield Diagnosis("ok", "NUMA", counted(len(machine.nodes), "node"), nodes)
    if not machine.is_root:
        yield Diagnosis("FAIL", "shell", f"{name}: not root", ("fix: let Ansible become root there",))
    balancing, huge = machine.numa_balancing or "none", machine.transparent_hugepages or "none"
    yield Diagnosis("ok", "kernel", f"numa_balancing {balancing}, transparent huge pages {huge}")
    for found in obstacles_of_guest(machine):
        yield Diagnosis("warn", "page_cache", found.what, (f"fix: {found.fix}",))


def _guarded(subject: str, check: Callable[[], Diagnosis]) -> Diagnosis:
    """A check that raises is a failed one, in the error's own words."""
    try:
        return check()
    except VnumaError as error:
        return Diagnosis.failed(subject, error)


def _driver(preferred: str) -> Diagnosis:
    found = discover(preferred)
    return Diagnosis("ok", "driver", f"{found.name} {found.version}")


def _vsphere(target: Target) -> Generator[Diagnosis, None, Power | None]:
    """What vCenter shows; returns the VM's power state, if it can be read."""
    power = None
    try:
        with connect(vcenter(target)) as session:
            yield from diagnose_vm.server(target, session)
            ref = read.find_vm(session, target.vm)
            facts = read.read_vm(session, ref)
            power = facts.power
            yield _vm(target, facts)
            host = read.read_host(session, session.host(facts.host_moid))
            nodes = f"{len(host.numa_nodes)} NUMA nodes of {host.cores_per_node} cores"
            yield Diagnosis("ok", "host", f"{host.name}, ESXi {host.release}, {nodes}")
            yield from diagnose_vm.needed(session, ref, facts)
            yield from diagnose_vm.optional(session, ref)
            seen = surroundings.read_surroundings(session, ref)
            yield from _found(vm_findings(facts.name, host.name, seen), "around it")
            if facts.power is Power.ON:
                yield from diagnose_vm.clocks(target, session, session.host(facts.host_moid))
        findings = server_findings(target, facts, seen) if target.sql else []
        yield from _found(findings, "SQL use")
        if target.sql and facts.power is Power.ON:
            yield from diagnose_vm.identity(findings)
    except VmNotFound as error:
        yield Diagnosis.failed("VM", error)
    except VnumaError as error:
        yield Diagnosis.failed("vCenter", error)
    return power


def _vm(target: Target, facts: VmFacts) -> Diagnosis:
    mark = parse_mark(facts.lease)
    if mark:
        return Diagnosis("warn", "VM", f"{facts.path} is under study by {mark['holder']}, run {mark['run']}")
    if not target.test_clone:
        more = ("a study power-cycles it many times; mark a clone with vnuma_test_clone: true",)
        return Diagnosis("warn", "VM", f"{facts.path}, not marked as a test clone", more)
    return Diagnosis("ok", "VM", f"{facts.path}, one match, test clone")


def _found(findings: Iterable[Finding], subject: str) -> Iterator[Diagnosis]:
    """What preflight would say of any study on this VM."""
    for item in findings:
        state: State = "FAIL" if item.severity == "block" else "warn"
        yield Diagnosis(state, subject, f"{item.id} {item.what}", (f"fix: {item.fix}",) if item.fix else ())


def _sql(target: Target, power: Power | None) -> Diagnosis:
    """Asked of a VM whose power state is not known, too: a silent vCenter says nothing about SQL Server."""
    if power not in (None, Power.ON):
        return Diagnosis("warn", "SQL Server", f"not evaluated: {target.name} is powered off")
    with connect_sql(sql_server(target)) as connection:
        may = sql_facts.read_permissions(connection)
        lacking = [right for right in LOGIN if not right.held(may)]
        if lacking:
            names = " and ".join(right.named_for(may) for right in lacking)
            more = (
                f"needed for: {'; '.join(right.purpose for right in lacking)}",
                f"fix: GRANT {names} TO it",
            )
            return Diagnosis("FAIL", "SQL Server", f"the login lacks {names}", more)
        facts = sql_facts.read_server(connection)
    what = f"{facts.version} {facts.edition}, login, server state readable"
    return Diagnosis("ok", "SQL Server", f"{what}, can create its database")


_SUBJECT = "notify"


def diagnose_notify(inventory: Inventory, names: Iterable[str], *, send: bool) -> Iterator[Diagnosis]:
    """Each channel of these hosts: its secret, and with `send` whether it takes a test. Raises InputError."""
    channels, lacking = ready_channels(inventory, names)
    for words in lacking:
        yield Diagnosis("FAIL", _SUBJECT, words)
    if send and not channels and not lacking:
        yield Diagnosis("FAIL", _SUBJECT, f"the inventory has no {VARIABLE}", ("fix: see docs/notify.md",))
    for ready in channels:
        if not send:
            yield Diagnosis("ok", _SUBJECT, f"{ready.name}, not tested (--notify sends a test message)")
            continue
        notifier = Notifier([ready])
        words = "This is a test. No run started or ended, and no VM was changed."
        notifier.hear(event_line(TEST, None, simulated=False, words=words))
        notifier.wait()
        failed = notifier.failures()
        yield Diagnosis("FAIL" if failed else "ok", _SUBJECT, failed[0] if failed else f"{ready.name}: sent")
