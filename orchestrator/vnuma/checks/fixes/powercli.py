"""A fix for PowerCLI: one VirtualMachineConfigSpec, since cmdlets cover only some settings.

Get-View: https://developer.broadcom.com/powercli/latest/vmware.vimautomation.core/commands/get-view
Quotes: https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_quoting_rules
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vnuma.checks.fixes.wording import Target, Written, as_text
from vnuma.checks.rule import Fix
from vnuma.domain.vm.setting import TYPED, Value, ValueKind, is_extra_config, meant

_SPEC = "$spec = New-Object VMware.Vim.VirtualMachineConfigSpec"
_APPLY = "if ($vm.Count -eq 1) { $vm[0].ReconfigVM($spec) } else { throw 'This is not exactly one VM.' }"


def powercli(fix: Fix, target: Target) -> Written:
    """Lines that find exactly one VM and reconfigure it."""
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
    if "numCoresPerSocket" in typed and "numCPUs" not in typed and fix.current.get("numCPUs"):
        return {"numCPUs": fix.current["numCPUs"], **typed}
    return dict(typed)


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
