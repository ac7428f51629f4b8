"""Ask a vCenter or ESXi host for every belief about vSphere, with one VM."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from vnuma.contract.clone import NOTHING, Say, ask_clone
from vnuma.contract.suite import Answers, Judged, Verdict, ask, beliefs
from vnuma.contract.vm import AskedVm
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.target import Target
from vnuma.engine.preflight.findings import Permit
from vnuma.errors import InputError, VnumaError
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.words.provenance import scenario_of

Consent = Callable[[VmFacts, str | None], None]
"""Called with the VM that is about to be changed and the lab's scenario; raises to refuse."""


def ask_vcenter(
    target: Target, inventory: Path, *, consent: Consent, read_only: bool = False, say: Say = lambda _: None
) -> Answers:
    """Ask a VM's vCenter; what changes the VM, only of a test clone.

    `consent` is called before the first change, and `say` with each step. Raises what `connect` and `consent`
    raise, and VmNotFound. Whatever ends the changing part early is part of the answers: what `_still` raises,
    VmHeld, Interrupted, an unreachable vCenter, NotAtBaseline.
    """
    judged: list[Judged] = []
    with connect(vcenter(target)) as session:
        asked = AskedVm(session, find_vm(session, target.vm))
        vm = asked.vm()
        of: dict[str, object] = {
            "kind": "vcenter" if session.about.is_vcenter else "esxi",
            "api": session.about.api_version,
            "server": str(session.about.release),
            "hardware_version": vm.hardware_version,
        }
        simulated = scenario_of(session.about.name)
        ask("read", lambda: nullcontext(asked), asked.explain, judged)
    why_not = "only questions that need no change were asked" if read_only else _why_not(target, vm.moid)
    left, error = NOTHING, None
    if not why_not:
        consent(vm, simulated)
        try:
            left, error = ask_clone(target, _still(target, vm), inventory, simulated, judged, say)
        except VnumaError as refusal:
            error = refusal
    done = {one.id for one in judged}
    for one in (*beliefs("off"), *beliefs("on")):
        if one.id not in done:
            judged.append(Judged(one.id, Verdict.NOT_EVALUABLE, why_not or "not asked: it ended earlier"))
    return Answers(of, left, tuple(judged), simulated, error)


def _still(target: Target, vm: VmFacts) -> VmFacts:
    """Find the VM that was consented to again, since consent may take hours.

    Raises InputError when its name now means another VM, PreflightBlocked when it may no longer be changed,
    VmNotFound.
    """
    with connect(vcenter(target)) as session:
        now = read_vm(session, find_vm(session, target.vm))
    if now.key != vm.key:
        raise InputError(
            f"{target.vm} is no longer the VM that was to be changed: its instance UUID is "
            f"{now.instance_uuid}, not {vm.instance_uuid}.",
            fix="Correct vnuma_vm in the inventory if necessary, then run: vnuma contract --vcenter "
            f"{target.name}",
        )
    permit = Permit()
    permit.require(target.name, permit.tagged(target, now.moid), test_clone=target.test_clone)
    return now


def _why_not(target: Target, moid: str) -> str | None:
    """Why the VM must not be changed for this; None if it may be."""
    tagged = Permit().tagged(target, moid)
    if tagged.refusal:
        return "the VM lacks the vSphere tag that its inventory requires"
    return None if target.test_clone or tagged.permits else "the VM is not marked as a test clone"
