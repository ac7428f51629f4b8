"""Sites: who supervises the VMs of a mesh node in a run over several sites.

Documented in `vnuma.store.rows.Site`.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0008"
down_revision = "0007"

TIME = sa.Text().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    """Add a table and a column; the VMs of earlier runs were reached from where the run was started."""
    op.add_column("vm", sa.Column("node", sa.Text))
    op.create_table(
        "site",
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("unit", sa.Text),
        sa.Column("unit_at", TIME),
        sa.Column("supervisor_pid", sa.Integer),
        sa.Column("supervisor_host", sa.Text),
        sa.Column("heartbeat_at", TIME),
        sa.Column("unseen_since", TIME),
        sa.Column("end_json", sa.Text),
        sa.PrimaryKeyConstraint("run_id", "node", name="site_pk"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="site_run_id_fk"),
    )
