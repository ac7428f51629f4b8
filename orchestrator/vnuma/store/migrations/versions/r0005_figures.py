"""A workload's results besides time: its metric's value, and its other figures."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add two columns; older samples have neither, since their metric is the elapsed time."""
    op.add_column("sample", sa.Column("value", sa.Double))
    op.add_column("sample", sa.Column("figures_json", sa.Text))
