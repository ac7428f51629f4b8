"""A booted guest that is reached by its shell: when it is ready, whose it is, and what it sees."""

from __future__ import annotations

from functools import partial

from vnuma.domain.topology.evidence import LogEvidence
from vnuma.domain.vm.linux import same_uuid
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.guest_shell import answering, facts_of
from vnuma.engine.cell.booted import GuestView, VsphereView
from vnuma.engine.lease.vcenter_retry import refuse_if_stopped
from vnuma.errors import WrongServer
from vnuma.workloads.shell import linux_question


def shell_ready(context: VmContext, looked: VsphereView) -> GuestView:
    """Wait until the guest answers, and prove by its firmware's UUID that it is the VM's.

    Raises MachineUnreachable at the deadline, WrongServer for another machine's shell, Interrupted.
    """
    name, deadline_s = context.vm.name, context.study.power.sql_timeout_s
    heed = partial(refuse_if_stopped, context, "It waited for the guest.")
    seen = facts_of(name, answering(context.shell(), deadline_s, heed).run(linux_question("/")))
    if not same_uuid(seen.uuid, looked.bios_uuid):
        raise WrongServer(
            f"Ansible's connection to {name} reaches another machine: its firmware shows the UUID "
            f"{seen.uuid or 'none'}, the VM has {looked.bios_uuid}. Nothing was written to it.",
            fix="Correct ansible_host in the inventory.",
        )
    why_not = looked.log.why_not or "it is read only beside SQL Server's view"
    return GuestView(seen.topology, {"linux": seen.kernel}, None, LogEvidence(why_not=why_not))
