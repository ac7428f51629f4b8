"""Column types with the same meaning on both databases, and rows as records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Dialect, Text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.types import TypeDecorator, TypeEngine

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
Word = TypeVar("Word", bound=StrEnum)


def utc_now() -> datetime:
    """The controller's time in UTC, used for every row."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """Fixed-width ISO 8601 in UTC, so that text order is time order."""
    if moment.tzinfo is None:
        raise ValueError(f"a time without a time zone cannot be stored: {moment!r}")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def canonical_json(value: object) -> str:
    """One text per value: sorted keys, no spaces, ASCII. Raises for NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


class UtcTime(TypeDecorator[datetime]):
    """ISO text on SQLite, `timestamptz` on PostgreSQL; always an aware datetime in Python."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> object:
        """Convert to UTC; raises for a naive time."""
        if value is None:
            return None
        text = iso(value)
        return value if dialect.name == "postgresql" else text

    def process_result_value(self, value: object, dialect: Dialect) -> datetime | None:
        """Convert to an aware time in UTC."""
        del dialect
        if value is None:
            return None
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return moment.astimezone(UTC)


class CanonicalJson(TypeDecorator[object]):
    """JSON stored as canonical text, so that equal values are equal bytes."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        """None becomes SQL NULL: "not recorded"."""
        del dialect
        return None if value is None else canonical_json(value)

    def process_result_value(self, value: object, dialect: Dialect) -> object:
        """Convert to lists, mappings and scalars."""
        del dialect
        return None if value is None else json.loads(str(value))


class OneOf(TypeDecorator[Word]):
    """Text that is one of an enum's words."""

    impl = Text
    cache_ok = True

    def __init__(self, words: type[Word]) -> None:
        super().__init__()
        self.words = words

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The word as it is stored."""
        del dialect
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Word | None:
        """Convert to the enum; raises ValueError for another word."""
        del dialect
        return None if value is None else self.words(value)


def record_of(kind: type[T], columns: Mapping[Any, Any]) -> T:
    """A dataclass from a row's columns; a document's column has its field's name and `_json`."""
    wanted = kind.__dataclass_fields__
    return kind(
        **{name: value for key, value in columns.items() if (name := key.removesuffix("_json")) in wanted}
    )
