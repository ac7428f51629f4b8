"""A site's part of a run no longer has a work unit of a mesh."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Drop the columns of work units; how a part ended stays."""
    with op.batch_alter_table("site") as site:
        for column in ("unit", "unit_at", "unseen_since"):
            site.drop_column(column)
