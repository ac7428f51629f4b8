"""A rule's fix for the reader's tool: PowerCLI, govc, Terraform, and Ansible's role vm_topology (pure)."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vnuma.checks.rule import Finding, Fix
from vnuma.domain.vm.setting import AUTOMATIC, TYPED, Value, ValueKind, is_extra_config, meant

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)


@dataclass(frozen=True)
class Target:
    """The VM to change, by its instance UUID if it has one, else by name."""

    name: str
    uuid: str = ""

    @staticmethod
    def of(finding: Finding) -> Target:
        """The VM of a finding. A design's VM, or an export's without UUIDs, has only its name."""
        return Target.of_key(finding.vm, finding.vm_key)

    @staticmethod
    def of_key(name: str, key: str) -> Target:
        """A VM by its name and key."""
        last = key.rpartition("/")[2]
        return Target(name, last if _UUID.fullmatch(last) else "")


@dataclass(frozen=True)
class Written:
    """Lines for a tool, and settings that it cannot change, each with the reason."""

    lines: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    shuts_down: bool = False
    """Whether the tool shuts the VM down itself for settings that require it."""


def as_text(value: Value) -> str:
    """A value for extraConfig or a command line."""
    if isinstance(value, bool):
        return str(value).upper()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def in_comment(text: str) -> str:
    """The text on one line, so that it can neither end a comment nor control a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


_SPEC = "$spec = New-Object VMware.Vim.VirtualMachineConfigSpec"
_APPLY = "if ($vm.Count -eq 1) { $vm[0].ReconfigVM($spec) } else { throw 'This is not exactly one VM.' }"


def powercli(fix: Fix, target: Target) -> Written:
    """Lines that find exactly one VM and reconfigure it by one spec, since cmdlets cover only some settings.

    https://developer.broadcom.com/powercli/latest/vmware.vimautomation.core/commands/get-view and
    https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_quoting_rules
    """
    edits = {edit.setting: meant(edit.setting, edit.after) for edit in fix.change}
    if not edits:
        return Written()
    typed = {name: value for name, value in edits.items() if not is_extra_config(name)}
    lines = [_found(target), _SPEC]
    lines += [_typed(name, value) for name, value in _with_vcpus(typed, fix).items()]
    keys = [_key(name, value) for name, value in edits.items() if is_extra_config(name)]
    if keys:
        lines += ["$spec.ExtraConfig = @(", *(f"  {key}" for key in keys), ")"]
    return Written((*_objects(lines, typed), _APPLY))


def _found(target: Target) -> str:
    name, pattern = (
        ("Config.InstanceUuid", target.uuid) if target.uuid else ("Name", _escaped(target.name, ""))
    )
    return f"$vm = @(Get-View -ViewType VirtualMachine -Filter @{{ '{name}' = '^{pattern}$' }})"


def _with_vcpus(typed: Mapping[str, Value], fix: Fix) -> dict[str, Value]:
    """vCPUs and cores per socket are always sent together: a server may ignore one alone."""
    if "numCoresPerSocket" in typed and "numCPUs" not in typed and (count := _known(fix, "numCPUs")):
        return {"numCPUs": count, **typed}
    return dict(typed)


def _known(fix: Fix, name: str) -> Value:
    """What the VM has, as read; None: unknown."""
    return fix.current.get(name) if fix.current else None


_CLASSES: Mapping[str, str] = {
    "virtualNuma": "VirtualMachineVirtualNuma",
    "cpuAffinity": "VirtualMachineAffinityInfo",
    "memoryAffinity": "VirtualMachineAffinityInfo",
    "memoryAllocation": "ResourceAllocationInfo",
    "cpuAllocation": "ResourceAllocationInfo",
    "latencySensitivity": "LatencySensitivity",
}
"""The class of each field of the spec that is an object."""


def _objects(lines: list[str], typed: Mapping[str, Value]) -> tuple[str, ...]:
    """The lines, preceded by the creation of each nested object."""
    fields = dict.fromkeys(TYPED[name].request[0] for name in typed if TYPED[name].request[1])
    made = [f"$spec.{_capital(field)} = New-Object VMware.Vim.{_CLASSES[field]}" for field in fields]
    at = lines.index(_SPEC) + 1
    return (*lines[:at], *made, *lines[at:])


