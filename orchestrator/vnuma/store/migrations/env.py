"""Alembic's entry point: runs the migrations on the given connection and transaction."""

from __future__ import annotations

from alembic import context

attributes = context.config.attributes
context.configure(connection=attributes["connection"], version_table=attributes["version_table"])
with context.begin_transaction():
    context.run_migrations()
