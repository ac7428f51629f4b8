"""Study files that are deep, endless, huge or not text, as bytes by name."""

from __future__ import annotations

from tests.hostile.broken import TEN, YAML_VALUES, yaml_files
from tests.report.build import study_text

WELL = study_text(sizes="500", forms="client", blocks=6)
_ARMS = "arms: [1x16, 2x8, 4x4, 8x2, 16x1]"
_DESIGN = "design: {blocks: 6, seed: 7, order: randomised, a_a: true}"
_WORKLOAD = "workload: {sizes: [500], forms: [client]}"
_TITLE = "title: Five topologies of a 16-vCPU SQL Server VM"


def _with(old: str, new: str) -> str:
    assert old in WELL
    return WELL.replace(old, new)


def _hours(zone: str = "UTC", windows: str = "Mon 01:00-02:00") -> str:
    return f"{WELL}allowed_hours: {{time_zone: {zone}, windows: [{windows}]}}\n"


_WINDOWS = {
    "that are none": "Mon-Xyz 99:99-99:99",
    "in another script": "Mon-Fri ²²:00-06:00",
    "in Arabic digits": "'Mon-Fri \u0669\u0669:00-06:00'",
    "that backtrack": f"'{'M ' * 40_000}'",
}
_ZONES = {
    "like a path": "../../../etc/passwd",
    "of a folder": "Europe",
    "of 90,000 letters": "x" * 90_000,
    "with a NUL": r'"a\0b"',
}
_NUMBERS = ", ".join(map(str, range(1, 101)))
_TEXTS = {
    "a word": "quick",
    "1,000 levels by indentation": "".join(f"{' ' * n}a:\n" for n in range(1_000)) + WELL,
    "400,000 comments": "#\n" * 400_000 + WELL,
    "400,000 empty lines": "\n" * 900_000 + WELL,
    "100,000 fields": WELL + "".join(f"f{n}: 1\n" for n in range(60_000)),
    "a long key": "a" * 900_000 + ": 1\n" + WELL,
    "900,000 spaces": WELL + " " * 900_000 + "x: 1\n",
    "900,000 letters of a title": _with(_TITLE, "title: " + "x " * 450_000),
    "a hexadecimal seed of 5,000 digits": _with("seed: 7", "seed: 0x" + "f" * 5_000),
    "a seed of 5,000 digits": _with("seed: 7", "seed: " + "9" * 5_000),
    "a binary seed of 90,000 digits": _with("seed: 7", "seed: 0b" + "1" * 90_000),
    "an octal seed of 90,000 digits": _with("seed: 7", "seed: 0o" + "7" * 90_000),
    "a sexagesimal seed": "%YAML 1.1\n---\n" + _with("seed: 7", "seed: 1" + ":59" * 50_000),
    "vCPUs of 5,000 digits": _with("vcpus: 16", "vcpus: 0x" + "f" * 5_000),
    "sockets of 5,000 digits": _with("[1x16,", f"[{'9' * 5_000}x1,"),
    "a topology in superscript": _with("[1x16,", "[²x8,"),
    "a topology in Arabic digits": _with("[1x16,", "[\N{ARABIC-INDIC DIGIT ONE}x16,"),
    "NaN blocks": _with("blocks: 6", "blocks: .nan"),
    "endless blocks": _with("blocks: 6", "blocks: .inf"),
    "NaN hours": _with("seed: 7", "seed: 7, max_hours: .nan"),
    "endless hours": _with("seed: 7", "seed: 7, max_hours: 1.0e+999"),
    "an endless equivalence": _with("seed: 7", "seed: 7, equivalence: .inf"),
    "an equivalence of 5,000 digits": _with("seed: 7", f"seed: 7, equivalence: {'9' * 5_000}%"),
    "an equivalence in superscript": _with("seed: 7", "seed: 7, equivalence: ²%"),
    "a float of 5,000 digits": _with("seed: 7", "seed: 7, max_hours: 1." + "0" * 5_000 + "e5000"),
    "a date that is none": _with(_TITLE, "title: 2027-13-45"),
    "a time that is none": _with(_TITLE, "title: 2027-01-01T99:99:99Z"),
    "a time zone offset that is none": _with(_TITLE, "title: 2027-01-01T00:00:00+99:99"),
    "a time of year 0": _with(_TITLE, "title: 0000-00-00"),
    "a size of 2**62": _with("sizes: [500]", f"sizes: [{2**62}]"),
    "10,000 sizes": _with("sizes: [500]", f"sizes: [{', '.join(map(str, range(1, 10_001)))}]"),
    "aliases as arms": _with(_ARMS, f"x: &x [{TEN.format('1x16')}]\ny: &y [{TEN.format('*x')}]\narms: *y"),
    "a tag directive": "%TAG ! tag:x,2000:\n---\n" + _with(_TITLE, "title: !x y"),
    "a title of null": _with("name: quick", "name: null"),
    "arms of null": _with(_ARMS, "arms: null"),
    "arms of nothing": _with(_ARMS, "arms: []"),
    "arms of a word": _with(_ARMS, "arms: all"),
    "an arm of null": _with("[1x16,", "[null, 1x16,"),
    "an arm of a list": _with("[1x16,", "[[1x16], 1x16,"),
    "an arm of a number": _with("[1x16,", "[16, 1x16,"),
    "arms of an empty mapping": _with(_ARMS, "arms: {}"),
    "10,000 arms": _with(
        _ARMS, f"arms: [{', '.join(f'{{topology: 1x16, name: a{n}}}' for n in range(10_000))}]"
    ),
    "1,000 arms": _with(
        _ARMS, f"arms: [{', '.join(f'{{topology: 1x16, name: a{n}}}' for n in range(1_000))}]"
    ),
    "100 arms and 200 blocks of a square": _with(
        _ARMS, "arms: {topologies: all, memory_mb: [" + ", ".join(str(4 * n) for n in range(1, 21)) + "]}"
    )
    .replace("blocks: 6", "blocks: 199")
    .replace("randomised", "williams"),
    "10,000,000,000 arms by crossing": _with(
        _ARMS,
        f"arms: {{topologies: all, memory_mb: [{_NUMBERS}], numa_vcpu_min: [{_NUMBERS}], "
        f"cores_per_numa_node: [{_NUMBERS}], max_per_virtual_node: [{_NUMBERS}], maxdop: [{_NUMBERS}]}}",
    ),
    "a crossing of 10,000 vCPU counts": _with(
        _ARMS, f"arms: {{topologies: all, vcpus: [{', '.join(map(str, range(1, 10_001)))}]}}"
    ),
    "a crossing of all vCPU counts": _with(
        _ARMS, f"arms: {{topologies: all, vcpus: [{', '.join(map(str, range(1, 101)))}]}}"
    ),
    "a crossing over mappings": _with(_ARMS, "arms: {topologies: {a: 1}, affinity: {a: {b: {c: [1, 2]}}}}"),
    "a crossing over null": _with(_ARMS, "arms: {topologies: null, vcpus: null, affinity: null}"),
    "a crossing over NaN": _with(_ARMS, "arms: {topologies: all, memory_mb: [.nan, .nan]}"),
    "a crossing with a key of a list": _with(_ARMS, "arms: {topologies: all, ? [1] : [1, 2]}"),
    "a crossing with a key of a number": _with(_ARMS, "arms: {topologies: all, 1: [1, 2]}"),
    "a workload of a list": _with(_WORKLOAD, "workload: [1]"),
    "a workload of a word": _with(_WORKLOAD, "workload: cross_join"),
    "a workload without a name": _with(_WORKLOAD, "workload: {name: null}"),
    "a workload named by a list": _with(_WORKLOAD, "workload: {name: [1]}"),
    "a workload named by a path": _with(_WORKLOAD, "workload: {name: ../../etc/passwd}"),
    "a workload named by 90,000 letters": _with(_WORKLOAD, f"workload: {{name: {'x' * 90_000}}}"),
    "a workload with an unknown field": _with(_WORKLOAD, "workload: {name: scan, more: {a: [1]}}"),
    "a dataset of a list": WELL + "dataset: [1]\n",
    "a dataset of null": WELL + "dataset: null\n",
    "published of a list": WELL.partition("published:")[0] + "published: [1]\n",
    "published of NaN": WELL.replace("1x16: 4994", "1x16: .nan"),
    "a design of a list": _with(_DESIGN, "design: [1]"),
    "a design with a key of null": _with(_DESIGN, "design: {null: 1}"),
    "a reference of a list": _with("reference: 1x16", "reference: [1x16]"),
    "1,000 VMs of one name": _with("vms: [sql16]", f"vms: [{', '.join(['sql16'] * 1_000)}]"),
    "40,000 VMs": _with("vms: [sql16]", f"vms: [{', '.join(f'v{n}' for n in range(40_000))}]"),
    "VMs of null": _with("vms: [sql16]", "vms: [null]"),
    "a name like a path": _with("name: quick", "name: ../../x"),
    "a name of 900,000 letters": _with("name: quick", f"name: {'x' * 900_000}"),
    **{f"windows {name}": _hours(windows=windows) for name, windows in _WINDOWS.items()},
    **{f"a time zone {name}": _hours(zone) for name, zone in _ZONES.items()},
    "T-SQL of 900,000 letters": _with(
        _WORKLOAD, f'workload: {{name: sql_script, statement: "{"(" * 400_000}"}}'
    ),
}

STUDIES: dict[str, str | bytes] = {
    **yaml_files(
        WELL, {name: _with(_TITLE, f"title: {value}") for name, value in YAML_VALUES.items()}, "title"
    ),
    **_TEXTS,
    "Latin-1": _with(_TITLE, "title: Größe").encode("latin-1"),
    "a line separator": _with(_TITLE, "title: a\u2028: b: c"),
    "two megabytes": WELL + "# " + "x" * 2_000_000,
}

VALID = frozenset(
    {
        "400,000 comments",
        "10,000 sizes",
        "a key of 5,000 digits",
        "a source of a list",
        "no settings",
        "a cookie in superscript",
        "a cookie of 5,000 digits",
        "keys in superscript",
        "a hardware version of 2**62",
        "no hosts",
        "no clusters",
        "a time that is none",
        "a time of 5,000 digits",
        "a version in superscript",
        "a VM named by an escape",
        "a VM without a name",
        "a path of slashes",
        "an open quote",
        "an arm named by an escape",
    }
)
"""Files of any kind that look strange and are read all the same."""
