"""Runs written straight into a store through its own interface, as the engine writes them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sqlalchemy import Connection

from tests.support.stores import new_store
from tests.unit.analysis.data import G1_MS
from vnuma.domain.study.order import PlannedCell, plan_cells
from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.topology.prediction import HostShape, Prediction, predict
from vnuma.domain.topology.topology import Topology
from vnuma.report.model.model import LoadedRun
from vnuma.store import attempts, cells, facts, leases, runs, samples
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Claim, Outcome, RestoreOutcome, Run, RunState, Sample, Vm

START = datetime(2026, 11, 17, 20, 14, tzinfo=UTC)

BootMs = Callable[[str, int, int, str], float]
"""(label, block, size, form) -> the boot's median in ms."""

ARMS = ("1x16", "2x8", "4x4", "8x2", "16x1")
EFFECTS = {"1x16": 0.0, "2x8": 0.003, "4x4": 0.017, "8x2": 0.024, "16x1": 0.036}

STUDY = """\
name: {name}
title: Five topologies of a 16-vCPU SQL Server VM
vms: [{vms}]
vcpus: 16
reference: 1x16
arms: [1x16, 2x8, 4x4, 8x2, 16x1]
all_arms: {{affinity: physical_cores, memory_reservation: locked}}
design: {{blocks: {blocks}, seed: 7, order: {order}, a_a: {a_a}}}
workload: {{sizes: [{sizes}], forms: [{forms}]}}
published:
  title: Dakic 2019, Table 1
  source: DAAAM 2019
  elapsed_ms:
    500: {{1x16: 4994, 2x8: 5003, 4x4: 5017, 8x2: 5093, 16x1: 5130}}
    1000: {{1x16: 19354, 2x8: 19590, 4x4: 19906, 8x2: 19965, 16x1: 20350}}
    2000: {{1x16: 76592, 2x8: 76920, 4x4: 78152, 8x2: 78487, 16x1: 79324}}
"""


def study_text(
    name: str = "quick",
    *,
    vms: str = "sql16",
    blocks: int = 6,
    sizes: str = "500, 1000",
    forms: str = "client, server",
    order: str = "randomised",
    a_a: bool = True,
) -> str:
    """A study file for tests."""
    return STUDY.format(
        name=name, vms=vms, blocks=blocks, sizes=sizes, forms=forms, order=order, a_a=str(a_a).lower()
    )


@dataclass(frozen=True)
class Lost:
    """An attempt that gives no result."""

    outcome: Outcome = Outcome.FAILED
    reason: str = "tools_timeout"
    detail: str = "VMware Tools did not answer within 600 s."


@dataclass
class Story:
    """What happens in a run. `lost`: attempts before the valid one; `given_up`: cells without one."""

    text: str = field(default_factory=study_text)
    ms: BootMs | None = None
    scenario: str | None = "paper"
    esxi: str = "6.0.0 build 5050593"
    lost: Mapping[tuple[str, int], tuple[Lost, ...]] = field(default_factory=dict)
    given_up: frozenset[tuple[str, int]] = frozenset()
    stop_after: int | None = None
    state: RunState = RunState.FINISHED
    within_sd: float = 0.002
    host: str = "esx01"
    verified: Mapping[str, object] = field(default_factory=dict)
    preflight: tuple[dict[str, str], ...] = (
        {
            "id": "Q01",
            "severity": "warn",
            "what": "The first form streams rows to the client: most of its time is the client's.",
            "fix": "Read the server form beside it.",
        },
        {
            "id": "Q06",
            "severity": "warn",
            "what": "The tables' rows fit the processor's cache: distance to memory shows little.",
            "fix": "Say so when you quote the result.",
        },
    )


Load = Callable[[Story], LoadedRun]
"""Writes a story and loads it as reports do: the fixture `loaded`."""


@dataclass(frozen=True)
class Noisy:
    """Boot medians with seeded noise between boots. Equal ones give equal times, and make equal stories."""

    sd: float
    effects: Mapping[str, float]
    base: float = 19_350.0

    def __call__(self, label: str, block: int, size: int, form: str) -> float:
        """The boot's median in ms."""
        seed = zlib.crc32(f"{label}/{block}".encode())
        boot = float(np.random.default_rng(seed).normal(0.0, self.sd))
        per_size = float(np.random.default_rng(seed + size).normal(0.0, self.sd / 3))
        effect = self.effects.get(label.removesuffix(" (A/A)"), 0.0)
        share = {"client": 1.0, "server": 0.12, "into": 0.3}.get(form, 1.0)
        return self.base * share * (size / 1000) ** 2 * (1 + effect) * float(np.exp(boot + per_size))


