"""A cell that a mesh's node measures, with its store through the mesh, against one of the controller's own.

And how long the node takes to begin its first.

Both kinds of run take turns on one lab and one store, in pairs whose order alternates. Controller and node
are real daemons on loopback.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import pytest

from tests.support import postgresql
from tests.support.mesh import mesh_of
from tests.support.postgresql import database_of
from tests.support.receptor import find_receptor, free_port
from tools.bench import cells
from tools.bench.figure import Figure, below, not_evaluated, spread
from tools.bench.labs import BenchLab, running
from vnuma.store import attempts, runs, sites
from vnuma.store.open import open_store

LIMIT_S = 0.05
BEGUN_S = 8.0
NODE = "site-b"
SECRET = "VNUMA_BENCH_PASSWORD"


def mesh_store(blocks: int, pairs: int) -> Iterator[Figure]:
    """So many pairs of runs of two cells a block; each pair's difference of median overheads of a cell."""
    what, target = (
        "A cell at a node, store through the mesh, beyond one at the controller",
        f"< {LIMIT_S:g} s",
    )
    binaries = postgresql.find_binaries()
    try:
        find_receptor()
    except pytest.skip.Exception as missing:
        yield not_evaluated(what, target, str(missing))
        return
    if binaries is None:
        yield not_evaluated(what, target, "No PostgreSQL server on this machine.")
        return
    took: dict[str, list[float]] = {"here": [], "node": []}
    begun_s: list[float] = []
    with ExitStack() as started:
        base = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="mesh-")))  # a short path
        server = postgresql.start(binaries, free_port())
        started.callback(server.stop)
        lab = started.enter_context(running(cells.scenario(1)))
        url = server.new_store()
        password = lab.state.password_file.read_text(encoding="utf-8").strip()
        through = f"postgresql://owner@127.0.0.1:{server.port + 1}/{database_of(url)}"
        node = {SECRET: password, "VNUMA_STORE": through, "VNUMA_HOME": str(base / "node")}
        mesh = mesh_of(lab.folder / "mesh", {NODE: node}, store=f"127.0.0.1:{server.port}")
        started.enter_context(mesh)
        hosts = {kind: _inventory(lab, kind, more) for kind, more in _KINDS.items()}
        extra = {"VNUMA_STORE": url, SECRET: password}
        for kind, file in hosts.items():
            cells.median_overhead(lab, extra, f"first-{kind}", 1, file)  # what only a first run does
        for pair in range(pairs):
            for kind in sorted(hosts, reverse=bool(pair % 2)):
                took[kind].append(cells.median_overhead(lab, extra, f"{kind}{pair}", blocks, hosts[kind]))
            begun_s.append(_begun_s(url, f"node{pair}.1"))
            print(f"pair {pair + 1}: {took['node'][-1]:.2f} against {took['here'][-1]:.2f} s", flush=True)
    more_s = [there - here for there, here in zip(took["node"], took["here"], strict=True)]
    yield Figure(
        what,
        f"{median(more_s):.2f} s",
        peer=f"{spread(took['node'], unit='s')} against {spread(took['here'], unit='s')} a cell",
        target=target,
        verdict="met" if median(more_s) < LIMIT_S else "not met",
        note=f"{pairs} pairs of runs of {2 * blocks} cells: {spread(more_s)} s; daemons, server and lab on "
        "one machine",
    )
    begun = below("From submitting a node's work to its first cell", median(begun_s), BEGUN_S, "s", 1)
    yield begun.noting(
        f"{pairs} runs: {spread(begun_s, 1)} s; the node's process, vCenter, the baseline, and its play"
    )


def _begun_s(url: str, name: str) -> float:
    """Seconds from the submission of the node's work unit to its first claim of a cell."""
    with open_store(url, create=False).read() as connection:
        run = runs.get_run(connection, name)
        (site,) = sites.sites_of_run(connection, run.id)
        first = attempts.lines_of_run(connection, run.id)[0].started_at
    return (first - site.unit_at).total_seconds() if site.unit_at else math.nan


_KINDS: Mapping[str, Mapping[str, object]] = {"here": {}, "node": {"vnuma_node": NODE}}


def _inventory(lab: BenchLab, kind: str, more: Mapping[str, object]) -> Path:
    state, sql, secret = lab.state, lab.state.vms[0], {"env": SECRET}
    authority = str(state.ca_file)
    host = {
        "vnuma_vm": sql.path,
        "vnuma_test_clone": True,
        "vnuma_vcenter": {
            **{"host": state.host, "port": state.port, "user": state.user},
            **{"password": secret, "ca_file": authority},
        },
        "vnuma_sql": {
            **{"host": sql.sql_host, "port": sql.sql_port, "user": sql.sql_user},
            **{"password": secret, "ca_file": authority},
        },
        **more,
    }
    file = lab.folder / f"{kind}.yml"
    file.write_text(json.dumps({"all": {"hosts": {"vm1": host}}}), encoding="utf-8")  # JSON is YAML
    return file
