"""Texts that break a reader of YAML or JSON wherever they stand, by name."""

from __future__ import annotations

from collections.abc import Mapping


def as_bytes(content: str | bytes) -> bytes:
    """A text as UTF-8, halves of characters included."""
    return content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")


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

YAML_VALUES = {
    "5,000 levels of lists": "[" * 5_000 + "]" * 5_000,
    "5,000 open levels": "[" * 5_000,
    "5,000 levels of mappings": "{a: " * 5_000 + "1" + "}" * 5_000,
    "5,000 levels by dashes": "\n  " + "- " * 5_000 + "1",
    "5,000 levels of questions": "\n  " + "? " * 5_000 + "1",
    "5,000 levels of mappings by dashes": "\n  " + "- a: " * 5_000 + "1",
    "100,000 levels of lists": "[" * 100_000 + "]" * 100_000,
    "5,000 open quotes": "'" * 5_001,
    "5,000 exclamation marks": "!" * 5_000 + " x",
    "60,000 anchors": "[" + ", ".join(f"&a{n} 1" for n in range(60_000)) + "]",
    "400,000 commas": "[" + "1," * 400_000 + "]",
    "a merge with itself": "&a {<<: *a}",
    "a merge with itself in a list": "&a {<<: [*a, *a]}",
    "a merge in a circle": "&x {y: &y {<<: *x}, <<: *y}",
    "a merge of text": "{<<: text}",
    "a merge of a list of text": "{<<: [text]}",
    "a list that holds itself": "&a [*a]",
    "a mapping that holds itself": "&a {a: *a}",
    "a mapping that is its own key": "&a {*a : 1}",
    "a list as a key": "{[1, 2]: 1}",
    "an unknown alias": "*nobody",
    "a Python object": "!!python/object/apply:os.system ['true']",
    "a set": "!!set {a, b}",
    "an ordered mapping": "!!omap [a: 1, 2]",
    "pairs": "!!pairs [a: 1, 2]",
    "bytes": "!!binary 'not base64'",
    "bytes that are whole": "!!binary 'AAECAwQF/w=='",
    **{f"no {kind}": f"!!{kind} x" for kind in ("int", "float", "bool", "null", "timestamp")},
    "an empty integer": "!!int ''",
    "a list called a mapping": "!!map [1]",
    "a mapping called a list": "!!seq {a: 1}",
    "a mapping called text": "!!str {a: 1}",
    "a tag of its own": "!vault x",
    "a block indicator of 5,000 digits": f"|{'9' * 5_000}\n  x",
    "an escape of half a character": r'"\ud800"',
    "an escape beyond Unicode": r'"\UFFFFFFFF"',
    "a NUL by escape": r'"\0"',
    "half a character": "\ud800",
}
"""For a field that takes text or a list; none of them is what it takes."""


def aliases(first: str, line: str, levels: int, field: str) -> str:
    """A document whose field has an alias of aliases, each level as `line`."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} " + line.format(f"*a{n - 1}") for n in range(1, levels)]
    return "\n".join(lines) + f"\n{field}: *a{levels - 1}\n"


TEN = ", ".join(["{0}"] * 10)


def yaml_files(well: str, filled: Mapping[str, str], field: str) -> dict[str, str | bytes]:
    """What breaks a reader of YAML: made of a document that is right, and of `filled`, with a value each."""
    return {
        "nothing": "",
        "a byte order mark alone": "\ufeff",
        "a list": "- 1\n- 2\n",
        "several documents": f"{well}---\n{well}",
        "merges of merges": aliases("{x: 1}", f"{{{{<<: [{TEN}], y: 1}}}}", 9, field),
        "merges that double": aliases("{x: 1}", "{{<<: [{0}, {0}]}}", 40, field),
        "aliases": aliases("[x]", f"[{TEN}]", 9, field),
        "aliases that double": aliases("[x]", "[{0}, {0}]", 40, field),
        "a mapping as a key": well + "? {a: 1}\n: 2\n",
        "a newer YAML": "%YAML 9.9\n---\n" + well,
        "a directive twice": "%YAML 1.2\n%YAML 1.2\n---\n" + well,
        "a YAML version of 5,000 digits": f"%YAML 1.{'9' * 5_000}\n---\n" + well,
        "UTF-16": well.encode("utf-16"),
        "UTF-32": well.encode("utf-32"),
        "half of a character": well.encode() + b"\xf0\x9f",
        "a NUL": well + "\0",
        "random bytes": bytes(range(256)) * 100,
        "an escape sequence": well + "\x1b[2J",
        **{f"a key of {key}": f"{key}: 1\n{well}" for key in ("null", "1", ".nan", "2027-01-01")},
        **filled,
    }