@dataclass(frozen=True)
class Multiplied:
    """Boot medians times a factor: all of them, or those of one arm."""

    plain: Noisy
    factor: float
    only: str | None

    def __call__(self, label: str, block: int, size: int, form: str) -> float:
        """The boot's median in ms."""
        hit = self.only is None or label.removesuffix(" (A/A)") == self.only
        return self.plain(label, block, size, form) * (self.factor if hit else 1.0)


def noisy(sd: float = 0.004, effects: Mapping[str, float] = EFFECTS) -> Noisy:
    """The usual ones."""
    return Noisy(sd, effects)


def story(factor: float = 1.0, *, only: str | None = None, sd: float = 0.002, **changed: object) -> Story:
    """A run whose times, or those of one arm, are multiplied."""
    ms = Multiplied(noisy(sd), factor, only)
    return Story(**{"text": study_text(sizes="500", forms="client"), "ms": ms, **changed})  # type: ignore[arg-type]


def build(store: Store, story: Story | None = None) -> Run:
    """Write a whole run, in one unit of work: plan, boots, samples, facts, and the VM restored."""
    story = story or Story()
    study = parse_study(story.text, "study.yml")
    with store.write() as conn:
        saved = runs.save_study(conn, study.name, story.text)
        run = runs.create_run(conn, saved, seed=study.design.seed, inventory="inventory/hosts.yml")
        client = {"name": "FreeTDS", "kind": "freetds", "version": "1.3.17", "path": None}
        runs.set_origin(conn, run, simulated=story.scenario, driver=client)
        for index, name in enumerate(study.vms):
            _build_vm(conn, run, study, story, name, index)
        runs.set_run_state(conn, run.id, story.state)
        return runs.get_run(conn, run.name)


_WRITTEN: list[tuple[tuple[Story, ...], bytes]] = []
"""The files of stores that hold these runs alone."""


def store_of(path: Path, *stories: Story) -> Store:
    """A new SQLite store with these runs, in this order: a copy where equal ones were written before."""
    assert not path.exists()
    content = next((content for past, content in _WRITTEN if past == stories), None)
    if content is None:
        with TemporaryDirectory(prefix="vnuma-told-") as folder:
            written = Path(folder) / "vnuma.db"
            store = new_store(written)
            for one in stories:
                build(store, one)
            assert not written.with_name("vnuma.db-wal").exists()
            content = written.read_bytes()
        _WRITTEN.append((stories, content))
    path.write_bytes(content)
    return open_store(f"sqlite:///{path}")


def _build_vm(conn: Connection, run: Run, study: Study, story: Story, name: str, index: int) -> None:
    order = plan_cells(study, index)
    path = f"/DC1/vm/{name}"
    vm = leases.add_vm(conn, run.id, vm_key=f"vc/{name}", name=name, path=path, esxi_host=story.host)
    token = leases.take_lease(conn, vm.vm_key, run.id, "ops@ctl1")
    cells.save(conn, vm.id, token, {"settings": settings(4), "power": "poweredOn", "host": story.host})
    cells.add_cells(conn, vm.id, order)
    facts.add_vm_facts(conn, vm.id, "host", host_document(story))
    facts.add_vm_facts(conn, vm.id, "vm", vm_document(name))
    facts.add_vm_facts(conn, vm.id, "preflight", {item["id"]: item for item in story.preflight})
    for cell in order[: story.stop_after]:
        _run_cell(conn, run, study, story, vm, token, cell)
    if story.state is RunState.FINISHED:
        words = f"{name}: 31 of 31 settings read back equal, powered on"
        cells.set_restored(conn, vm.id, token, RestoreOutcome.RESTORED, {"words": words})


