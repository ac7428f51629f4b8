"""Rules on the cost of a pinned VM: moves, maintenance, and how to undo it."""

from __future__ import annotations

from vnuma.checks.facts import Facts, known
from vnuma.checks.finding import Fix, Severity
from vnuma.checks.rule import Fail, rule
from vnuma.checks.rules import sources
from vnuma.checks.rules.shape_questions import UNPIN, pinned


@rule(
    "A01",
    Severity.BLOCK,
    "DRS may move a pinned VM",
    condition=(
        "CPU affinity is set, or the VM is under study, in a cluster with DRS on; a warning if the "
        "VM's own DRS level is Disabled"
    ),
    consequence="A list of CPUs is valid for one host only. DRS may place the VM elsewhere at any power-on; "
    "vSphere hides the setting for VMs in a DRS cluster.",
    fix="Use a host outside DRS, or set the VM's DRS level to Disabled.",
    sources=(
        sources.AFFINITY_8,
        "https://github.com/ansible-collections/community.vmware/issues/2338",
    ),
    reads="vm cluster",
    related=("A02",),
)
def a01(facts: Facts) -> Fail | None:
    if not (facts.affinity or facts.studied) or not known(facts.cluster.drs_enabled, "the cluster's DRS"):
        return None
    kept = facts.vm.drs_override == "disabled"
    if kept and not facts.affinity:
        return None
    return Fail(
        {
            "DRS": f"on in {facts.cluster.name}",
            "DRS level of the VM": facts.vm.drs_override or "as the cluster",
            "cpuAffinity": pinned(facts) or "none",
        },
        Fix(f"Set the DRS level of {facts.vm.name} to Disabled (Host.Inventory.EditCluster)."),
        severity=Severity.WARN if kept else None,
    )


@rule(
    "A02",
    Severity.BLOCK,
    "A pinned VM cannot be moved while it runs",
    condition="CPU affinity is set",
    consequence="vMotion fails with AffinityConfigured, so its host cannot enter maintenance mode without a "
    "shutdown.",
    fix="Clear the affinity before the VM returns to service; a study restores it automatically.",
    sources=(
        "https://developer.broadcom.com/xapis/vsphere-web-services-api/8.0U3/vim.fault.AffinityConfigured.html",
    ),
    reads="vm",
    in_study=Severity.INFO,
    related=("A01", "A11"),
)
def a02(facts: Facts) -> Fail | None:
    return Fail({"cpuAffinity": pinned(facts)}, UNPIN) if facts.affinity else None


@rule(
    "A11",
    Severity.INFO,
    "Clearing affinity needs an empty list",
    condition="CPU affinity is set, so somebody will have to clear it",
    consequence="A null affinitySet leaves the affinity unchanged; only an empty list removes it.",
    fix="Send cpuAffinity.affinitySet = [] (vnuma restore does).",
    sources=(sources.AFFINITY_API,),
    reads="vm",
    related=("A02",),
)
def a11(facts: Facts) -> Fail | None:
    return Fail({"cpuAffinity": pinned(facts)}, UNPIN) if facts.affinity else None
