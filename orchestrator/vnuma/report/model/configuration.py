"""Hardware and software of a run, which decide whether another run may be compared with it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from vnuma.report.model.guest import guest_of, guest_pairs
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.trust import plan_check
from vnuma.store.facts import CLIENT
from vnuma.store.rows import Outcome, Vm
from vnuma.words.bounded_json import mapping
from vnuma.words.plain_text import counted
from vnuma.words.provenance import measured_on

Pairs = list[tuple[str, str]]

UNKNOWN = "not known"

_STAGES = {
    "shutdown": "Shutting down, reconfiguring",
    "power_on": "From power-on to running Tools",
    "guest_ready": "Until the guest is ready and quiet",
    "dataset": "Making or verifying the data",
    "measure": "Measuring",
}
"""The stages of a cell in order, with their display names."""


def configuration(loaded: LoadedRun, vm: Vm) -> list[tuple[str, Pairs]]:
    """Groups of (name, value) for each part that the target has, each value with its unit."""
    needs, shapes = loaded.study.workload.needs, loaded.study.shapes
    groups = [
        ("Host", shapes, _host),
        ("VM before the run", shapes, _vm),
        ("Guest" if shapes else "Machine", bool(guest_of(loaded, vm)), guest_pairs),
        ("SQL Server", "sql_server" in needs, _server),
        ("Timed executions", "database" in needs, _executions),
        ("Time of a cell", shapes, _time_of_a_cell),
        ("Dataset", "database" in needs, _dataset),
        ("Client", "database" in needs, _client),
    ]
    shown = [(name, pairs(loaded, vm)) for name, has, pairs in groups if has]
    return [*shown, ("Product and study", _product(loaded))]


def settings_rows(loaded: LoadedRun, vm: Vm) -> list[tuple[str, str, str]]:
    """Every setting that the run changed on this VM: its name, its first value, and those during the run."""
    before: dict[str, object] = {}
    during: dict[str, dict[str, None]] = {}
    for attempt in loaded.attempts_of(vm):
        for edit in attempt.change if isinstance(attempt.change, list) else []:
            before.setdefault(edit["setting"], edit["before"])
            during.setdefault(edit["setting"], {})[shown(edit["after"])] = None
    return [(name, shown(before.get(name)), "; ".join(values)) for name, values in sorted(during.items())]


def shown(value: object) -> str:
    """A setting's value as text; `none` if unset."""
    if value is None or value in ([], ()):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _host(loaded: LoadedRun, vm: Vm) -> Pairs:
    host = loaded.vm_facts(vm, "host")
    nodes = host.get("numa_nodes") or []
    threads, cores = host.get("threads"), host.get("cores")
    estimated = " (memory estimated)" if host.get("node_memory_estimated") else ""
    return [
        ("Name", shown(host.get("name", vm.esxi_host))),
        ("ESXi", _text(host, "esxi")),
        ("Model", _text(host, "model")),
        ("Processors", f"{_text(host, 'packages')} x {_text(host, 'cpu')}"),
        ("Cores", f"{cores} cores, {threads} logical CPUs" if cores and threads else UNKNOWN),
        ("NUMA nodes of the host", (", ".join(_node(node) for node in nodes) or UNKNOWN) + estimated),
        ("Memory", _megabytes(host.get("memory_mb"))),
        ("BIOS", _text(host, "bios")),
    ]


def _node(node: Mapping[str, Any]) -> str:
    return f"node {node['id']}: {counted(len(node['cpus']), 'logical CPU')}, {_megabytes(node['memory_mb'])}"


def _vm(loaded: LoadedRun, vm: Vm) -> Pairs:
    facts = loaded.vm_facts(vm, "vm")
    settings: Mapping[str, Any] = facts.get("settings") or {}
    return [
        ("Path", vm.path),
        ("Hardware version", f"vmx-{_text(facts, 'hardware_version')}"),
        ("Guest", _text(facts, "guest")),
        ("Power state", _text(facts, "power")),
        ("vCPUs", f"{_text(settings, 'numCPUs')}, {_text(settings, 'numCoresPerSocket')} cores per socket"),
        ("Memory", _megabytes(settings.get("memoryMB"))),
        ("Memory reservation", _megabytes(settings.get("memoryReservation"))),
        ("CPU affinity", shown(settings.get("cpuAffinity"))),
        ("CPU hot-add", shown(settings.get("cpuHotAddEnabled"))),
    ]


