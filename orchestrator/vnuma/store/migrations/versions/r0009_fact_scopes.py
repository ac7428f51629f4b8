"""Facts are found by their scope: a run of a thousand VMs has hundreds of thousands of them."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Index the run and the VM with the scope; the index on the run alone is part of the first."""
    op.drop_index("fact_run_id_ix", "fact")
    op.create_index("fact_run_scope_ix", "fact", ["run_id", "scope"])
    op.create_index("fact_vm_scope_ix", "fact", ["vm_id", "scope"])
