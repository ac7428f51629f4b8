"""Column types with the same meaning on both databases: UTC times and canonical JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Dialect, Text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.types import TypeDecorator, TypeEngine


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
        """The column type of this database."""
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
