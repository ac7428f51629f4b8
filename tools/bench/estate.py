"""A whole estate: read in bulk or object by object, checked, written as a page, and from RVTools."""

from __future__ import annotations

import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from pyVmomi import vim

from tests.estate.workbooks import export, write
from tests.support.lab import LabHandle
from tools.bench.figure import Figure, limited, not_evaluated
from tools.bench.labs import running
from vnuma.domain.vm.estate import Estate
from vnuma.engine.design_check.check import CheckRequest, run_check
from vnuma.estate.rvtools import read_rvtools
from vnuma.report.check.as_page import as_page
from vnuma.vsphere.connect import Session, VCenter, connect
from vnuma.vsphere.estate import read_estate
from vnuma.vsphere.read import read_host, read_vm

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def estate(hosts: int, vms: int, one_by_one: int) -> Iterator[Figure]:
    """A fleet of that size; the slow way is measured on some VMs and scaled."""
    scenario = {"name": "estate", "esxi": {"version": "8.0.2"}, "fleet": {"hosts": hosts, "vms": vms}}
    what = f"{vms:,} VMs on {hosts} hosts"
    with running(scenario) as lab, connect(_vcenter(lab)) as session:
        found, bulk = _timed(lambda: read_estate(session))
        moids = [vm.facts.moid for vm in found.vms if vm.facts.host_moid][:one_by_one]
        alone = _each(session, moids, _facts) * vms
        attributes = _each(session, moids, _attributes) * vms
    scaled = f"on {len(moids)} VMs, scaled"
    yield limited(
        f"{what}: bulk read, against object by object",
        attributes / bulk,
        20,
        "x",
        digits=0,
        at_least=True,
        peer=f"{bulk:.1f} s against {attributes:.0f} s, attribute by attribute with pyVmomi ({scaled})",
        note=f"against one request for each VM and host, as the product reads one: {alone / bulk:.0f} x",
    )
    yield from _check(what, found, bulk)
    yield _changed(scenario, what)


def _changed(scenario: dict[str, Any], what: str) -> Figure:
    """Of VMs that have run, with the resulting extraConfig."""
    fleet = {**scenario["fleet"], "furnished": True}
    with running({**scenario, "fleet": fleet}) as lab, connect(_vcenter(lab)) as session:
        found, bulk = _timed(lambda: read_estate(session))
        changes, again = _timed(lambda: read_estate(session, earlier=_earlier(found)))
    return limited(
        f"{what}, 1% changed: read, against reading them all",
        100 * again / bulk,
        10,
        "%",
        peer=f"{again:.1f} s against {bulk:.1f} s",
        note=f"{changes.taken_over:,} VMs are found unchanged; hosts and clusters are read as ever",
    )


def _earlier(found: Estate) -> Estate:
    """An earlier reading in which every hundredth VM had another configuration."""
    vms = (
        vm if number % 100 else replace(vm, facts=replace(vm.facts, change_version="earlier"))
        for number, vm in enumerate(found.vms)
    )
    return replace(found, vms=tuple(vms))


def rvtools(vms: int) -> Iterator[Figure]:
    """An export with that many rows in each of its sheets on VMs."""
    with tempfile.TemporaryDirectory(prefix="vnuma-bench-") as folder:
        file = write(Path(folder) / "export.xlsx", export(vms=vms, hosts=300))
        found, seconds = _timed(lambda: read_rvtools(file))
    _, checked = _timed(lambda: run_check([found], CheckRequest()))
    note = f"and checked in another {checked:.1f} s"
    yield limited(f"RVTools export, {vms:,} rows: read", seconds, 15, "s", note=note)


def _check(what: str, found: Estate, bulk: float) -> Iterator[Figure]:
    before = _peak_mb()
    began = time.process_time()
    result, seconds = _timed(lambda: run_check([found], CheckRequest()))
    cpu = time.process_time() - began
    took = f"{len(result.rules)} rules, {seconds:.1f} s by the clock; {_peak_mb() - before:.0f} MB more"
    yield limited(f"{what}: all rules evaluated, CPU time", cpu, 3, "s", note=took)
    yield limited(f"{what}: peak memory of reading and checking", _peak_mb(), 500, "MB", digits=0)
    page, writing = _timed(lambda: as_page(result))
    whole = (bulk + seconds + writing) / bulk
    parts = f"read {bulk:.1f} s, check {seconds:.1f} s, page {writing:.1f} s"
    yield limited(f"{what}: whole check to an HTML page, against the bulk read", whole, 1.5, "x", note=parts)
    yield from _opened(what, page)


def _opened(what: str, page: str) -> Iterator[Figure]:
    name = f"{what}: the page opens in a browser"
    program = next((path for known in BROWSERS if (path := shutil.which(known))), None)
    if program is None:
        yield not_evaluated(name, "< 2 s", "No Chromium or Chrome on this machine.")
        return
    with tempfile.TemporaryDirectory(prefix="vnuma-bench-") as folder, sync_playwright() as driver:
        file = Path(folder) / "check.html"
        file.write_text(page, encoding="utf-8")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page()
        tab.goto("about:blank")
        began = time.perf_counter()
        tab.goto(file.as_uri())
        tab.locator("#rows > details").first.wait_for()
        seconds = time.perf_counter() - began
        browser.close()
    note = f"{len(page) / 1e6:.1f} MB, to the first page of the list"
    yield limited(name, seconds, 2, "s", note=note)


def _each(session: Session, moids: Sequence[str], read: Callable[[Session, str], object]) -> float:
    """Seconds for one VM."""
    _, seconds = _timed(lambda: [read(session, moid) for moid in moids])
    return seconds / len(moids)


def _facts(session: Session, moid: str) -> None:
    """A VM and its host, each in one request."""
    facts = read_vm(session, session.vm(moid))
    read_host(session, session.host(facts.host_moid))


def _attributes(session: Session, moid: str) -> None:
    """The same facts read as a script does: attribute by attribute, object by object."""
    vm = session.vm(moid)
    host: Any = vm.runtime.host
    seen = [vm.name, vm.guest, vm.config, host.name, host.hardware, host.summary, host.parent.name]
    if isinstance(host.parent, vim.ClusterComputeResource):
        seen.append(host.parent.configurationEx)
    place: Any = vm.parent
    while isinstance(place, vim.Folder):
        seen.append(place.name)
        place = place.parent


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    made = work()
    return made, time.perf_counter() - began


def _peak_mb() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _vcenter(lab: LabHandle) -> VCenter:
    end = lab.vcenter
    return VCenter(end.host, end.user, end.password, port=end.port, ca_file=str(end.ca_file), timeout_s=120)