def _typed(name: str, value: Value) -> str:
    setting = TYPED[name]
    field = ".".join(map(_capital, filter(None, setting.request)))
    return f"$spec.{field} = {_shares(value) if setting.kind is ValueKind.SHARES else _literal(value)}"


def _capital(name: str) -> str:
    return f"{name[0].upper()}{name[1:]}"


def _shares(value: Value) -> str:
    level, shares = (value, 0) if isinstance(value, str) else ("custom", value)
    return f"New-Object VMware.Vim.SharesInfo -Property @{{ Level = {_verbatim(level)}; Shares = {shares} }}"


def _key(name: str, value: Value) -> str:
    """An extraConfig key; an empty value removes it."""
    text = _verbatim("" if value is None else as_text(value))
    return f"New-Object VMware.Vim.OptionValue -Property @{{ Key = {_verbatim(name)}; Value = {text} }}"


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return f"${str(value).lower()}"
    if isinstance(value, tuple):
        return f"[int[]]@({', '.join(map(str, value))})"
    return str(value) if isinstance(value, int) else _verbatim(as_text(value))


def _verbatim(text: str) -> str:
    """A verbatim string. All but plain characters are written by number: typographic quotes end one too."""
    if text.isascii() and (text.isprintable() or not text):
        return "'" + text.replace("'", "''") + "'"
    return f"[regex]::Unescape('{_escaped(text, ' ')}')"


_PLAIN: Callable[[str], object] = re.compile(r"[A-Za-z0-9_-]").fullmatch


def _escaped(text: str, also: str) -> str:
    r"""A .NET regular expression that matches exactly the text: letters, digits and \uNNNN."""
    units = text.encode("utf-16-be", "surrogatepass")
    pairs = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(
        chr(number) if _PLAIN(chr(number)) or chr(number) in also else f"\\u{number:04x}" for number in pairs
    )


_OPTIONS: Mapping[str, str] = {
    "numCPUs": "c",
    "memoryMB": "m",
    "memoryReservation": "mem.reservation",
    "memoryReservationLockedToMax": "memory-pin",
    "memoryLimit": "mem.limit",
    "memoryShares": "mem.shares",
    "cpuReservation": "cpu.reservation",
    "cpuLimit": "cpu.limit",
    "cpuShares": "cpu.shares",
    "cpuHotAddEnabled": "cpu-hot-add-enabled",
    "memoryHotAddEnabled": "memory-hot-add-enabled",
    "latencySensitivity": "latency",
}
_NO_OPTION = "govc vm.change has no option for it"


def govc(fix: Fix, target: Target) -> Written:
    """One `govc vm.change` for bash; server and login come from GOVC_URL and related variables.

    It has no option for cores per socket: they go, with the vCPUs, through vCenter's REST API (since 7.0 U2).
    Options: https://github.com/vmware/govmomi/blob/main/govc/USAGE.md, and for the request
    https://developer.broadcom.com/xapis/vsphere-automation-api/latest/vcenter/api/vcenter/vm/vm/hardware/cpu/patch/
    """
    cpu, lines = _cpu(fix), list[str]()
    if cpu:
        name = _shell_word(_glob(target.name))
        by = f"-config.instanceUuid {target.uuid}" if target.uuid else f"-name {name}"
        lines.append(f"vm=$(govc find / -type m -I {by}) &&")
        body = _shell_word(json.dumps(cpu))
        lines.append(f'govc session.login -r -X PATCH "/api/vcenter/vm/$vm/hardware/cpu" <<<{body}')
    options, left_out = list[str](), dict[str, str]()
    for edit in fix.change:
        if cpu and edit.setting in ("numCPUs", "numCoresPerSocket"):
            continue
        value = meant(edit.setting, edit.after)
        if is_extra_config(edit.setting):
            text = "" if value is None else as_text(value)
            options.append(f"-e={_shell_word(f'{edit.setting}={text}')}")
        elif edit.setting in _OPTIONS:
            text = str(value).lower() if isinstance(value, bool) else as_text(value)
            options.append(f"-{_OPTIONS[edit.setting]}={_shell_word(text)}")
        else:
            automatic = edit.setting in AUTOMATIC and not value
            left_out[edit.setting] = f"automatic; {_NO_OPTION}" if automatic else _NO_OPTION
    if options:
        lines.append(" ".join(["govc vm.change", _vm(target), *options]))
    return Written(tuple(lines), left_out)


