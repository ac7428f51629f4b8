"""Several sites in one lab, and what their run has measured."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from vnuma.store import attempts, leases, runs
from vnuma.store.open import Store
from vnuma.store.samples import iter_samples


def write_sites(folder: Path, lab: LabHandle, **sites: str) -> Path:
    """The lab's inventory; `sites` are vnuma_site by the VM's name, with _ for -."""
    path = write_inventory(folder, lab)
    document = json.loads(path.read_text(encoding="utf-8"))
    hosts = document["all"]["children"]["vnuma_vms"]["hosts"]
    for name, site in sites.items():
        hosts[name.replace("_", "-")]["vnuma_site"] = site
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def samples_of(store: Store, run: str) -> list[int]:
    """For each VM of the run, the samples of its valid attempts."""
    with store.read() as connection:
        row = runs.get_run(connection, run)
        lines = attempts.lines_of_run(connection, row.id)
        vm_of = {line.id: line.vm_id for line in lines if line.outcome == "valid"}
        kept = [vm_of.get(item.attempt_id) for item in iter_samples(connection, row.id)]
        return [kept.count(vm.id) for vm in leases.vms_of_run(connection, row.id)]
