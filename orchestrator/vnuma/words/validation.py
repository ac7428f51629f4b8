"""The base of what is read from files, its percentages, and what is wrong with it in our own sentences."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails


class Strict(BaseModel):
    """Base of everything read from a file: unknown fields are errors, and values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


FIELD_FAULTS = {
    "string_pattern_mismatch": "must match {pattern}",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "too_short": "must have at least {min_length}",
    "too_long": "must have at most {max_length}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "model_type": "must be a mapping of fields",
}
"""By pydantic's type of finding. The value is not repeated, since it may be a misplaced password."""


def message(item: ErrorDetails) -> str:
    """One finding as the end of a sentence, without pydantic's prefix for our own messages."""
    if item["type"] in FIELD_FAULTS:
        return FIELD_FAULTS[item["type"]].format_map(item.get("ctx", {}))
    text = str(item["msg"]).removeprefix("Value error, ")
    return f"{text[:1].lower()}{text[1:]}"


def messages(error: ValidationError, whole: str = "") -> str:
    """All findings on one line, each with its field, or with `whole` for the value as a whole."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or whole}: {message(item)}" for item in error.errors()
    )


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
