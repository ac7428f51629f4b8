"""The database itself refuses changes to a stored baseline or sample."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

SQLITE = """
CREATE TRIGGER {table}_written_once BEFORE UPDATE{columns} ON {table} WHEN {condition}
BEGIN SELECT RAISE(ABORT, '{message}'); END
"""
POSTGRESQL_FUNCTION = """
CREATE FUNCTION {table}_written_once() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'; END $$
"""
POSTGRESQL_TRIGGER = """
CREATE TRIGGER {table}_written_once BEFORE UPDATE{columns} ON {table}
FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {table}_written_once()
"""


def upgrade() -> None:
    """One trigger a table; on SQLite in one statement, on PostgreSQL with a function."""
    _guard(
        "vm",
        columns=" OF baseline_json, baseline_at",
        condition="OLD.baseline_json IS NOT NULL",
        message="a baseline is written once",
    )
    _guard("sample", columns="", condition="true", message="a sample is written once")


def _guard(table: str, *, columns: str, condition: str, message: str) -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    for template in (POSTGRESQL_FUNCTION, POSTGRESQL_TRIGGER) if postgresql else (SQLITE,):
        op.execute(
            template.format(table=table, columns=columns, condition=condition, message=message).strip()
        )
