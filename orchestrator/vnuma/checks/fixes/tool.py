"""The tools for which fixes can be written; Ansible's are variables of this collection's role vm_topology."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum

from vnuma.checks.fixes.govc import govc
from vnuma.checks.fixes.powercli import powercli
from vnuma.checks.fixes.terraform import terraform
from vnuma.checks.fixes.wording import Target, Written, in_comment
from vnuma.checks.rule import Finding, Fix

_NO_ARM = "the role vm_topology has no variable for it"


def ansible(fix: Fix, _target: Target) -> Written:
    """Variables for the VM's host_vars, as YAML (JSON is YAML); the role shuts the guest down."""
    lines = tuple(f"{name}: {json.dumps(value)}" for name, value in fix.ansible.items())
    left_out = {} if lines else {edit.setting: _NO_ARM for edit in fix.change}
    return Written(lines, left_out, shuts_down=True)


class Tool(StrEnum):
    """A tool that changes VMs."""

    TERRAFORM = "terraform"
    ANSIBLE = "ansible"
    POWERCLI = "powercli"
    GOVC = "govc"

    @property
    def label(self) -> str:
        """Its display name."""
        return _LABELS[self]


_LABELS = {
    Tool.TERRAFORM: "Terraform",
    Tool.ANSIBLE: "Ansible",
    Tool.POWERCLI: "PowerCLI",
    Tool.GOVC: "govc",
}

_WRITERS: Mapping[Tool, Callable[[Fix, Target], Written]] = {
    Tool.TERRAFORM: terraform,
    Tool.ANSIBLE: ansible,
    Tool.POWERCLI: powercli,
    Tool.GOVC: govc,
}


def fix_as(tool: Tool, fix: Fix, target: Target) -> str:
    """The fix as lines to paste; empty if it changes no setting of a VM. All tools use # for comments."""
    if not fix.change:
        return ""
    written = _WRITERS[tool](fix, target)
    lines = list(written.lines)
    if lines and fix.change.needs_power_off:
        lines.insert(
            0, f"# {'The VM is shut down for this' if written.shuts_down else 'Power the VM off first'}."
        )
    lines += [f"# {in_comment(name)}: {why}." for name, why in written.left_out.items()]
    return "\n".join(lines)


def fix_in_tools(finding: Finding, target: Target | None = None) -> dict[Tool, str]:
    """A VM's fix by tool; empty if it changes no setting of a VM."""
    if finding.kind != "vm" or not finding.fix.change:
        return {}
    target = target or Target.of(finding)
    return {tool: fix_as(tool, finding.fix, target) for tool in Tool}
