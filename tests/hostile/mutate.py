"""Valid inputs with a few changes, by a seeded random: for tools/fuzz."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

ODD_TEXTS = (
    *("", " ", "\0", "\x1b[2J", "\u2028", "\ud800", "²", "\u0661", "-", "-1", "0", "0x", "0x" + "f" * 5_000),
    *("9" * 5_000, "1e999", ".nan", ".inf", "NaN", "null", "~", "true", "[]", "{}", "[[[[", "}}", "&a *a"),
    *("!!int ''", "!!binary x", "<<: *a", "? ", "- ", ": ", "'", '"', "\\", "#", "\t", "\n", "..", "{{ x }}"),
    *("=", "= 5 ms", "1,000", "1.5", "numa: ", "VPD", "VCPU 99999999: VPD 7", "%", "\ufeff", "2026-13-45"),
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**62, 1e308, 5e-324, "", " ", "²", "x", "\x1b[2J", "7" * 5_000),
    *("1,2,x", "9.9.9", "-1", "0", [], {}, [[]], [None], {"a": None}, ["x"], [0], [-1], [2**40]),
)


def mutated(text: str, dice: random.Random) -> str:
    """The text with one to four changes: spans removed, doubled, moved or replaced, odd texts put in."""
    for _ in range(dice.randint(1, 4)):
        start = dice.randrange(len(text) + 1)
        end = min(len(text), start + dice.choice((0, 1, 2, 5, 20, 100)))
        odd = dice.choice((*ODD_TEXTS, text[end : end + dice.randrange(40)], text[start:end] * 2))
        text = text[:start] + odd + text[end:]
    return text


def changed(document: Any, dice: random.Random) -> Any:
    """The document with another value in one to three places; keys and items may go."""
    for _ in range(dice.randint(1, 3)):
        node, place = document, list(_places(document))
        if not place:
            return dice.choice(ODD_VALUES)
        node, key = dice.choice(place)
        if dice.random() < 0.2:
            del node[key]
        else:
            node[key] = deepcopy(dice.choice(ODD_VALUES))
    return document


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from _places(node[key])


def with_other_bytes(data: bytes, dice: random.Random) -> bytes:
    """The bytes with a few of them changed, mostly in the directory at the end."""
    found = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        span = min(len(found), dice.choice((300, len(found))))
        found[len(found) - 1 - dice.randrange(span)] = dice.choice((0, 1, 0x80, 0xFF, dice.randrange(256)))
    return bytes(found[: dice.choice((len(found), len(found), dice.randrange(len(found))))])
