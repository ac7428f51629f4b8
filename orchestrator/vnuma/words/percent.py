"""A percentage in a study file: written as `1%`, kept as the ratio 0.01."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_TEXT = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)\s*%")


def percent_of(value: object) -> float:
    """The ratio of a text such as `0.5%`; accepts a ratio from our own code.

    Raises ValueError for anything else, since a bare number is ambiguous.
    """
    match = _TEXT.fullmatch(value.strip()) if isinstance(value, str) else None
    ratio = float(match[1]) / 100 if match else value if isinstance(value, float) else 0.0
    if not 0 < ratio < 1:
        raise ValueError(f"{value!r} is not a percentage between 0 and 100; write it with its sign, as in 1%")
    return ratio


def percent_text(ratio: float) -> str:
    """`1%`, `0.25%`."""
    return f"{ratio * 100:.4g}%"


Percent = Annotated[
    float,
    BeforeValidator(percent_of),
    PlainSerializer(percent_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]{1,4})?\s*%$", "examples": ["1%"]}),
]
