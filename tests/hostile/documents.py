"""Snapshots, waivers, earlier checks, tables and logs that break readers, by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.hostile.broken import JSON_TEXTS, YAML_VALUES, yaml_files

SNAPSHOT = Path(__file__).parents[1] / "estate" / "data" / "inventory-1.json"
_HEAD = '{"schema": "vnuma/inventory/1", "estates": '
_TEXT = SNAPSHOT.read_text(encoding="utf-8")


def _changed(path: str, value: Any) -> str:
    """The snapshot with another value at `path`, such as `vms.0.facts.name`."""
    document = json.loads(_TEXT)
    *steps, last = ["estates", "0", *path.split(".")]
    node = document
    for step in steps:
        node = node[int(step) if isinstance(node, list) else step]
    node[last] = value
    return json.dumps(document)


_ODD_KEYS = {"numa.vcpu.min": "²", "numa.vcpu.maxPerVirtualNode": "²", "numa.nodeAffinity": "²,³"}
_SETTINGS: dict[str, Any] = {
    "a key of 5,000 digits": {"numCPUs": "7" * 5_000},
    "a superscript two for vCPUs": {"numCPUs": "²"},
    "vCPUs of 2**62": {"numCPUs": 2**62},
    "vCPUs below zero": {"numCPUs": -16, "numCoresPerSocket": -1},
    "no vCPUs": {"numCPUs": 0, "numCoresPerSocket": 0, "memoryMB": 0},
    "vCPUs of text": {"numCPUs": "many", "memoryMB": "much"},
    "vCPUs of a list": {"numCPUs": [16], "cpuAffinity": 5},
    "vCPUs of null": {"numCPUs": None, "memoryMB": None},
    "no settings": {},
    "settings of a list": [],
    "CPUs of 2**62": {"numCPUs": 16, "cpuAffinity": [2**62, -1]},
    "a cookie in superscript": {"numCPUs": 16, "numa.autosize.cookie": "²²²"},
    "a cookie of 5,000 digits": {"numCPUs": 16, "numa.autosize.cookie": "1" * 5_000},
    "keys in superscript": {"numCPUs": 16, **_ODD_KEYS, "numa.vcpu.coresPerNode": "0"},
}
SNAPSHOTS: dict[str, str] = {
    **{name: f"{_HEAD}{text}}}" for name, text in JSON_TEXTS.items()},
    **{f"{name} alone": text for name, text in JSON_TEXTS.items()},
    "a format of a superscript two": '{"schema": "vnuma/inventory/²", "estates": []}',
    "a format of 5,000 digits": f'{{"schema": "vnuma/inventory/{"7" * 5_000}", "estates": []}}',
    "a schema of a list": '{"schema": ["vnuma/inventory/1"], "estates": []}',
    **{name: _changed("vms.0.facts.settings", settings) for name, settings in _SETTINGS.items()},
    "a hardware version of 2**62": _changed("vms.0.facts.hardware_version", 2**62),
    "a release in superscript": _changed("clusters.0.hosts.0.release", {"version": "²", "build": "²"}),
    "a release of 5,000 digits": _changed(
        "clusters.0.hosts.0.release", {"version": "7" * 5_000, "build": "7" * 5_000}
    ),
    "a release of nothing": _changed("clusters.0.hosts.0.release", {"version": "", "build": ""}),
    "no hosts": _changed("clusters.0.hosts", []),
    "no clusters": _changed("clusters", []),
    "no VMs": _changed("vms", []),
    "a source of a list": _changed("source", ["vcsa01"]),
    "a time that is none": _changed("read_at", "yesterday"),
    "a time of 5,000 digits": _changed("read_at", "7" * 5_000),
    "a version in superscript": _changed("version", "²"),
    "a VM named by an escape": _changed("vms.0.facts.name", "sql\x1b[2J16"),
    "a VM without a name": _changed("vms.0.facts.name", ""),
    "a VM of half a character": _changed("vms.0.facts.name", "\ud800"),
    "a path of slashes": _changed("vms.0.facts.path", "/" * 900_000),
}

_ENTRY = "waivers:\n- {{rule: {}, object: {}, reason: {}, until: {}}}\n"


def _waiver(rule: str = "T11", name: str = "'*'", reason: str = "x", until: str = "2027-03-31") -> str:
    return _ENTRY.format(rule, name, reason, until)


_DIGITS = {"5,000 digits": "9" * 5_000, "5,000 hexadecimal digits": "0x" + "f" * 5_000}
_NO_DATES = {
    "a date that is none": "2027-13-01",
    "a date of year 0": "0000-01-01",
    "a date in superscript": "²027-01-01",
    "a date of NaN": ".nan",
    "a date of a float": "1.0e+300",
    "a date far off": "99999999999999",
    "a date of a list": "[1]",
    **{f"a date of {name}": digits for name, digits in _DIGITS.items()},
}
WAIVERS: dict[str, str | bytes] = {
    **yaml_files(_waiver(), {name: f"waivers: {value}" for name, value in YAML_VALUES.items()}, "waivers"),
    **{name: _waiver(until=date) for name, date in _NO_DATES.items()},
    **{f"a rule of {name}": _waiver(rule=digits) for name, digits in _DIGITS.items()},
    "a rule of half a character": _waiver(rule='"\\ud800"'),
    "a rule of an escape": _waiver(rule='"T\\e[2J"'),
    "an unknown rule": _waiver(rule="X99"),
    "a sexagesimal date": "%YAML 1.1\n---\n" + _waiver(until="1" + ":59" * 5_000),
    "1,000,000 commas": "waivers: [" + "1," * 1_000_000 + "]",
    "10,000,000 spaces": " " * 10_000_000 + "x",
    "200,000 unknown fields": _waiver() + "x: {" + "".join(f"a{n}: 1, " for n in range(200_000)) + "}",
    "Latin-1": _waiver(reason="Größe").encode("latin-1"),
}

EARLIER: dict[str, str] = {
    **JSON_TEXTS,
    "no findings": '{"schema": "vnuma/check/1"}',
    **{
        f"findings of {name}": '{"schema": "vnuma/check/1", "checked_at": "x", "sources": [], '
        f'"findings": {text}}}'
        for name, text in (
            ("null", "null"),
            ("numbers", "[1]"),
            ("text", '"x"'),
            ("a list of keys", '[{"rule": [1], "object": {"kind": [], "key": {}, "name": 1}}]'),
            ("an object of text", '[{"rule": "T11", "object": "x"}]'),
        )
    },
    "sources of numbers": '{"schema": "vnuma/check/1", "checked_at": 1, "findings": [], "sources": [1]}',
    "sources of null": '{"schema": "vnuma/check/1", "checked_at": null, "findings": [], "sources": null}',
}

TABLES: dict[str, str | bytes] = {
    "nothing": "",
    "a line": "rows_per_side,1x16",
    "no numbers": "rows_per_side,1x16,2x8\n500,x,y\n",
    "superscript": "rows_per_side,1x16,2x8\n500,²,²\n",
    "a superscript size": "rows_per_side,1x16,2x8\n²,1,2\n",
    "NaN": "rows_per_side,1x16,2x8\n500,nan,nan\n",
    "endless": "rows_per_side,1x16,2x8\n500,inf,1e999\n",
    "zero": "rows_per_side,1x16,2x8\n0,0,0\n",
    "5,000 digits": f"rows_per_side,1x16,2x8\n{'9' * 5_000},{'9' * 5_000},1\n",
    "tiny": "rows_per_side,1x16,2x8\n500,5e-324,1e308\n",
    "half a character": "rows_per_side,1x16,\ud800\n500,1,2\n",
    "a NUL": "rows_per_side,1x16,2x8\n500,1\0,2\n",
    "an open quote": 'rows_per_side,1x16,2x8\n500,1,"2\n',
    "a long field": f"rows_per_side,1x16,2x8\n500,1,{'x' * 200_000}\n",
    "a short line": "rows_per_side,1x16,2x8\n500,1\n",
    "a long line": "rows_per_side,1x16,2x8\n500,1,2,3\n",
    "one arm twice": "rows_per_side,1x16,1x16\n500,1,2\n",
    "one size twice": "rows_per_side,1x16,2x8\n500,1,2\n500,1,2\n",
    "10,000 arms": "rows_per_side," + ",".join(f"a{n}" for n in range(10_000)) + "\n500" + ",1" * 10_000,
    "100,000 sizes": "rows_per_side,1x16,2x8\n" + "".join(f"{n},1,2\n" for n in range(1, 100_000)),
    "an arm named by an escape": "rows_per_side,1x16,\x1b[2J\n500,1,2\n",
    "random bytes": bytes(range(256)) * 100,
}

EVIDENCE: dict[str, bytes] = {
    "nothing": b"",
    "random bytes": bytes(range(256)) * 100,
    "UTF-16 cut short": b"\xff\xfeA",
    "500 kB of spaces": b" " * 500_000,
    "500 kB of digits": b"numa: " + b"9" * 500_000,
    "500 kB of lines": b"vmx| numa\n" * 50_000,
    "500 kB of numa": b"numaHost: " * 50_000,
    "superscript": "numaHost: NUMA config: consolidation= ² preferHT= ²\n".encode() * 100,
}


def _plan(address: object = "vsphere_virtual_machine.sql", **top: object) -> str:
    one = {"type": "vsphere_virtual_machine", "mode": "managed", "address": address, "values": {"name": "a"}}
    module = {"resources": [one]}
    return json.dumps({"format_version": "1.2", "planned_values": {"root_module": module}, **top})


_CALLED = {"root_module": {"module_calls": {"m": {"source": "./a\0b"}}}}
DESIGNS: dict[str, tuple[str, str | bytes]] = {
    "no address": ("plan.json", _plan(None)),
    "an address of one part": ("plan.json", _plan("sql")),
    "an address of a list": ("plan.json", _plan([1])),
    "an address named by an escape": ("plan.json", _plan("vsphere_virtual_machine.\x1b[2J")),
    "a module of no path": (
        "plan.json",
        _plan("module.m.vsphere_virtual_machine.sql", configuration=_CALLED),
    ),
    "a deep plan": ("plan.json", '{"format_version": "1.2", "values": ' + "[" * 100_000),
    "values of a list": ("plan.json", _plan().replace('{"name": "a"}', "[1]")),
    "a VMX of nothing": ("a.vmx", b""),
    "a VMX of NULs": ("a.vmx", bytes(10_000)),
    "a VMX in an encoding that is none": ("a.vmx", '.encoding = "nobody"\nnumvcpus = "4"\n'),
    "a VMX whose encoding is a codec": ("a.vmx", '.encoding = "zip"\nnumvcpus = "4"\n'),
    "a VMX of 5,000 digits": ("a.vmx", f'numvcpus = "{"9" * 5_000}"\nmemSize = "²"\n'),
    "an OVF of nothing": ("a.ovf", b""),
    "an OVF with entities": (
        "a.ovf",
        '<!DOCTYPE x [<!ENTITY a "x"><!ENTITY b "&a;&a;&a;">]><Envelope>&b;</Envelope>',
    ),
    "a deep OVF": ("a.ovf", "<a>" * 200_000),
    "an OVA of nothing": ("a.ova", b""),
    "an OVA of zeros": ("a.ova", bytes(100_000)),
}
"""Designs that are to be deployed: file name and content."""