def _run_cell(
    conn: Connection, run: Run, study: Study, story: Story, vm: Vm, token: int, cell: PlannedCell
) -> None:
    key = (cell.label, cell.block)
    lost = story.lost.get(key, ())
    if key in story.given_up:
        lost = lost or (Lost(), Lost(), Lost())
    for attempt in lost:
        claim = _claim(conn, run, vm, token)
        samples.add_samples(conn, claim.id, token, list(_absurd(study)))
        attempts.finish(conn, claim.id, token, attempt.outcome, reason=attempt.reason, detail=attempt.detail)
    if key not in story.given_up:
        _write_boot(conn, study, story, _claim(conn, run, vm, token), token)


def _claim(conn: Connection, run: Run, vm: Vm, token: int) -> Claim:
    got = cells.claim_next(conn, vm.id, token, 3, exclusive_host=False)
    assert isinstance(got, Claim)
    return got


def _write_boot(conn: Any, study: Study, story: Story, claim: Claim, token: int) -> None:
    arm = study.arm(claim.arm)
    assert isinstance(arm.topology, Topology)
    prediction = predict_for(story, arm.topology.cores_per_socket)
    attempt = claim.id
    attempts.save_plan(
        conn,
        attempt,
        token,
        intended=arm.model_dump(mode="json"),
        change=[{"setting": "numCoresPerSocket", "before": 4, "after": arm.topology.cores_per_socket}],
        predicted={name: getattr(prediction, name) for name in PREDICTED},
    )
    plan = {
        **{"query_hash": "0x1", "query_plan_hash": "0x1", "degree_of_parallelism": 1},
        **{"execution_modes": ["Row"], "operators": [], "spools": [], "xml": "<ShowPlanXML/>"},
    }
    seen = {
        "boot": boot_document(),
        "dataset": dataset_document(),
        "plan": dict.fromkeys(study.workload.forms, plan),
        "memory": {"xtp_pages_kb": {"0": 40_960}},
        **({"workload": dict(story.verified)} if story.verified else {}),
    }
    attempts.save_effective(conn, attempt, token, effective_document(arm.topology.sockets, prediction), seen)
    samples.add_samples(conn, attempt, token, list(_samples(study, story, claim)))
    attempts.finish(conn, attempt, token, Outcome.VALID)


def _samples(study: Study, story: Story, claim: Claim) -> Any:
    ms = story.ms or noisy()
    moment = START + timedelta(minutes=30 * claim.position)
    for size in study.workload.sizes:
        for form in study.workload.forms:
            middle = ms(claim.label, claim.block, size, form)
            count, key = max(3, study.design.iterations), f"{claim.id}/{size}/{form}"
            timed = enumerate(_iterations(count, middle, story.within_sd, key), start=1)
            for iteration, warmup, value in [(1, True, middle * 1.1), *((n, False, ms) for n, ms in timed)]:
                moment += timedelta(seconds=1)
                network = 0.93 if form == "client" else 0.001
                measured = study.workload.metric(form).source == "value"
                yield Sample(
                    workload=study.workload.name,
                    size=size,
                    form=form,
                    iteration=iteration,
                    warmup=warmup,
                    at=moment,
                    cpu_ms=value * (1 - network),
                    elapsed_ms=30_000.0 if measured else value,
                    value=value if measured else None,
                    figures={item.name: value / 1000 for item in study.workload.figures} or None,
                    client_ms=value + 2,
                    rows=size * size,
                    waits={
                        "ASYNC_NETWORK_IO": {"tasks": 9, "wait_ms": round(value * network), "signal_ms": 0}
                    },
                )


def _absurd(study: Study) -> Iterator[Sample]:
    """What an attempt without a result has left: times that would spoil every figure they entered."""
    for size in study.workload.sizes:
        for form in study.workload.forms:
            yield Sample("cross_join", size, form, 1, False, START, cpu_ms=9e9, elapsed_ms=9e9, client_ms=9e9)


def _iterations(count: int, middle: float, sd: float, key: str) -> list[float]:
    """So many times in random order around `middle`, which is exactly the median of an odd number."""
    generator = np.random.default_rng(zlib.crc32(key.encode()))
    apart = np.abs(generator.normal(0.0, sd, count - 1)) * np.resize([-1.0, 1.0], count - 1)
    return [float(x) for x in generator.permutation([middle, *(middle * (1 + apart))])]


def predict_for(story: Story, cores_per_socket: int) -> Prediction:
    """What the rules predict on the test's host."""
    version = story.esxi.split()[0].split(".")
    host = HostShape((int(version[0]), int(version[1])), 2, 16, 2)
    return predict(host, settings(cores_per_socket), 11)


