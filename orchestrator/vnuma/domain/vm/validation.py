"""What pydantic found wrong, in our sentences."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import ErrorDetails


def message(item: ErrorDetails) -> str:
    """One finding, as the end of a sentence: without the prefix that pydantic gives to our own messages."""
    text = str(item["msg"]).removeprefix("Value error, ")
    return f"{text[:1].lower()}{text[1:]}"


def messages(error: ValidationError, whole: str = "") -> str:
    """All findings on one line, each with its field, or with `whole` where it is of the value as a whole."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or whole}: {message(item)}" for item in error.errors()
    )
