"""What the live display shows of a run's progress."""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO, StringIO

import pytest
from rich.console import Console
from rich.text import Text

from tests.support.doc_blocks import ALL
from vnuma.cli.events import EventLog, json_lines
from vnuma.cli.progress import LineLog, block_lines, detail_lines
from vnuma.engine.notify import Event
from vnuma.engine.run.progress import Progress, VmProgress, line_of
from vnuma.errors import NotAtBaseline
from vnuma.store.rows import AttemptLine, Outcome, Run, RunState, StopRequest

NOW = datetime(2026, 11, 17, 20, 45, tzinfo=UTC)
RUN = Run(
    id=1,
    study_id=1,
    name="dakic2019.4",
    study_name="dakic2019",
    number=4,
    seed=1,
    state=RunState.RUNNING,
    stop_requested=None,
    simulated=None,
    product_version="0",
    driver=None,
    inventory=None,
    created_at=NOW,
    finished_at=None,
    supervisor_pid=None,
    supervisor_host=None,
    heartbeat_at=None,
)
VM = VmProgress(
    name="sql16-clone",
    host="esx01",
    host_key=("vc", "esx01"),
    done=17,
    valid=16,
    total=48,
    label="1x16 (A/A)",
    block=3,
    step="measure 3,000 x 3,000, server, iteration 3",
    since=NOW,
    repeated=1,
    last=(("2x8", "valid"), ("1x16", "failed"), ("16x1", "valid")),
    note="block 3, 4x4: failed, connection dropped",
    left_s=57_300.0,
    at_baseline=False,
    restore_words=None,
)


def shown(progress: Progress) -> list[str]:
    """The display as an 80-column terminal prints it."""
    console = Console(width=80, record=True, file=StringIO())
    console.print(Text("\n".join(block_lines(progress))))
    return console.export_text().splitlines()


def test_one_vm_shows_cells_block_bar_and_time_left_in_80_columns() -> None:
    """The bar is exact, character by character, and nothing is wider than the terminal."""
    lines = shown(Progress(RUN, (VM,), 8))

    assert lines[1] == "  17 of 48  block 3 of 8  [##########..................]  15 h 55 min left"
    assert max(map(len, block_lines(Progress(RUN, (VM,), 8)))) <= 80


def test_a_run_that_has_not_started_is_at_its_first_block() -> None:
    """Before the first claim nothing is said of the last one."""
    fresh = replace(VM, done=0, valid=0, block=None, label=None, step=None, last=(), note=None, left_s=None)

    assert "  0 of 48  block 1 of 8  [" in shown(Progress(RUN, (fresh,), 8))[1]


def test_several_vms_are_a_table_with_whole_names_and_a_bar_each() -> None:
    """No name is cut; how far each has come is seen without reading figures."""
    other = replace(VM, name="sql-warehouse-02", step=None, done=48)
    lines = shown(Progress(replace(RUN, simulated="paper"), (VM, other), 8))

    assert lines[0].startswith("SIMULATED")
    (row,) = [line for line in lines if line.startswith("sql-warehouse-02 ")]
    assert ["waiting" in row, "[##########]" in row] == [True, True]


@pytest.mark.parametrize("columns", [60, 80])
def test_several_vms_lose_no_word_on_a_narrow_terminal(columns: int) -> None:
    """Neither a name nor the reason of a retry: what does not fit continues below."""
    away = "power_on: vcsa01.example.com:443 has ended our session. Again in 3 s, try 2"
    other = replace(VM, name="sql-warehouse-production-02", step=away)

    lines = block_lines(Progress(RUN, (VM, other), 8), columns)

    assert max(map(len, lines)) <= columns
    words = " ".join(lines).split()
    assert "sql-warehouse-production-02" in words
    assert words[-6:] == ["session.", "Again", "in", "3", "s,", "try", "2"][-6:]


def test_a_stop_that_was_asked_for_is_shown_with_what_follows() -> None:
    """So that nobody presses Ctrl-C four times in fear."""
    lines = shown(Progress(replace(RUN, stop_requested=StopRequest.NOW), (VM,), 8))

    assert any("sql16-clone" in line and line.startswith("  Stopping") for line in lines)


