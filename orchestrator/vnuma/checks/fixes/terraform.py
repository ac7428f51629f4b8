"""A fix as attributes of Terraform's resource vsphere_virtual_machine.

Attributes and units: https://registry.terraform.io/providers/vmware/vsphere/latest/docs/resources/virtual_machine
Strings: https://developer.hashicorp.com/terraform/language/expressions/strings
"""

from __future__ import annotations

from collections.abc import Mapping

from vnuma.checks.fixes.wording import Target, Written, as_text
from vnuma.checks.rule import Fix
from vnuma.domain.vm.setting import Value, is_extra_config, meant

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
    """Attributes to set in the VM's resource, and keys to add to its extra_config."""
    lines, keys, left_out = list[str](), list[str](), dict[str, str]()
    for edit in fix.change:
        if not is_extra_config(edit.setting):
            attribute = ATTRIBUTES.get(edit.setting)
            if attribute:
                lines += [_SINCE[edit.setting]] if edit.setting in _SINCE else []
                lines.append(f"{attribute} = {_literal(meant(edit.setting, edit.after))}")
            else:
                left_out[edit.setting] = NO_ATTRIBUTE
        elif edit.after is None:
            left_out[edit.setting] = _FOREIGN_KEY
        else:
            keys.append(f"  {_quoted(edit.setting)} = {_quoted(as_text(edit.after))}")
    memory = fix.settings.get("memoryMB") or fix.current.get("memoryMB")
    if memory and fix.settings.get(_LOCK) and fix.current.get("memoryReservation") != memory:
        lines.append(f"{ATTRIBUTES['memoryReservation']} = {memory}")
    if keys:
        lines += ["extra_config = {", *keys, "}"]
    return Written(tuple(lines), left_out, shuts_down=True)


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else _quoted(as_text(value))


def _quoted(text: str) -> str:
    r"""A string; what could start a template or an escape is written by number: \u0024{."""
    return f'"{"".join(map(_in_quotes, text))}"'


def _in_quotes(letter: str) -> str:
    if letter.isascii() and letter.isprintable() and letter not in '"\\$%':
        return letter
    number = ord(letter)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
