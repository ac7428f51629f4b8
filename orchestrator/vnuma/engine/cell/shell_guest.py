"""A booted guest that is reached by its shell: when it is ready, whose it is, and what it sees."""

from __future__ import annotations

from functools import partial

from vnuma.domain.vm.linux import LinuxFacts, same_uuid
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.guest_shell import answering, facts_of
from vnuma.engine.access.target import UNSHAPED
from vnuma.engine.cell.booted import GuestView, VsphereView, log_of
from vnuma.engine.lease.attempt import Attempt, add_facts
from vnuma.engine.lease.vcenter_retry import refuse_if_stopped
from vnuma.errors import WrongServer
from vnuma.store import facts
from vnuma.store.rows import Vm
from vnuma.workloads.shell import Shell, linux_question

PROOF = "guest_identity"
"""Fact of an attempt: the firmware's UUID by which the guest was proven to be the VM's."""


def shell_ready(context: VmContext, attempt: Attempt, looked: VsphereView) -> GuestView:
    """Wait until the guest answers, and prove by its firmware's UUID that it is the VM's.

    Raises MachineUnreachable at the deadline, WrongServer for another machine's shell, Interrupted.
    """
    heed = partial(refuse_if_stopped, context, "It waited for the guest.")
    shell = answering(context.shell(), context.study.power.sql_timeout_s, heed)
    seen = proven_guest(context.vm, shell, looked.bios_uuid)
    add_facts(context, attempt, PROOF, {"uuid": looked.bios_uuid})
    proven = log_of(context, attempt, looked, seen.topology)
    return GuestView(seen.topology, {"linux": seen.kernel}, None, proven)


def proven_guest(vm: Vm, shell: Shell, bios_uuid: str | None) -> LinuxFacts:
    """What the shell's machine says of itself.

    Raises WrongServer unless it is the VM with that firmware; or, where nothing boots it, the machine that
    the run began with.
    """
    seen = facts_of(vm.name, shell.run(linux_question("/")))
    if bios_uuid is None:
        shown, wanted = seen.identity, vm.vm_key.removeprefix(UNSHAPED)
        same = shown == wanted
    else:
        shown, wanted = seen.uuid, bios_uuid
        same = same_uuid(shown, wanted)
    if same:
        return seen
    raise WrongServer(
        f"Ansible's connection to {vm.name} reaches another machine: it identifies itself as "
        f"{shown or 'nothing'}, not as {wanted}. Nothing was written to it.",
        fix="Correct ansible_host in the inventory.",
    )


def proven_uuid(context: VmContext) -> str | None:
    """The UUID by which this run has proven the VM's guest; None where it never did, and wrote nothing."""
    run, vm = context.run, context.vm
    fact = context.store.ask(lambda read: facts.last_of_vm(read, run.id, vm.vm_key, PROOF))
    return str(fact.value) if fact else None
