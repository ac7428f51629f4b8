"""The audit log says what became of each change, and in whose file its lines are.

Documented in `vnuma.store.audit.AuditLine`. Earlier lines keep neither: rows of the log are written once.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add two columns."""
    op.add_column("audit", sa.Column("outcome", sa.Text))
    op.add_column("audit", sa.Column("home", sa.Text))
