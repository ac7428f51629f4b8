"""Snapshots, waivers, earlier checks, tables and logs that break readers, by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


JSON_TEXTS = {
    "nothing": "",
    "100,000 levels": "[" * 100_000,
    "100,000 closed levels": "[" * 100_000 + "]" * 100_000,
    "500 levels": "[" * 500 + "]" * 500,
    "null": "null",
    "a list": "[]",
    "a number": "²",
    "a number of 5,000 digits": "7" * 5_000,
    "NaN": "NaN",
    "an endless number": "1e999",
    "half a character": '"\\ud800"',
    "a NUL": "\0",
    "UTF-16": "\ufeff{}",
}
SNAPSHOTS: dict[str, str] = {
    **{name: f"{_HEAD}{text}}}" for name, text in JSON_TEXTS.items()},
    **{f"{name} alone": text for name, text in JSON_TEXTS.items()},
    "a format of a superscript two": '{"schema": "vnuma/inventory/²", "estates": []}',
    "a format of 5,000 digits": f'{{"schema": "vnuma/inventory/{"7" * 5_000}", "estates": []}}',
    "a schema of a list": '{"schema": ["vnuma/inventory/1"], "estates": []}',
    "a key of 5,000 digits": _changed("vms.0.facts.settings", {"numCPUs": "7" * 5_000}),
    "a superscript two for vCPUs": _changed("vms.0.facts.settings", {"numCPUs": "²"}),
    "vCPUs of 2**62": _changed("vms.0.facts.settings", {"numCPUs": 2**62}),
    "vCPUs below zero": _changed("vms.0.facts.settings", {"numCPUs": -16, "numCoresPerSocket": -1}),
    "no vCPUs": _changed("vms.0.facts.settings", {"numCPUs": 0, "numCoresPerSocket": 0, "memoryMB": 0}),
    "vCPUs of text": _changed("vms.0.facts.settings", {"numCPUs": "many", "memoryMB": "much"}),
    "vCPUs of a list": _changed("vms.0.facts.settings", {"numCPUs": [16], "cpuAffinity": 5}),
    "vCPUs of null": _changed("vms.0.facts.settings", {"numCPUs": None, "memoryMB": None}),
    "no settings": _changed("vms.0.facts.settings", {}),
    "settings of a list": _changed("vms.0.facts.settings", []),
    "CPUs of 2**62": _changed("vms.0.facts.settings", {"numCPUs": 16, "cpuAffinity": [2**62, -1]}),
    "a cookie in superscript": _changed(
        "vms.0.facts.settings", {"numCPUs": 16, "numa.autosize.cookie": "²²²"}
    ),
    "a cookie of 5,000 digits": _changed(
        "vms.0.facts.settings", {"numCPUs": 16, "numa.autosize.cookie": "1" * 5_000}
    ),
    "keys in superscript": _changed(
        "vms.0.facts.settings",
        {
            "numCPUs": 16,
            "numa.vcpu.min": "²",
            "numa.vcpu.maxPerVirtualNode": "²",
            "numa.nodeAffinity": "²,³",
            "numa.vcpu.coresPerNode": "0",
        },
    ),
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


_LINES = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))
WAIVERS: dict[str, bytes] = {
    name: text.encode("utf-8", "surrogatepass")
    for name, text in {
        "nothing": "",
        "a list": "- 1",
        "5,000 levels": "waivers: " + "[" * 5_000 + "]" * 5_000,
        "5,000 open levels": "waivers: " + "[" * 5_000,
        "5,000 dashes": "waivers:\n " + "- " * 5_000 + "1",
        "100,000 levels": "waivers: " + "[" * 100_000 + "]" * 100_000,
        "aliases": "a0: &a0 [x]\n" + _LINES + "\nwaivers: *a8",
        "aliases as waivers": "waivers: &a [*a]",
        "aliases that double": "a0: &a0 [x]\n"
        + "\n".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))
        + "\nwaivers: *a39",
        "merges that double": "a0: &a0 {x: 1}\n"
        + "\n".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 40))
        + "\nwaivers: [*a39]",
        "a merge with itself": "waivers: &a {<<: *a}",
        "a merge of text": "waivers: {<<: x}",
        "a mapping as a key": "? {a: 1}\n: 2\n",
        "a list as a key": "waivers: [{[1]: 2}]\n",
        "a key of null": "null: 1\nwaivers: []\n",
        "half a character": "waivers: \ud800",
        "an escape of half a character": 'waivers: "\\ud800"',
        "an escape beyond Unicode": 'waivers: "\\UFFFFFFFF"',
        "a rule of half a character": _waiver(rule='"\\ud800"'),
        "a rule of an escape": _waiver(rule='"T\\e[2J"'),
        "a rule of 5,000 digits": _waiver(rule="9" * 5_000),
        "a rule of 5,000 hexadecimal digits": _waiver(rule="0x" + "f" * 5_000),
        "an unknown rule": _waiver(rule="X99"),
        "a date that is none": _waiver(until="2027-13-01"),
        "a date of 5,000 digits": _waiver(until="9" * 5_000),
        "a date of 5,000 hexadecimal digits": _waiver(until="0x" + "f" * 5_000),
        "a date of year 0": _waiver(until="0000-01-01"),
        "a date in superscript": _waiver(until="²027-01-01"),
        "a date of NaN": _waiver(until=".nan"),
        "a date of a float": _waiver(until="1.0e+300"),
        "a date far off": _waiver(until="99999999999999"),
        "a date of a list": _waiver(until="[1]"),
        "a sexagesimal date": "%YAML 1.1\n---\n" + _waiver(until="1" + ":59" * 5_000),
        "an integer that is none": _waiver(rule="!!int x"),
        "an integer that is empty": _waiver(rule="!!int ''"),
        "a boolean that is none": _waiver(rule="!!bool x"),
        "a float that is none": _waiver(rule="!!float x"),
        "a Python object": _waiver(rule="!!python/object/apply:os.system ['true']"),
        "a set": "waivers: !!set {a, b}",
        "an ordered mapping": "waivers: !!omap [a: 1, 2]",
        "pairs": "waivers: !!pairs [a: 1, 2]",
        "bytes": "waivers: !!binary 'x'",
        "a timestamp that is none": "waivers: !!timestamp x",
        "a mapping called a list": "waivers: !!seq {a: 1}",
        "a NUL": _waiver() + "\0",
        "a newer YAML": "%YAML 9.9\n---\n" + _waiver(),
        "a YAML version of 5,000 digits": f"%YAML 1.{'9' * 5_000}\n---\n" + _waiver(),
        "1,000,000 commas": "waivers: [" + "1," * 1_000_000 + "]",
        "10,000,000 spaces": " " * 10_000_000 + "x",
        "1,000,000 unknown fields": _waiver() + "x: {" + "".join(f"a{n}: 1, " for n in range(200_000)) + "}",
        "several documents": _waiver() + "---\n" + _waiver(),
    }.items()
}
WAIVERS |= {
    "Latin-1": _waiver(reason="Größe").encode("latin-1"),
    "UTF-16": _waiver().encode("utf-16"),
    "random bytes": bytes(range(256)) * 100,
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

TABLES: dict[str, bytes] = {
    name: text.encode("utf-8", "surrogatepass")
    for name, text in {
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
    }.items()
}
TABLES["random bytes"] = bytes(range(256)) * 100

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
