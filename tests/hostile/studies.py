"""Study files that are deep, endless, huge or not text, as bytes by name."""

from __future__ import annotations

from tests.report.build import study_text

WELL = study_text(sizes="500", forms="client", blocks=6)
_ARMS = "arms: [1x16, 2x8, 4x4, 8x2, 16x1]"
_DESIGN = "design: {blocks: 6, seed: 7, order: randomised, a_a: true}"
_WORKLOAD = "workload: {sizes: [500], forms: [client]}"
_TITLE = "title: Five topologies of a 16-vCPU SQL Server VM"


def _with(old: str, new: str) -> str:
    assert old in WELL
    return WELL.replace(old, new)


def _aliases(first: str, line: str, levels: int) -> str:
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} " + line.format(f"*a{n - 1}") for n in range(1, levels)]
    return "\n".join(lines) + f"\ntitle: *a{levels - 1}\n"


_TEN = ", ".join(["{0}"] * 10)
_NUMBERS = ", ".join(map(str, range(1, 101)))
_TEXTS = {
    "nothing": "",
    "a byte order mark alone": "\ufeff",
    "a word": "quick",
    "a list": "- 1\n- 2\n",
    "several documents": f"{WELL}---\n{WELL}",
    "5,000 levels of lists": _with(_TITLE, "title: " + "[" * 5_000 + "]" * 5_000),
    "5,000 levels of mappings": _with(_TITLE, "title: " + "{a: " * 5_000 + "1" + "}" * 5_000),
    "5,000 levels by dashes": _with(_TITLE, "title:\n  " + "- " * 5_000 + "1"),
    "1,000 levels by indentation": "".join(f"{' ' * n}a:\n" for n in range(1_000)) + WELL,
    "5,000 levels of questions": _with(_TITLE, "title:\n  " + "? " * 5_000 + "1"),
    "5,000 levels of mappings by dashes": _with(_TITLE, "title:\n  " + "- a: " * 5_000 + "1"),
    "5,000 open quotes": _with(_TITLE, "title: " + "'" * 5_001),
    "5,000 exclamation marks": _with(_TITLE, "title: " + "!" * 5_000 + " x"),
    "100,000 anchors": _with(_TITLE, "title: [" + ", ".join(f"&a{n} 1" for n in range(60_000)) + "]"),
    "400,000 commas": _with(_TITLE, "title: [" + "1," * 400_000 + "]"),
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
    "a merge with itself": _with(_TITLE, "title: &a {<<: *a}"),
    "a merge with itself in a list": _with(_TITLE, "title: &a {<<: [*a, *a]}"),
    "a merge in a circle": _with(_TITLE, "x: &x {y: &y {<<: *x}, <<: *y}"),
    "a merge of text": _with(_TITLE, "title: {<<: text}"),
    "a merge of a list of text": _with(_TITLE, "title: {<<: [text]}"),
    "merges of merges": _aliases("{x: 1}", f"{{{{<<: [{_TEN}], y: 1}}}}", 9),
    "merges that double": _aliases("{x: 1}", "{{<<: [{0}, {0}]}}", 40),
    "a list that holds itself": _with(_TITLE, "title: &a [*a]"),
    "a mapping that holds itself": _with(_TITLE, "title: &a {a: *a}"),
    "a mapping that is its own key": _with(_TITLE, "title: &a {*a : 1}"),
    "a list as a key": _with(_TITLE, "title: {[1, 2]: 1}"),
    "a mapping as a key": WELL + "? {a: 1}\n: 2\n",
    "aliases": _aliases("[x]", f"[{_TEN}]", 9),
    "aliases that double": _aliases("[x]", "[{0}, {0}]", 40),
    "aliases as arms": _with(_ARMS, f"x: &x [{_TEN.format('1x16')}]\ny: &y [{_TEN.format('*x')}]\narms: *y"),
    "an unknown alias": _with(_TITLE, "title: *nobody"),
    "a Python object": _with(_TITLE, "title: !!python/object/apply:os.system ['true']"),
    "a set": _with(_TITLE, "title: !!set {a, b}"),
    "an ordered mapping": _with(_TITLE, "title: !!omap [a: 1, a: 2]"),
    "pairs": _with(_TITLE, "title: !!pairs [a: 1, 2]"),
    "bytes": _with(_TITLE, "title: !!binary 'not base64'"),
    "bytes that are whole": _with(_TITLE, "title: !!binary 'AAECAwQF/w=='"),
    "an integer that is none": _with("seed: 7", "seed: !!int x"),
    "an integer that is empty": _with("seed: 7", "seed: !!int ''"),
    "a float that is none": _with("seed: 7", "seed: !!float x"),
    "a boolean that is none": _with("seed: 7", "seed: !!bool x"),
    "a null that is none": _with("seed: 7", "seed: !!null x"),
    "a timestamp that is none": _with(_TITLE, "title: !!timestamp x"),
    "a list called a mapping": _with(_TITLE, "title: !!map [1]"),
    "a mapping called a list": _with(_TITLE, "title: !!seq {a: 1}"),
    "a mapping called text": _with(_TITLE, "title: !!str {a: 1}"),
    "a tag of its own": _with(_TITLE, "title: !vault x"),
    "a newer YAML": "%YAML 9.9\n---\n" + WELL,
    "a directive twice": "%YAML 1.2\n%YAML 1.2\n---\n" + WELL,
    "a YAML version of 5,000 digits": f"%YAML 1.{'9' * 5_000}\n---\n" + WELL,
    "a tag directive": "%TAG ! tag:x,2000:\n---\n" + _with(_TITLE, "title: !x y"),
    "a block indicator of 5,000 digits": _with(_TITLE, f"title: |{'9' * 5_000}\n  x"),
    "an escape of half a character": _with(_TITLE, r'title: "\ud800"'),
    "an escape beyond Unicode": _with(_TITLE, r'title: "\UFFFFFFFF"'),
    "a NUL by escape": _with(_TITLE, r'title: "\0"'),
    "a title of null": _with("name: quick", "name: null"),
    "a key of null": "null: 1\n" + WELL,
    "a key of a number": "1: 1\n" + WELL,
    "a key of a date": "2027-01-01: 1\n" + WELL,
    "a key of NaN": ".nan: 1\n" + WELL,
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
    "windows that are none": WELL + "allowed_hours: {time_zone: UTC, windows: [Mon-Xyz 99:99-99:99]}\n",
    "windows in another script": WELL + "allowed_hours: {time_zone: UTC, windows: [Mon-Fri ²²:00-06:00]}\n",
    "windows in Arabic digits": WELL
    + "allowed_hours: {time_zone: UTC, windows: ['Mon-Fri \u0669\u0669:00-06:00']}\n",
    "windows that backtrack": WELL + f"allowed_hours: {{time_zone: UTC, windows: ['{'M ' * 40_000}']}}\n",
    "a time zone like a path": WELL
    + "allowed_hours: {time_zone: ../../../etc/passwd, windows: [Mon 01:00-02:00]}\n",
    "a time zone of a folder": WELL + "allowed_hours: {time_zone: Europe, windows: [Mon 01:00-02:00]}\n",
    "a time zone of 90,000 letters": WELL
    + f"allowed_hours: {{time_zone: {'x' * 90_000}, windows: [Mon 01:00-02:00]}}\n",
    "a time zone with a NUL": WELL + 'allowed_hours: {time_zone: "a\\0b", windows: [Mon 01:00-02:00]}\n',
    "T-SQL of 900,000 letters": _with(
        _WORKLOAD, f'workload: {{name: sql_script, statement: "{"(" * 400_000}"}}'
    ),
}

STUDIES: dict[str, bytes] = {
    **{name: text.encode() for name, text in _TEXTS.items()},
    "Latin-1": _with(_TITLE, "title: Größe").encode("latin-1"),
    "UTF-16": WELL.encode("utf-16"),
    "UTF-32": WELL.encode("utf-32"),
    "half a character": WELL.encode() + b"\xf0\x9f",
    "a NUL": WELL.encode() + b"\0",
    "random bytes": bytes(range(256)) * 100,
    "an escape sequence": WELL.encode() + b"\x1b[2J",
    "a line separator": _with(_TITLE, "title: a\u2028: b: c").encode(),
    "two megabytes": WELL.encode() + b"# " + b"x" * 2_000_000,
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
