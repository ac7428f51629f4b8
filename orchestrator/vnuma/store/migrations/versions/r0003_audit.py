"""The change ticket of a run, and the audit log: one row for each change to a VM."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0003"
down_revision = "0002"

TIME = sa.Text().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    """Add a column and a table; existing rows stay as they are."""
    op.add_column("run", sa.Column("ticket", sa.Text))
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("run_id", sa.Integer),
        sa.Column("at", TIME, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("vm_key", sa.Text, nullable=False),
        sa.Column("vm", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("change_json", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("ticket", sa.Text),
        sa.PrimaryKeyConstraint("id", name="audit_pk"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="audit_run_id_fk"),
    )
    op.create_index("audit_run_id_ix", "audit", ["run_id"])
