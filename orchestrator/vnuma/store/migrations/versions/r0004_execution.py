"""How each execution ran: scheduler, node, DOP, plan, grant, and by which clock it was timed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """A column; older samples have none, which is "not known"."""
    op.add_column("sample", sa.Column("execution_json", sa.Text))
