"""The tables at the newest revision; `migrations/` has the steps.

Times are UTC; every `*_ms` is milliseconds; every `*_json` is canonical JSON text. The dataclasses in `rows`
document the rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Dialect,
    Double,
    Executable,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeDecorator, TypeEngine

from vnuma.store.rows import CellState, Outcome, RestoreOutcome, RunState, StopRequest

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
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
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
    return kind(**{name: value for key, value in columns.items() if (name := _field(kind, key))})


def _field(kind: type[T], column: str) -> str | None:
    name = column.removesuffix("_json")
    return name if name in kind.__dataclass_fields__ else None


def all_of(conn: Connection, kind: type[T], query: Executable) -> tuple[T, ...]:
    """Every row of a query as a dataclass."""
    rows = conn.execute(query)
    fields = [(at, name) for at, key in enumerate(rows.keys()) if (name := _field(kind, key))]
    return tuple(kind(**{name: row[at] for at, name in fields}) for row in rows)


def one_of(conn: Connection, kind: type[T], query: Executable, **values: object) -> T | None:
    """The only row of a query with these values of its parameters, as a dataclass; None without one."""
    row = conn.execute(query, values).mappings().one_or_none()
    return None if row is None else record_of(kind, row)


def add_unless_there(conn: Connection, table: Table, **values: object) -> None:
    """Add a row, unless there is one with that key: another controller may add it at this moment."""
    dialect = postgresql if conn.dialect.name == "postgresql" else sqlite
    conn.execute(dialect.insert(table).values(**values).on_conflict_do_nothing())


metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "fk": "%(table_name)s_%(column_0_name)s_fk",
        "uq": "%(table_name)s_%(column_0_N_name)s_uq",
        "ck": "%(table_name)s_%(constraint_name)s_ck",
        "ix": "%(table_name)s_%(column_0_N_name)s_ix",
    }
)

RUN_STATES = "'planned','running','stopping','stopped','finished','failed','conflict'"
CELL_STATES = "'pending','claimed','valid','failed','skipped'"
OUTCOMES = "'valid','invalid','failed','interrupted'"

study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("yaml", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    UniqueConstraint("name", "sha256"),
)

run = Table(
    "run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study_id", ForeignKey("study.id"), nullable=False),
    Column("name", Text, nullable=False, unique=True),
    Column("study_name", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("state", OneOf(RunState), nullable=False),
    Column("stop_requested", OneOf(StopRequest)),
    Column("simulated", Text),
    Column("product_version", Text, nullable=False),
    Column("driver_json", CanonicalJson),
    Column("inventory", Text),
    Column("ticket", Text),
    Column("created_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    Column("supervisor_pid", Integer),
    Column("supervisor_host", Text),
    Column("heartbeat_at", UtcTime),
    UniqueConstraint("study_name", "number"),
    CheckConstraint(f"state IN ({RUN_STATES})", name="state"),
    CheckConstraint("stop_requested IN ('cell','now')", name="stop"),
)

vm = Table(
    "vm",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("run.id"), nullable=False),
    Column("vm_key", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("esxi_host", Text, nullable=False),
    Column("node", Text),
    Column("baseline_json", CanonicalJson),
    Column("baseline_at", UtcTime),
    Column("restored_at", UtcTime),
    Column("restore_outcome", OneOf(RestoreOutcome)),
    Column("restore_detail_json", CanonicalJson),
    UniqueConstraint("run_id", "vm_key"),
    Index(None, "esxi_host"),
    CheckConstraint("(baseline_json IS NULL) = (baseline_at IS NULL)", name="baseline"),
)

site = Table(
    "site",
    metadata,
    Column("run_id", ForeignKey("run.id"), nullable=False),
    Column("node", Text, nullable=False),
    Column("supervisor_pid", Integer),
    Column("supervisor_host", Text),
    Column("heartbeat_at", UtcTime),
    Column("end_json", CanonicalJson),
    PrimaryKeyConstraint("run_id", "node"),
)

lease = Table(
    "lease",
    metadata,
    Column("vm_key", Text, primary_key=True),
    Column("run_id", ForeignKey("run.id")),
    Column("token", BigInteger, nullable=False),
    Column("holder", Text),
    Column("taken_at", UtcTime),
    CheckConstraint("(run_id IS NULL) = (holder IS NULL)", name="holder"),
    CheckConstraint("(run_id IS NULL) = (taken_at IS NULL)", name="taken"),
)

cell = Table(
    "cell",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("run.id"), nullable=False),
    Column("vm_id", ForeignKey("vm.id"), nullable=False),
    Column("arm", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("block", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("state", OneOf(CellState), nullable=False),
    Column("reason", Text),
    UniqueConstraint("vm_id", "block", "label"),
    UniqueConstraint("vm_id", "position"),
    Index(None, "run_id"),
    Index(
        "cell_one_claimed_per_vm",
        "vm_id",
        unique=True,
        sqlite_where=text("state = 'claimed'"),
        postgresql_where=text("state = 'claimed'"),
    ),
    CheckConstraint(f"state IN ({CELL_STATES})", name="state"),
    CheckConstraint("(state = 'skipped') = (reason IS NOT NULL)", name="skipped"),
)

attempt = Table(
    "attempt",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("cell_id", ForeignKey("cell.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("step", Text),
    Column("step_at", UtcTime),
    Column("started_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("outcome", OneOf(Outcome)),
    Column("reason", Text),
    Column("detail", Text),
    Column("intended_json", CanonicalJson),
    Column("predicted_json", CanonicalJson),
    Column("effective_json", CanonicalJson),
    Column("change_json", CanonicalJson),
    Column("timings_json", CanonicalJson),
    UniqueConstraint("cell_id", "number"),
    Index(
        "attempt_one_valid_per_cell",
        "cell_id",
        unique=True,
        sqlite_where=text("outcome = 'valid'"),
        postgresql_where=text("outcome = 'valid'"),
    ),
    CheckConstraint(f"outcome IN ({OUTCOMES})", name="outcome"),
    CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", name="ended"),
    CheckConstraint("outcome IS NULL OR outcome = 'valid' OR reason IS NOT NULL", name="reason"),
)

sample = Table(
    "sample",
    metadata,
    Column("attempt_id", ForeignKey("attempt.id"), nullable=False),
    Column("workload", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("form", Text, nullable=False),
    Column("iteration", Integer, nullable=False),
    Column("warmup", Boolean, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("reason", Text),
    Column("cpu_ms", Double),
    Column("elapsed_ms", Double),
    Column("parse_cpu_ms", Double),
    Column("parse_elapsed_ms", Double),
    Column("client_ms", Double),
    Column("rows", BigInteger),
    Column("waits_json", CanonicalJson),
    Column("execution_json", CanonicalJson),
    Column("value", Double),
    Column("figures_json", CanonicalJson),
    Column("at", UtcTime, nullable=False),
    PrimaryKeyConstraint("attempt_id", "workload", "size", "form", "iteration", "warmup"),
    CheckConstraint("outcome IN ('measured','failed')", name="outcome"),
    CheckConstraint("(outcome = 'measured') = (elapsed_ms IS NOT NULL)", name="measured"),
    CheckConstraint("(outcome = 'failed') = (reason IS NOT NULL)", name="failed"),
    CheckConstraint("elapsed_ms >= 0", name="elapsed"),
)

fact = Table(
    "fact",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("run.id"), nullable=False),
    Column("vm_id", ForeignKey("vm.id")),
    Column("attempt_id", ForeignKey("attempt.id")),
    Column("scope", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("value_json", CanonicalJson),
    Column("at", UtcTime, nullable=False),
    Index("fact_run_scope_ix", "run_id", "scope"),
    Index("fact_vm_scope_ix", "vm_id", "scope"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("run.id")),
    Column("at", UtcTime, nullable=False),
    Column("who", Text, nullable=False),
    Column("vm_key", Text, nullable=False),
    Column("vm", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("change_json", CanonicalJson),
    Column("detail", Text),
    Column("ticket", Text),
    Column("outcome", Text),
    Column("home", Text),
    Index(None, "run_id"),
)

estate_check = Table(
    "estate_check",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("read_at", UtcTime, nullable=False),
    Column("recorded_at", UtcTime, nullable=False),
    Column("product_version", Text, nullable=False),
    Column("simulated", Text),
    Column("vms", Integer, nullable=False),
    UniqueConstraint("source", "read_at"),
)

estate_finding = Table(
    "estate_finding",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("object_kind", Text, nullable=False),
    Column("object_key", Text, nullable=False),
    Column("object_name", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("first_check_id", ForeignKey("estate_check.id"), nullable=False),
    Column("last_check_id", ForeignKey("estate_check.id"), nullable=False),
    Column("gone_check_id", ForeignKey("estate_check.id")),
    Index(None, "source"),
    Index(
        "estate_finding_one_stands",
        *("source", "rule", "object_kind", "object_key"),
        unique=True,
        sqlite_where=text("gone_check_id IS NULL"),
        postgresql_where=text("gone_check_id IS NULL"),
    ),
    CheckConstraint("severity IN ('block','warn','info')", name="severity"),
)

schema_history = Table(
    "schema_history",
    metadata,
    Column("revision", Text, primary_key=True),
    Column("product_version", Text, nullable=False),
    Column("applied_at", UtcTime, nullable=False),
)
