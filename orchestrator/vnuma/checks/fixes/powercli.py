"""A fix for PowerCLI: one VirtualMachineConfigSpec, since cmdlets cover only some settings.

Get-View: https://developer.broadcom.com/powercli/latest/vmware.vimautomation.core/commands/get-view
Quotes: https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_quoting_rules
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vnuma.checks.finding import Fix
from vnuma.checks.fixes.wording import Target, Written, as_text, explicit
from vnuma.domain.vm.setting import Value, is_extra_config

_SPEC = "$spec = New-Object VMware.Vim.VirtualMachineConfigSpec"
_APPLY = "if ($vm.Count -eq 1) { $vm[0].ReconfigVM($spec) } else { throw 'This is not exactly one VM.' }"


def powercli(fix: Fix, target: Target) -> Written:
    """Lines that find exactly one VM and reconfigure it."""
    edits = {edit.setting: explicit(edit) for edit in fix.change}
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
    if "numCoresPerSocket" in typed and "numCPUs" not in typed and fix.current.get("numCPUs"):
        return {"numCPUs": fix.current["numCPUs"], **typed}
    return dict(typed)


_PARTS: Mapping[str, tuple[str, str, str]] = {
    "coresPerNumaNode": ("VirtualNuma", "CoresPerNumaNode", "VirtualMachineVirtualNuma"),
    "exposeVnumaOnCpuHotadd": ("VirtualNuma", "ExposeVnumaOnCpuHotadd", "VirtualMachineVirtualNuma"),
    "cpuAffinity": ("CpuAffinity", "AffinitySet", "VirtualMachineAffinityInfo"),
    "memoryAffinity": ("MemoryAffinity", "AffinitySet", "VirtualMachineAffinityInfo"),
    "memoryReservation": ("MemoryAllocation", "Reservation", "ResourceAllocationInfo"),
    "memoryLimit": ("MemoryAllocation", "Limit", "ResourceAllocationInfo"),
    "memoryShares": ("MemoryAllocation", "Shares", "ResourceAllocationInfo"),
    "cpuReservation": ("CpuAllocation", "Reservation", "ResourceAllocationInfo"),
    "cpuLimit": ("CpuAllocation", "Limit", "ResourceAllocationInfo"),
    "cpuShares": ("CpuAllocation", "Shares", "ResourceAllocationInfo"),
    "latencySensitivity": ("LatencySensitivity", "Level", "LatencySensitivity"),
}
"""Settings inside a nested object of the spec: the spec's field, the object's field and its class."""


def _objects(lines: list[str], typed: Mapping[str, Value]) -> tuple[str, ...]:
    """The lines, preceded by the creation of each nested object."""
    fields = dict.fromkeys(_PARTS[name][::2] for name in typed if name in _PARTS)
    made = [f"$spec.{field} = New-Object VMware.Vim.{of}" for field, of in fields]
    at = lines.index(_SPEC) + 1
    return (*lines[:at], *made, *lines[at:])


def _typed(name: str, value: Value) -> str:
    if name not in _PARTS:
        return f"$spec.{name[0].upper()}{name[1:]} = {_literal(value)}"
    field, part, _ = _PARTS[name]
    return f"$spec.{field}.{part} = {_literal(value) if part != 'Shares' else _shares(value)}"


def _shares(value: Value) -> str:
    level, shares = (value, 0) if isinstance(value, str) else ("custom", value)
    return f"New-Object VMware.Vim.SharesInfo -Property @{{ Level = {_quoted(level)}; Shares = {shares} }}"


def _key(name: str, value: Value) -> str:
    """An extraConfig key; an empty value removes it."""
    text = _quoted("" if value is None else as_text(value))
    return f"New-Object VMware.Vim.OptionValue -Property @{{ Key = {_quoted(name)}; Value = {text} }}"


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return f"${str(value).lower()}"
    if isinstance(value, tuple):
        return f"[int[]]@({', '.join(map(str, value))})"
    return str(value) if isinstance(value, int) else _quoted(as_text(value))


def _quoted(text: str) -> str:
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