def _server(loaded: LoadedRun, vm: Vm) -> Pairs:
    servers = list(loaded.attempt_facts(vm, "boot", "server").values())
    hints = ", ".join(str(n) if n else "the server's own" for n in loaded.study.maxdops)
    has_statements = "database" in loaded.study.workload.needs
    return [
        ("Version", _each(servers, "version")),
        ("Edition", _each(servers, "edition")),
        ("Full version", _each(servers, "version_text")),
        ("Collation", _each(servers, "collation")),
        ("Schedulers", _each(servers, "scheduler_count")),
        *([("MAXDOP in every statement", hints)] if has_statements else []),
        ("MAXDOP of the server", _each(servers, "max_dop")),
        ("max server memory", _each(servers, "max_server_memory_mb", " MB")),
        ("Automatic soft-NUMA", _each(servers, "soft_numa")),
        ("Memory model", _each(servers, "memory_model")),
        ("Trace flags", _each(servers, "trace_flags")),
    ]


def _executions(loaded: LoadedRun, vm: Vm) -> Pairs:
    """How the timed iterations ran, by form; unknown for a run of an older version."""
    known = {item.form: item.words for item in loaded.executions if item.vm == vm.name}
    waited = {item.form: item.words for item in loaded.waits if item.vm == vm.name}
    forms = loaded.study.workload.forms
    return [
        *((f"Form {form}", known.get(form, UNKNOWN)) for form in forms),
        *((f"Waits of form {form}", waited.get(form, UNKNOWN)) for form in forms),
    ]


def _time_of_a_cell(loaded: LoadedRun, vm: Vm) -> Pairs:
    """Where the time goes: the median of each stage over the valid cells."""
    spent: dict[str, list[float]] = {}
    for attempt in loaded.attempts_of(vm, Outcome.VALID):
        for stage, seconds in mapping(attempt.timings).items():
            if stage != "claim":
                spent.setdefault(stage, []).append(seconds)
    return [
        (
            _STAGES.get(stage, stage),
            f"{statistics.median(every):.1f} s, median of {counted(len(every), 'cell')}",
        )
        for stage, every in spent.items()
    ] or [("Stages", UNKNOWN)]


def _dataset(loaded: LoadedRun, vm: Vm) -> Pairs:
    wanted = loaded.study.dataset
    tables = list(loaded.attempt_facts(vm, "dataset", "tables").values())
    pairs = [("Database", wanted.database), ("Source", wanted.source)]
    for name in sorted(tables[-1]) if tables else ():
        known = [item.get(name) for item in tables]
        texts = dict.fromkeys(f"{item['rows']:,} rows, checksum {item['checksum']}" for item in known if item)
        pairs.append((name, "; ".join(texts)))
    return pairs if tables else [*pairs, ("Tables", UNKNOWN)]


def _client(loaded: LoadedRun, vm: Vm) -> Pairs:
    """The site that called the VM's SQL Server, if it was not the controller."""
    driver = loaded.vm_facts(vm, CLIENT) or mapping(loaded.run.driver)
    return [
        *([("Called from", f"site {vm.site}")] if vm.site else []),
        ("ODBC driver", shown(driver.get("name"))),
        ("Kind", shown(driver.get("kind"))),
        ("Version", shown(driver.get("version") or None) if driver.get("version") else UNKNOWN),
        ("Encrypted", shown(driver.get("encryption"))),
    ]


def _product(loaded: LoadedRun) -> Pairs:
    run = loaded.run
    finished = f"{run.finished_at:%Y-%m-%d %H:%M} UTC" if run.finished_at else "not yet"
    return [
        ("vnuma", run.product_version),
        ("Run", f"{run.name}, begun {run.created_at:%Y-%m-%d %H:%M} UTC, ended {finished}, {run.state}"),
        ("Change ticket", run.ticket or "none"),
        ("Seed of the order", str(run.seed)),
        ("Study file, SHA-256", loaded.study_sha256),
        ("Declared plan", plan_check(loaded).words),
        ("Measured on", measured_on(run.simulated)),
    ]


def _text(facts: Mapping[str, Any], key: str) -> str:
    value = facts.get(key)
    return UNKNOWN if value in (None, "") else shown(value)


def _each(documents: Iterable[Mapping[str, Any]], key: str, unit: str = "") -> str:
    """The value of every boot, or all distinct values."""
    values = sorted({_text(item, key) for item in documents})
    if not values:
        return UNKNOWN
    texts = [
        f"{int(value):,}{unit}" if unit and value.isdecimal() and len(value) <= 18 else value
        for value in values
    ]
    return texts[0] if len(texts) == 1 else f"differs between boots: {'; '.join(texts)}"


def _megabytes(value: object) -> str:
    return f"{value:,} MB" if isinstance(value, int) else UNKNOWN
