"""The base of what is read from files, and what is wrong with it in our own sentences."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError
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