def test_a_log_has_one_line_per_cell_and_none_when_nothing_is_new(capsys: pytest.CaptureFixture[str]) -> None:
    """The same state twice is one line; a failure has its reason."""
    log = LineLog()
    log.show(Progress(RUN, (VM,), 8))
    log.show(Progress(RUN, (VM,), 8))
    failed = replace(
        VM, last=(("4x4", "failed, tried again"),), note_detail="it printed no figure.\n  Fix it."
    )
    log.show(Progress(RUN, (failed,), 8))

    assert [line.partition(" ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "cell 17/48 vm=sql16-clone arm=2x8 valid left=15 h 55 min",
        "cell 17/48 vm=sql16-clone arm=4x4 failed, tried again left=15 h 55 min: it printed no figure.",
    ]


def test_a_vm_that_is_restored_says_so_and_not_that_it_stops() -> None:
    """Nor how long it takes: it says what ends the retries, and the command that restores then."""
    away = replace(VM, label=None, step="restoring: vc01 does not answer.")

    text = "\n".join(block_lines(Progress(replace(RUN, stop_requested=StopRequest.NOW), (away,), 8)))

    parts = ("restoring: vc01 does not answer.", "vnuma restore --run", "kill -9")
    assert [part for part in parts if part not in text] == []
    assert line_of(Progress(RUN, (replace(away, step="restoring"),), 8)).event == "restoring"


def test_a_log_tells_each_repetition_of_restoring_once(capsys: pytest.CaptureFixture[str]) -> None:
    """With what failed, the next attempt and the last; otherwise a log is silent for a quarter of an hour."""
    log = LineLog()
    for tries in ("Try 2 at 20:45:03", "Try 2 at 20:45:03", "Try 3 at 20:45:07"):
        away = f"restoring: vc01 does not answer. {tries}, given up at 21:00:00."
        log.show(Progress(RUN, (replace(VM, step=away, last=()),), 8))

    assert re.findall(r"Try (\d)", capsys.readouterr().err) == ["2", "3"]


def test_a_step_that_is_repeated_says_why_within_the_line() -> None:
    """The step, then what prevents it; a long address does not break the block."""
    away = "power_on: " + "vcsa01.example.com:443 has ended our session. Again in 3 s, try 2" * 2
    lines = block_lines(Progress(RUN, (replace(VM, step=away),), 8))
    assert any("power-on, waiting for Tools: vcsa01" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_vms_of_one_host_take_turns_and_hosts_work_side_by_side() -> None:
    """The host with most to do decides; neighbours measured together wait for nobody.

    Another vCenter's esx01 is another host.
    """
    hosts = {"a": ("vc", "esx01"), "b": ("vc", "esx01"), "c": ("vc", "esx02"), "d": ("vc2", "esx01")}
    left = {"a": 600.0, "b": 1200.0, "c": 1500.0, "d": 900.0}
    vms = tuple(
        replace(VM, name=name, host=key[1], host_key=key, left_s=left[name]) for name, key in hosts.items()
    )

    assert Progress(RUN, vms, 8).left_s == 1800
    assert Progress(RUN, vms, 8, take_turns=False).left_s == 1500
    assert Progress(RUN, (replace(VM, left_s=None),), 8).left_s is None


def test_events_are_json_lines_told_once() -> None:
    """A cell, the step, and nothing again while nothing changes."""
    stream = BytesIO()
    log = EventLog(json_lines(stream))
    back = replace(VM, step=None, restore_words="sql16-clone: 31 of 31 settings read back equal")
    for vm in (VM, VM, replace(VM, step="dataset"), back):
        log.show(Progress(RUN, (vm,), 8))

    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["cell", "step", "step", "restored"]
    assert {event["schema"] for event in events} == {"vnuma/event/1"}
    assert {event["simulated"] for event in events} == {False}
    assert (events[0]["arm"], events[0]["outcome"], events[0]["cells_ended"]) == ("2x8", "valid", 17)


def lasting(number: int, detail: str) -> AttemptLine:
    """An attempt that any other would repeat."""
    return AttemptLine(
        *(number, 1, 1, "4x4", 3, number, None, None, NOW, NOW, Outcome.FAILED, "privilege_missing", detail)
    )


def test_events_tell_the_run_from_its_start_to_its_end() -> None:
    """What a person has to help with once, and nothing that an earlier part of the run met."""
    heard: list[Event] = []
    log = EventLog(heard.append)
    old, new = (lasting(number, f"sql16-clone lacks it.\n  Grant {number}.") for number in (1, 2))
    begun = replace(VM, step=None, last=(), lasting=old)
    log.start(Progress(RUN, (begun,), 8))
    for vm in (begun, replace(begun, lasting=new), replace(begun, lasting=new)):
        log.show(Progress(RUN, (vm,), 8))
    log.show(Progress(RUN, (replace(begun, lasting=new, restore_failed=True, restore_words="away"),), 8))
    log.end("not_at_baseline", NotAtBaseline("sql16-clone is away.", fix="vnuma restore"))

    assert [event["event"] for event in heard] == [
        *("started", "trouble", "trouble", "restored", "not_at_baseline")
    ]
    assert (heard[1]["vm"], heard[1]["words"], heard[1]["next"]) == (
        "sql16-clone",
        "sql16-clone lacks it.",
        "Grant 2.",
    )
    assert (heard[-1]["exit_code"], heard[-1]["words"], heard[-1]["next"]) == (
        7,
        "sql16-clone is away.",
        "vnuma restore",
    )
    assert heard[-1]["vms"] == [{"name": "sql16-clone", "at_baseline": False, "words": "away"}]


class FullDisk(BytesIO):
    """A file on a disk that has filled up."""

    def write(self, _line: object, /) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_events_that_cannot_be_written_do_not_end_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    """It is said once, and the run is followed no further."""
    log = EventLog(json_lines(FullDisk()))
    for vm in (VM, replace(VM, step="dataset")):
        log.show(Progress(RUN, (vm,), 8))

    assert capsys.readouterr().err.count(os.strerror(errno.ENOSPC)) == 1


def test_a_run_in_detail_says_when_it_began_and_what_it_is_at() -> None:
    """With what was repeated and what the last cells came to."""
    text = "\n".join(detail_lines(Progress(RUN, (VM,), 8)))

    parts = ("began", "measure 3,000 x 3,000", "since", "1 attempt repeated", "connection dropped")
    assert [part for part in parts if part not in text] == []


def test_the_event_that_the_page_shows_is_one() -> None:
    """docs/notify.md's JSON has the keys of an event, and no other."""
    (block,) = [one for one in ALL if one.kind == "json"]
    shown = json.loads(block.text)
    heard: list[Event] = []
    log = EventLog(heard.append)
    log.start(Progress(RUN, (VM,), 8))
    log.end("ended", None, shown["words"])

    assert list(shown) == list(heard[-1])
    assert list(shown["vms"][0]) == list(heard[-1]["vms"][0])
