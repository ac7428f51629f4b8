"""A fix as a command of govc, for a POSIX shell or bash.

Options: `govc vm.change -h`; https://github.com/vmware/govmomi/blob/main/govc/USAGE.md
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from vnuma.checks.fixes.wording import Target, Written, as_text
from vnuma.checks.rule import Fix
from vnuma.domain.vm.setting import Value, is_extra_config, meant

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
    """One `govc vm.change`; server and login come from GOVC_URL and related variables."""
    options, left_out = list[str](), dict[str, str]()
    for edit in fix.change:
        value = meant(edit.setting, edit.after)
        if is_extra_config(edit.setting):
            text = "" if value is None else as_text(value)
            options.append(f"-e={_quoted(f'{edit.setting}={text}')}")
        elif edit.setting in _OPTIONS:
            options.append(f"-{_OPTIONS[edit.setting]}={_quoted(_value(value))}")
        else:
            left_out[edit.setting] = _NO_OPTION
    return Written((" ".join(["govc vm.change", _vm(target), *options]),) if options else (), left_out)


def _vm(target: Target) -> str:
    if target.uuid:
        return f"-vm.uuid={target.uuid}"
    return f"-vm={_quoted(_GLOB.sub(lambda found: chr(92) + found[0], target.name))}"


_GLOB = re.compile(r"[^\w .-]")
"""What govc may read in a name as a pattern, or as a reference to an object (VirtualMachine:vm-1)."""


def _value(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else as_text(value)


def _quoted(text: str) -> str:
    """A shell word, with control characters as bash's escapes."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(f"\\x{byte:02x}" for byte in text.encode("utf-8", "surrogateescape")) + "'"
