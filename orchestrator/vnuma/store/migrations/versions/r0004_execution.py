"""How each execution ran: scheduler, node, DOP, plan, grant, and the clock that timed it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add a column; it is null, "not known", in older samples."""
    op.add_column("sample", sa.Column("execution_json", sa.Text))
