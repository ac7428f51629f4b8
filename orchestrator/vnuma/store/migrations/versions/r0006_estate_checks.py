"""Checks of an estate over time: each finding with its first and last check, and the first without it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0006"
down_revision = "0005"

TIME = sa.Text().with_variant(TIMESTAMP(timezone=True), "postgresql")
STANDS = sa.text("gone_check_id IS NULL")


def upgrade() -> None:
    """Add two tables; existing rows stay as they are."""
    op.create_table(
        "estate_check",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("read_at", TIME, nullable=False),
        sa.Column("recorded_at", TIME, nullable=False),
        sa.Column("product_version", sa.Text, nullable=False),
        sa.Column("simulated", sa.Text),
        sa.Column("vms", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="estate_check_pk"),
        sa.UniqueConstraint("source", "read_at", name="estate_check_source_read_at_uq"),
    )
    op.create_table(
        "estate_finding",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("object_kind", sa.Text, nullable=False),
        sa.Column("object_key", sa.Text, nullable=False),
        sa.Column("object_name", sa.Text, nullable=False),
        sa.Column("severity", sa.Text, nullable=False),
        *(
            sa.Column(f"{which}_check_id", sa.Integer, nullable=which == "gone")
            for which in ("first", "last", "gone")
        ),
        sa.PrimaryKeyConstraint("id", name="estate_finding_pk"),
        *(
            sa.ForeignKeyConstraint(
                [f"{which}_check_id"], ["estate_check.id"], name=f"estate_finding_{which}_check_id_fk"
            )
            for which in ("first", "last", "gone")
        ),
        sa.CheckConstraint("severity IN ('block','warn','info')", name="estate_finding_severity_ck"),
    )
    op.create_index("estate_finding_source_ix", "estate_finding", ["source"])
    op.create_index(
        "estate_finding_one_stands",
        "estate_finding",
        ["source", "rule", "object_kind", "object_key"],
        unique=True,
        sqlite_where=STANDS,
        postgresql_where=STANDS,
    )
