"""Imported runs own nothing here: no inventory, lease, claimed cell or supervisor.

Earlier products took over an archive's inventory and unfinished VMs, and `vnuma restore` loaded that
inventory with Ansible. Every import left a fact of scope `imported`, which identifies these runs.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0007"
down_revision = "0006"

IMPORTED = "SELECT run_id FROM fact WHERE scope = 'imported'"
CLAIMED = f"SELECT id FROM cell WHERE state = 'claimed' AND run_id IN ({IMPORTED})"

STATEMENTS = (
    f"""UPDATE run SET inventory = NULL, stop_requested = NULL, supervisor_pid = NULL,
        supervisor_host = NULL, heartbeat_at = NULL WHERE id IN ({IMPORTED})""",
    f"""UPDATE run SET state = 'stopped', finished_at = created_at
        WHERE state NOT IN ('stopped', 'finished', 'failed') AND id IN ({IMPORTED})""",
    f"UPDATE lease SET run_id = NULL, holder = NULL, taken_at = NULL WHERE run_id IN ({IMPORTED})",
    f"""UPDATE attempt SET outcome = 'interrupted', reason = 'interrupted', ended_at = started_at
        WHERE ended_at IS NULL AND cell_id IN ({CLAIMED})""",
    f"UPDATE cell SET state = 'pending' WHERE state = 'claimed' AND run_id IN ({IMPORTED})",
)


def upgrade() -> None:
    """Update only rows of imported runs; no table changes."""
    for statement in STATEMENTS:
        op.execute(text(statement))
