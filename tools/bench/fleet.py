"""Many VMs on many hosts in one run: memory and wall time; and one power-cycle alone, in process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from tools.bench import processes
from tools.bench.figure import Figure, below, not_evaluated, spread
from tools.bench.labs import NO_DELAYS, running
from vnuma.domain.vm.change import change_to
from vnuma.vsphere import apply, power, read
from vnuma.vsphere.connect import VCenter, connect

TIMEOUT_S = 1800


def fleet(hosts: int, vms: int) -> Iterator[Figure]:
    """One cell for each VM, under one `vnuma run`; VMs are dealt to the hosts in turn."""
    what, target = f"{vms} VMs on {hosts} hosts, one run, short cells", 4096.0
    if not processes.available():
        yield not_evaluated(f"{what}: memory", f"< {target:g} MB", "Read from /proc, which only Linux has.")
        return
    with running(_scenario(hosts, vms)) as lab:
        began = time.perf_counter()
        process = lab.run_study(_study(vms))
        try:
            with processes.watched(os.getpid(), 2.0, proportional=True) as memory:
                code = process.wait(timeout=TIMEOUT_S)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        seconds = time.perf_counter() - began
        if code:
            said = lab.log.read_text(encoding="utf-8")[-2000:]
            raise RuntimeError(f"vnuma run ended with {code}:\n{said}")
    yield below(f"{what}: memory", memory.proportional, target, "MB", digits=0).noting(
        f"peak PSS of engine, play and workers, {memory.processes} processes"
    )
    yield Figure(
        f"{what}: wall time",
        f"{seconds:.0f} s",
        note=f"{vms} cells, from the command to the last VM put back: {seconds / vms:.2f} s a VM",
    )


def cycle(rounds: int) -> Iterator[Figure]:
    """Shut down, reconfigure, power on, wait for Tools: on a lab where none of it takes time."""
    took = []
    with running({"name": "bench", "boot": NO_DELAYS}) as lab:
        state = lab.state
        password = state.password_file.read_text(encoding="utf-8").strip()
        target = VCenter(
            host=state.host,
            port=state.port,
            user=state.user,
            password=password,
            ca_file=str(state.ca_file),
        )
        with connect(target) as session:
            ref = read.find_vm(session, "sql16")
            for number in range(rounds):
                began = time.perf_counter()
                power.shut_down(session, ref, timeout_s=60)
                seen = read.read_vm(session, ref)
                wanted = change_to(seen.settings, {"numCoresPerSocket": (4, 8)[number % 2 == 0]})
                apply.reconfigure(session, ref, wanted, seen=seen)
                power.power_on(session, ref, host_moid=seen.host_moid)
                power.wait_for_guest(session, ref, timeout_s=60)
                took.append(time.perf_counter() - began)
    yield below("Reconfigure and power-cycle, in process", median(took), 0.2, "s").noting(
        f"{rounds} rounds: {spread(took, unit='s')}; the lab's tasks and boot take no time"
    )


def _scenario(hosts: int, vms: int) -> dict[str, Any]:
    return {
        "name": "bench",
        "boot": NO_DELAYS,
        "hosts": [{"name": f"esx{number:03}", "memory_gb": 256} for number in range(hosts)],
        "vms": [
            {"name": f"vm{number:04}", "host": f"esx{number % hosts:03}", "memory_gb": 16}
            for number in range(vms)
        ],
    }


def _study(vms: int) -> dict[str, Any]:
    return {
        "name": "fleet",
        "vms": [f"vm{number:04}" for number in range(vms)],
        "vcpus": 16,
        "reference": "2x8",
        "arms": ["2x8"],
        "design": {"blocks": 1, "a_a": False, "warmups": 0, "iterations": 1},
        "workload": {"sizes": [20], "forms": ["client"]},
        "dataset": {"transaction_history_rows": 200, "sales_order_detail_rows": 200},
        "quiet": {"for_s": 0},
    }