def _cpu(fix: Fix) -> Mapping[str, Value]:
    """The request for cores per socket; empty if they do not change, or the vCPUs are not known."""
    edits = {edit.setting: edit.after for edit in fix.change}
    count, per_socket = edits.get("numCPUs") or _known(fix, "numCPUs"), edits.get("numCoresPerSocket")
    return {"count": count, "cores_per_socket": per_socket} if count and per_socket else {}


def _vm(target: Target) -> str:
    return f"-vm.uuid={target.uuid}" if target.uuid else f"-vm={_shell_word(_glob(target.name))}"


def _glob(name: str) -> str:
    return _GLOB.sub(lambda found: chr(92) + found[0], name)


_GLOB = re.compile(r"[^\w .-]")
"""What govc may read in a name as a pattern, or as a reference to an object (VirtualMachine:vm-1)."""


def _shell_word(text: str) -> str:
    """A shell word, with control characters as bash's escapes."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(f"\\x{byte:02x}" for byte in text.encode("utf-8", "surrogateescape")) + "'"


ATTRIBUTES: Mapping[str, str] = {
    "numCPUs": "num_cpus",
    "numCoresPerSocket": "num_cores_per_socket",
    "coresPerNumaNode": "num_cores_per_numa_node",
    "memoryMB": "memory",
    "memoryReservation": "memory_reservation",
    "memoryReservationLockedToMax": "memory_reservation_locked_to_max",
    "memoryLimit": "memory_limit",
    "cpuReservation": "cpu_reservation",
    "cpuLimit": "cpu_limit",
    "cpuHotAddEnabled": "cpu_hot_add_enabled",
    "memoryHotAddEnabled": "memory_hot_add_enabled",
    "latencySensitivity": "latency_sensitivity",
}
"""The attribute of each setting, for reading and fixing a design."""

_LOCK = "memoryReservationLockedToMax"
"""The provider applies it only where the reservation is the whole memory."""
NO_ATTRIBUTE = "the Terraform provider has no attribute for it"
_SINCE = {"coresPerNumaNode": "# The next line needs provider 2.16 or later, and hardware_version."}
_FOREIGN_KEY = (
    "remove it from extra_config; Terraform cannot remove a key that the code never set: use PowerCLI or govc"
)


def terraform(fix: Fix, _target: Target) -> Written:
    """Attributes to set in the resource vsphere_virtual_machine, and keys to add to its extra_config.

    https://registry.terraform.io/providers/vmware/vsphere/latest/docs/resources/virtual_machine and
    https://developer.hashicorp.com/terraform/language/expressions/strings
    """
    lines, keys, left_out = list[str](), list[str](), dict[str, str]()
    for edit in fix.change:
        if not is_extra_config(edit.setting):
            attribute = ATTRIBUTES.get(edit.setting)
            if attribute:
                lines += [_SINCE[edit.setting]] if edit.setting in _SINCE else []
                lines.append(f"{attribute} = {_hcl_value(meant(edit.setting, edit.after))}")
            else:
                left_out[edit.setting] = NO_ATTRIBUTE
        elif edit.after is None:
            left_out[edit.setting] = _FOREIGN_KEY
        else:
            keys.append(f"  {_hcl_string(edit.setting)} = {_hcl_string(as_text(edit.after))}")
    memory = fix.settings.get("memoryMB") or _known(fix, "memoryMB")
    if memory and fix.settings.get(_LOCK) and _known(fix, "memoryReservation") != memory:
        lines.append(f"{ATTRIBUTES['memoryReservation']} = {memory}")
    if keys:
        lines += ["extra_config = {", *keys, "}"]
    return Written(tuple(lines), left_out, shuts_down=True)


def _hcl_value(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else _hcl_string(as_text(value))


def _hcl_string(text: str) -> str:
    r"""A string; what could start a template or an escape is written by number: \u0024{."""
    return f'"{"".join(map(_in_quotes, text))}"'


def _in_quotes(letter: str) -> str:
    if letter.isascii() and letter.isprintable() and letter not in '"\\$%':
        return letter
    number = ord(letter)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


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
