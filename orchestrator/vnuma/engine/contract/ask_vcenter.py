"""Check, with one VM, whether each assumption about vSphere is true of a vCenter or ESXi host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pyVmomi import vmodl

from vnuma.domain.contract.belief import (
    Answers,
    Belief,
    Beliefs,
    DiffersError,
    Judged,
    NotEvaluableError,
    Verdict,
    judged,
)
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.target import VmTarget
from vnuma.engine.contract.changing import NOTHING, ChangingOutcome, LeasedWriter, Say, on_the_clone
from vnuma.engine.preflight.permit import Permit
from vnuma.errors import InputError, Interrupted, LeaseLost, VCenterUnreachable, VnumaError
from vnuma.vsphere.connect import connect
from vnuma.vsphere.contract import off as off
from vnuma.vsphere.contract import on as on
from vnuma.vsphere.contract import server as server
from vnuma.vsphere.contract import vm as vm
from vnuma.vsphere.contract.asked import READING, WHILE_OFF, WHILE_ON, AskedVm, ChangedVm, KeyStays
from vnuma.vsphere.faults import NotNow, name_behind, unexpected
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.words.provenance import scenario_of

Consent = Callable[[VmFacts, str | None], None]
"""Called with the VM that is about to be changed and the lab's scenario; raises to refuse."""


def judge_vcenter(
    target: VmTarget, inventory: Path, *, consent: Consent, read_only: bool = False, say: Say = lambda _: None
) -> Answers:
    """Check every assumption on a VM's vCenter; those that change the VM, only on a test clone.

    `consent` is called before the first change, and `say` with each step. Raises what `connect` and `consent`
    raise, and VmNotFound. Whatever ends the changing part early is part of the answers: what `_still` raises,
    VmHeld, Interrupted, an unreachable vCenter, KeyStays, NotAtBaseline.
    """
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
        found = list(ask_all(READING, asked))
        why_not = "only questions that need no change were asked" if read_only else _why_not(target, vm.moid)
    if why_not:
        return Answers(of, NOTHING, (*found, *_unasked(0, why_not)), simulated)
    consent(vm, simulated)
    changed: list[Judged] = []

    def ask(writer: LeasedWriter, beliefs: Beliefs[ChangedVm]) -> None:
        for one in ask_all(beliefs, ChangedVm(writer.session, writer.ref, writer)):
            changed.append(one)

    try:
        outcome = on_the_clone(target, _still(target, vm), inventory, simulated, ask, say)
    except VnumaError as error:
        outcome = ChangingOutcome(NOTHING, error)
    rest = _unasked(len(changed), "not asked: it ended earlier")
    return Answers(of, outcome.leftover, (*found, *changed, *rest), simulated, outcome.error)


def _still(target: VmTarget, vm: VmFacts) -> VmFacts:
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


def _unasked(asked: int, why: str) -> list[Judged]:
    """The assumptions that need a change, except the first `asked`."""
    return [Judged(one.id, Verdict.NOT_EVALUABLE, why) for one in (*WHILE_OFF, *WHILE_ON)][asked:]


def _why_not(target: VmTarget, moid: str) -> str | None:
    """Why the VM must not be changed for this; None if it may be."""
    tagged = Permit().tagged(target, moid)
    if tagged.refusal:
        return "the VM lacks the vSphere tag that its inventory requires"
    return None if target.test_clone or tagged.permits else "the VM is not marked as a test clone"


def ask_all(beliefs: Iterable[Belief[Any]], asked: AskedVm) -> Iterator[Judged]:
    """Check each assumption in turn, whatever the outcome of those before it."""
    return (judged(one.id, partial(_look, one, asked), _nameless) for one in beliefs)


def _look(one: Belief[Any], asked: AskedVm) -> str:
    try:
        return one.look(asked)
    except (DiffersError, NotEvaluableError, VnumaError):
        raise
    except vmodl.MethodFault as fault:
        raise asked.session.translate(fault) or unexpected(fault, "vSphere") from fault
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # A missing property, or one of an unexpected type, wherever the assumption read it.
        raise DiffersError(f"an answer of an unexpected form ({type(error).__name__})") from error


def _nameless(error: VnumaError) -> str:
    """The error's type, by the vSphere fault's name where there is one; its text would name the server.

    Raises an error that ends the check: Ctrl-C, a lost lease, an unreachable vCenter, a key that stays.
    """
    away = isinstance(error, VCenterUnreachable) and not isinstance(error, NotNow)
    if away or isinstance(error, Interrupted | LeaseLost | KeyStays):
        raise error
    return name_behind(error)
