"""The tables of the first store."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0001"
down_revision = None

TIME = sa.Text().with_variant(TIMESTAMP(timezone=True), "postgresql")
JSON = sa.Text()


def upgrade() -> None:
    """Create every table. Later revisions change them; this one is never edited."""
    _studies_and_runs()
    _vms()
    _cells()
    _results()
    op.create_table(
        "schema_history",
        sa.Column("revision", sa.Text, nullable=False),
        sa.Column("product_version", sa.Text, nullable=False),
        sa.Column("applied_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("revision", name="schema_history_pk"),
    )


def _studies_and_runs() -> None:
    op.create_table(
        "study",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("yaml", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="study_pk"),
        sa.UniqueConstraint("name", "sha256", name="study_name_sha256_uq"),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("study_id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("study_name", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("stop_requested", sa.Text),
        sa.Column("simulated", sa.Text),
        sa.Column("product_version", sa.Text, nullable=False),
        sa.Column("driver_json", JSON),
        sa.Column("inventory", sa.Text),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("finished_at", TIME),
        sa.Column("supervisor_pid", sa.Integer),
        sa.Column("supervisor_host", sa.Text),
        sa.Column("heartbeat_at", TIME),
        sa.PrimaryKeyConstraint("id", name="run_pk"),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name="run_study_id_fk"),
        sa.UniqueConstraint("name", name="run_name_uq"),
        sa.UniqueConstraint("study_name", "number", name="run_study_name_number_uq"),
        sa.CheckConstraint(
            "state IN ('planned','running','stopping','stopped','finished','failed','conflict')",
            name="run_state_ck",
        ),
        sa.CheckConstraint("stop_requested IN ('cell','now')", name="run_stop_ck"),
    )


def _vms() -> None:
    op.create_table(
        "vm",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("vm_key", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("esxi_host", sa.Text, nullable=False),
        sa.Column("baseline_json", JSON),
        sa.Column("baseline_at", TIME),
        sa.Column("restored_at", TIME),
        sa.Column("restore_outcome", sa.Text),
        sa.Column("restore_detail_json", JSON),
        sa.PrimaryKeyConstraint("id", name="vm_pk"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="vm_run_id_fk"),
        sa.UniqueConstraint("run_id", "vm_key", name="vm_run_id_vm_key_uq"),
        sa.CheckConstraint("(baseline_json IS NULL) = (baseline_at IS NULL)", name="vm_baseline_ck"),
    )
    op.create_index("vm_esxi_host_ix", "vm", ["esxi_host"])
    op.create_table(
        "lease",
        sa.Column("vm_key", sa.Text, nullable=False),
        sa.Column("run_id", sa.Integer),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text),
        sa.Column("taken_at", TIME),
        sa.PrimaryKeyConstraint("vm_key", name="lease_pk"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="lease_run_id_fk"),
        sa.CheckConstraint("(run_id IS NULL) = (holder IS NULL)", name="lease_holder_ck"),
        sa.CheckConstraint("(run_id IS NULL) = (taken_at IS NULL)", name="lease_taken_ck"),
    )


def _cells() -> None:
    op.create_table(
        "cell",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("vm_id", sa.Integer, nullable=False),
        sa.Column("arm", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("block", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.PrimaryKeyConstraint("id", name="cell_pk"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="cell_run_id_fk"),
        sa.ForeignKeyConstraint(["vm_id"], ["vm.id"], name="cell_vm_id_fk"),
        sa.UniqueConstraint("vm_id", "block", "label", name="cell_vm_id_block_label_uq"),
        sa.UniqueConstraint("vm_id", "position", name="cell_vm_id_position_uq"),
        sa.CheckConstraint("state IN ('pending','claimed','valid','failed','skipped')", name="cell_state_ck"),
        sa.CheckConstraint("(state = 'skipped') = (reason IS NOT NULL)", name="cell_skipped_ck"),
    )
    op.create_index("cell_run_id_ix", "cell", ["run_id"])
    _unique_where("cell_one_claimed_per_vm", "cell", "vm_id", "state = 'claimed'")
    op.create_table(
        "attempt",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("cell_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("step", sa.Text),
        sa.Column("step_at", TIME),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("outcome", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("intended_json", JSON),
        sa.Column("predicted_json", JSON),
        sa.Column("effective_json", JSON),
        sa.Column("change_json", JSON),
        sa.Column("timings_json", JSON),
        sa.PrimaryKeyConstraint("id", name="attempt_pk"),
        sa.ForeignKeyConstraint(["cell_id"], ["cell.id"], name="attempt_cell_id_fk"),
        sa.UniqueConstraint("cell_id", "number", name="attempt_cell_id_number_uq"),
        sa.CheckConstraint(
            "outcome IN ('valid','invalid','failed','interrupted')", name="attempt_outcome_ck"
        ),
        sa.CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", name="attempt_ended_ck"),
        sa.CheckConstraint(
            "outcome IS NULL OR outcome = 'valid' OR reason IS NOT NULL", name="attempt_reason_ck"
        ),
    )
    _unique_where("attempt_one_valid_per_cell", "attempt", "cell_id", "outcome = 'valid'")


def _results() -> None:
    op.create_table(
        "sample",
        sa.Column("attempt_id", sa.Integer, nullable=False),
        sa.Column("workload", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("form", sa.Text, nullable=False),
        sa.Column("iteration", sa.Integer, nullable=False),
        sa.Column("warmup", sa.Boolean, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("cpu_ms", sa.Double),
        sa.Column("elapsed_ms", sa.Double),
        sa.Column("parse_cpu_ms", sa.Double),
        sa.Column("parse_elapsed_ms", sa.Double),
        sa.Column("client_ms", sa.Double),
        sa.Column("rows", sa.BigInteger),
        sa.Column("waits_json", JSON),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint(
            "attempt_id", "workload", "size", "form", "iteration", "warmup", name="sample_pk"
        ),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name="sample_attempt_id_fk"),
        sa.CheckConstraint("outcome IN ('measured','failed')", name="sample_outcome_ck"),
        sa.CheckConstraint("(outcome = 'measured') = (elapsed_ms IS NOT NULL)", name="sample_measured_ck"),
        sa.CheckConstraint("(outcome = 'failed') = (reason IS NOT NULL)", name="sample_failed_ck"),
        sa.CheckConstraint("elapsed_ms >= 0", name="sample_elapsed_ck"),
    )
    op.create_table(
        "fact",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("vm_id", sa.Integer),
        sa.Column("attempt_id", sa.Integer),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("value_json", JSON),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="fact_pk"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fact_run_id_fk"),
        sa.ForeignKeyConstraint(["vm_id"], ["vm.id"], name="fact_vm_id_fk"),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name="fact_attempt_id_fk"),
    )
    op.create_index("fact_run_id_ix", "fact", ["run_id"])


def _unique_where(name: str, table: str, column: str, condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, [column], unique=True, sqlite_where=where, postgresql_where=where)
