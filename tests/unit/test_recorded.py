"""What real (or simulated) servers answered, as golden cases: make lab-learn FILE=contact.yml adds one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from vnuma.engine.doctor.first_contact import SCHEMA, Redactor
from vnuma.logs.vmware import read_vmware_log
from vnuma.sqlserver.client.statistics_time import parse_messages

FILES = sorted((Path(__file__).parents[1] / "data" / "recorded").glob("*.yml"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def recorded(request: pytest.FixtureRequest) -> dict[str, Any]:
    """One recording."""
    document: dict[str, Any] = yaml.safe_load(request.param.read_text(encoding="utf-8"))
    return document


def test_a_recording_names_nobody(recorded: dict[str, Any]) -> None:
    """Nothing in it looks like an address, an identifier or an account."""
    assert recorded["schema"] == SCHEMA
    body = {part: recorded[part] for part in ("vsphere", "sql_server")}
    assert Redactor({}).all(body) == body


def test_its_timing_messages_are_read(recorded: dict[str, Any]) -> None:
    """Every statement that went through has an execution time, whatever the order of its messages."""
    for entry in recorded["sql_server"].get("answers", []):
        parts = entry["answer"]
        messages = [(part["state"], part["message"]) for part in parts if "message" in part]
        failed = any("error" in part for part in parts)
        assert failed or parse_messages(messages).execution, entry["statement"]


def test_its_log_lines_are_read(recorded: dict[str, Any]) -> None:
    """A vmware.log with lines on vNUMA gives the number of nodes."""
    lines = recorded["vsphere"]["vmware_log"]
    if isinstance(lines, list) and lines:
        assert read_vmware_log("\n".join(lines)).vpds


def test_its_views_have_what_the_product_reads(recorded: dict[str, Any]) -> None:
    """Columns without which no run could be read; others are asked for only where they are."""
    columns = recorded["sql_server"].get("columns")
    if columns:
        assert {"cpu_count", "ms_ticks", "sqlserver_start_time"} <= set(columns["sys.dm_os_sys_info"])
        assert {"node_id", "memory_node_id", "node_state_desc"} <= set(columns["sys.dm_os_nodes"])


def test_there_is_a_recording() -> None:
    """The lab's own at least: the form stays readable."""
    assert FILES