def settings(cores_per_socket: int) -> dict[str, Any]:
    """A VM's settings."""
    return {
        "numCPUs": 16,
        "numCoresPerSocket": cores_per_socket,
        "memoryMB": 65_536,
        "cpuAffinity": (),
        "memoryReservationLockedToMax": False,
        "memoryReservation": 0,
        "cpuHotAddEnabled": False,
        "numa.autosize.cookie": "160042",
    }


def effective_document(sockets: int, prediction: Prediction) -> dict[str, Any]:
    """What a boot showed: as predicted."""
    split = [
        (memory, min(8, size - at))
        for memory, size in enumerate(prediction.node_sizes)
        for at in range(0, size, 8)
    ]
    nodes = [
        {"node_id": number, "memory_node_id": memory, "online_schedulers": online, "state": "ONLINE"}
        for number, (memory, online) in enumerate(split)
    ]
    count, sizes = prediction.vnuma_nodes, list(prediction.node_sizes)
    return {
        "vsphere": settings(16 // sockets),
        "guest": {
            **{"vcpus": 16, "sockets": sockets, "cores_per_socket": 16 // sockets},
            **{"numa_nodes": count, "sql_cpu_nodes": len(nodes), "soft_numa": "ON", "nodes": nodes},
            **{"visible_online": 16, "visible_offline": 0, "memory_node_kb": {}, "xtp_pages_kb": {}},
        },
        "log": {
            **{"source": "host", "not_evaluated": None, "vnuma_nodes": count, "node_sizes": sizes},
            **{"physical_domains": count, "physical_sizes": sizes},
        },
        "mismatches": [],
        "not_evaluated": [],
    }


def host_document(story: Story) -> dict[str, Any]:
    """The host."""
    nodes = [{"id": n, "cpus": list(range(32 * n, 32 * n + 32)), "memory_mb": 98_304} for n in (0, 1)]
    return {
        **{"name": story.host, "esxi": story.esxi, "model": "HP ProLiant DL380 Gen9", "bios": "P89"},
        **{"cpu": "Intel(R) Xeon(R) CPU E5-2698 v3 @ 2.30GHz", "packages": 2, "cores": 32, "threads": 64},
        **{"memory_mb": 196_608, "numa_nodes": nodes},
    }


def vm_document(name: str) -> dict[str, Any]:
    """The VM before the run."""
    return {
        "name": name,
        "path": f"/DC1/vm/{name}",
        "hardware_version": 11,
        "guest": "Microsoft Windows Server 2016 (64-bit)",
        "power": "poweredOn",
        "settings": settings(4),
    }


def boot_document() -> dict[str, Any]:
    """SQL Server after a boot."""
    server = {
        **{"version": "15.0.4355.3", "version_text": "Microsoft SQL Server 2019 (RTM-CU25)"},
        **{"edition": "Developer Edition (64-bit)", "collation": "SQL_Latin1_General_CP1_CI_AS"},
        **{"max_dop": 0, "max_server_memory_mb": 57_344, "soft_numa": "ON", "memory_model": "LOCK_PAGES"},
        **{"cpu_count": 16, "scheduler_count": 16, "trace_flags": []},
    }
    ready = {"uptime_s": 61.0, "waited_s": 4.2, "attempts": 3, "quietness": {"quiet": True}}
    return {"server": server, "ready": ready}


def dataset_document() -> dict[str, Any]:
    """The dataset."""
    tables = {
        "Production.TransactionHistory": {"rows": 113_443, "checksum": 1234},
        "Sales.SalesOrderDetail": {"rows": 121_317, "checksum": 5678},
    }
    return {
        **{"database": "vnuma_study", "source": "generated", "durability": "SCHEMA_ONLY"},
        **{"generated": True, "changed": False, "tables": tables},
    }


LABELS = ("1x16", "1x16 (A/A)", *ARMS[1:])
PREDICTED = ("vnuma_nodes", "node_sizes", "alternatives", "sql_cpu_nodes", "confidence", "because")


def g1(label: str, block: int, size: int, form: str) -> float:
    """The golden example G1: boot medians in ms."""
    del size, form
    return float(G1_MS[block - 1][LABELS.index(label)])


GOLDEN_STORY = Story(text=study_text(sizes="2000", forms="client"), ms=g1)
