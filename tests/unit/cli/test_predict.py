"""`vnuma predict`: a table for people, JSON for scripts, and refusals that say what would be right."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cli import vnuma_here
from vnuma.domain.topology.forecast import ranges

SNAPSHOT = Path(__file__).parents[2] / "estate" / "data" / "inventory-1.json"
PAPER = ("predict", "--vcpus", "16", "--memory", "64", "--host-nodes", "2x16/96", "--esxi", "6.0")


def rows(*options: str | Path) -> list[dict[str, Any]]:
    """What `vnuma predict` tells a program of each shape or size."""
    shown = vnuma_here(*options, "--format", "json")
    assert shown.code == 0, shown.text
    found: list[dict[str, Any]] = json.loads(shown.out)["rows"]
    return found


def test_every_shape_is_predicted_with_its_confidence() -> None:
    """The paper's arms, under an edition that counts sockets: as a line of a table, and for programs."""
    standard = (*PAPER, "--edition", "standard", "--sql", "2019")
    shown = vnuma_here(*standard)

    assert shown.code == 0, shown.text
    assert max(map(len, shown.out.splitlines())) <= 100
    (eight,) = [row for row in rows(*standard) if row["topology"] == "8x2"]
    assert (eight["vnuma_nodes"], eight["confidence"], eight["alternatives"]) == (8, "low", [1])
    assert (eight["sql_cpu_nodes_online"], eight["usable_cores"], eight["by_sql"]["otherwise"]) == (4, 8, 16)


HIDDEN = "--memory 256 --host-nodes 2x20/384@7.0 --set cpuHotAddEnabled=true"
TOO_MUCH = "--memory 600 --host-nodes 2x32/256@8.0"
AUTOMATIC = "--host-nodes 2x20/384@8.0 --memory 64 --edition standard"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # Unlike hosts are rows of their own: 18 and 12, or three nodes.
        (
            "--vcpus 30 --memory 512 --cores-per-socket 6 "
            "--host-nodes 2x20/384@7.0 --host-nodes 4x14/256@7.0",
            [
                {"node_sizes": [18, 12], "confidence": "low"},
                {"node_sizes": [12, 12, 6], "confidence": "low"},
            ],
        ),
        # The VM uses two host nodes, and the guest sees one: that is not called local.
        (f"{HIDDEN} --vcpus 24 --cores-per-socket 12", [{"hidden_host_nodes": 2}]),
        (f"{HIDDEN} --sweep vcpus=21..40", [{"hidden_host_nodes": 2}]),
        # Half of such memory is not merely remote: the VM does not run there.
        (f"{TOO_MUCH} --vcpus 16", [{"more_memory_than_host": True}]),
        (f"{TOO_MUCH} --sweep vcpus=4..16", [{"more_memory_than_host": True}]),
        # Sizes that sockets divide are rows.
        (
            "--memory 256 --host-nodes 2x20/384@7.0 --sweep 8..20 --cores-per-socket 4",
            [{"vcpus": 8}, {"vcpus": 12}, {"vcpus": 16}, {"vcpus": 20}],
        ),
        # Counted as one core per socket, Standard would use 4 of the 24.
        (f"{AUTOMATIC} --sweep 16..16", [{"topology": "1x16", "usable_cores": 16}]),
        (f"{AUTOMATIC} --sweep 24..24", [{"topology": "2x12", "usable_cores": 24}]),
        # Two nodes in four vNUMA nodes: each takes half of a host node, and all take nearly both.
        (
            "--vcpus 16 --memory 500 --host-nodes 2x28/256@7.0 --cores-per-socket 4 "
            "--set numa.vcpu.followcorespersocket=1",
            [{"remote_mb": 0, "share_of_node_memory": pytest.approx(0.98, abs=0.005)}],
        ),
    ],
)
def test_json_has_what_differs_by_host_size_and_memory(options: str, expected: list[dict[str, Any]]) -> None:
    """The distinct rows, of one shape or of a sweep."""
    found = [{name: row[name] for name in expected[0]} for row in rows("predict", *options.split())]

    assert [row for at, row in enumerate(found) if row not in found[:at]] == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--cores-per-socket", "5"), "5 cores per socket do not divide 16 vCPUs"),
        (("--edition", "home"), "Use one of developer"),
        (("--sql", "2018"), "SQL Server 2018"),
        (("--edition", "web", "--sql", "2025"), "no Web edition"),
        (("--set", "memorySpeed=3"), "not a setting"),
        (("--set", "numCoresPerSocket=3"), "--cores-per-socket"),
        (("--host-nodes", "16"), "2x16/96@7.0"),
        (("--format", "svg"), "--sweep vcpus=4..128"),
        (("--cores-per-socket", "4", "--format", "png"), "-o vm.png"),
        (("-o", "prediction"), "--format json, csv, svg or png"),
        (("--sweep", "4..20"), "--sweep"),
        (("--sweep", "80..4"), "--sweep"),
    ],
)
def test_a_wrong_option_is_refused_with_what_would_be_right(options: tuple[str, ...], sentence: str) -> None:
    """Exit code 2: the command line is wrong."""
    refused = vnuma_here(*PAPER, *options)

    assert (refused.code, sentence in refused.err) == (2, True), refused.text


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--vcpus 128", 0),
        ("--vcpus 129", 3),
        ("--vcpus 129 --host-nodes 2x40/256@8.0", 0),
        ("--sweep 4..200", 0),
        ("--vcpus 100 --hardware 9", 3),
        ("--vcpus 16 --set coresPerNumaNode=5", 3),
    ],
)
def test_a_vm_that_powers_on_nowhere_is_shown_and_ends_as_bad_input(options: str, code: int) -> None:
    """A host with two threads a core takes twice its cores; a sweep marks the sizes that it does not take."""
    ran = vnuma_here("predict", "--memory", "64", "--host-nodes", "2x32/256@8.0", *options.split())

    assert (ran.code, "vNUMA nodes" in ran.out) == (code, True), ran.text


def test_a_file_that_cannot_be_written_is_refused() -> None:
    """It is the user's to choose another."""
    table = ("--sweep", "8..9", "--format", "csv", "-o", "/proc/vnuma/sizes.csv")
    assert vnuma_here("predict", "--memory", "256", "--host-nodes", "2x20/384@7.0", *table).code == 3


def test_a_vm_of_a_snapshot_is_predicted_as_it_is() -> None:
    """Its own shape on its own host; a host that was not read is named."""
    shown = vnuma_here("predict", "--vm", "sql16", "--snapshot", SNAPSHOT, "--format", "json")

    document = json.loads(shown.out)
    (row,) = document["rows"]
    assert (shown.code, document["hosts_not_read"]) == (0, ["esx02"])
    assert (row["topology"], row["vnuma_nodes"], row["hosts"]) == ("8x2", 1, ["esx01"])


def test_a_vm_whose_last_socket_is_not_full_is_not_predicted(tmp_path: Path) -> None:
    """No host powers on 16 vCPUs with 3 cores per socket; with other sizes asked for, it can be predicted."""
    document = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    vm = next(one["facts"] for one in document["estates"][0]["vms"] if one["facts"]["name"] == "sql16")
    vm["settings"]["numCoresPerSocket"] = 3
    snapshot = tmp_path / "estate.json"
    snapshot.write_text(json.dumps(document), encoding="utf-8")

    refused = vnuma_here("predict", "--vm", "sql16", "--snapshot", snapshot)

    assert refused.code == 3, refused.text
    assert vnuma_here("predict", "--vm", "sql16", "--snapshot", snapshot, "--vcpus", "16").code == 0


SWEEP = ("predict", "--memory", "256", "--host-nodes", "2x20/384@7.0")


@pytest.mark.parametrize(("sql", "starts"), [("2019", True), ("2022", False)])
def test_a_node_with_which_sql_server_does_not_start_is_named(sql: str, starts: bool) -> None:
    """96 vCPUs in one node: SQL Server 2022 stops at more than 64 (S22)."""
    (row,) = rows(
        *("predict", "--vcpus", "96", "--memory", "512", "--host-nodes", "2x96/1024@8.0"),
        *("--cores-per-socket", "96", "--sql", sql),
    )

    assert (row["sql_does_not_start"] is None) is starts


@pytest.mark.parametrize(
    ("memory", "hosts", "sweep", "lines"),
    [
        (
            "256",
            ["2x20/384@7.0"],
            "vcpus=4..80",
            [
                "4-20 1 all high local",
                "21-40 2 22-40 by 2 high if even local",
                "41-80 - - - does not fit",
            ],
        ),
        # With 500 GB the larger of two uneven nodes of 256 GB is too small.
        ("500", ["4x14/256@7.0"], "vcpus=15..28", ["15-28 2 16-28 by 2 high if even local if even"]),
        (
            "256",
            ["2x20/384@7.0", "4x14/256@7.0"],
            "10..16",
            ["On 2x20/384@7.0:", "On 4x14/256@7.0:", "Even on every host: 10-14, 16"],
        ),
    ],
    ids=["one host", "remote memory", "other node sizes"],
)
def test_a_sweep_shows_where_nodes_jump_and_which_sizes_are_even(
    memory: str, hosts: list[str], sweep: str, lines: list[str]
) -> None:
    """By ESXi's own choice of nodes; hosts of other node sizes have a sweep each."""
    nodes = [word for host in hosts for word in ("--host-nodes", host)]
    shown = vnuma_here("predict", "--memory", memory, *nodes, "--sweep", sweep)

    assert shown.code == 0, shown.text
    found = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert [line for line in found if line.rstrip(".") in lines] == lines


def test_a_sweep_in_csv_has_a_line_for_each_size_and_host(tmp_path: Path) -> None:
    """For a spreadsheet: uneven sizes and those that do not fit are not called even."""
    table = tmp_path / "new" / "sizes.csv"
    shown = vnuma_here(*SWEEP, "--sweep", "38..42", "--format", "csv", "-o", table)

    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert (shown.code, shown.out) == (0, "")
    assert [(row["vcpus"], row["node_sizes"], row["even"]) for row in rows[:3]] == [
        ("38", "19+19", "true"),
        ("39", "20+19", "false"),
        ("40", "20+20", "true"),
    ]
    assert {(row["even"], row["more_vcpus_than_cores"]) for row in rows[3:]} == {("false", "true")}


def test_a_sweep_as_a_picture_has_a_box_for_each_size(tmp_path: Path) -> None:
    """One SVG document, with its sizes, hosts and what is even on all of them."""
    picture = tmp_path / "sizes.svg"
    shown = vnuma_here(
        *(*SWEEP, "--host-nodes", "4x14/256@7.0", "--sweep", "10..60", "--format", "svg", "-o", picture)
    )

    assert shown.code == 0, shown.text
    drawn = ElementTree.parse(picture).getroot()
    boxes = [rect.get("class") for rect in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert (len(boxes), boxes.count("none")) == (2 * 51 + 1, 20 + 4)
    assert [text for text in texts if text and text.startswith("Even on every host: 10-14, 16")]


@given(st.sets(st.integers(1, 200), max_size=40).map(sorted))
def test_short_ranges_name_exactly_their_numbers(numbers: list[int]) -> None:
    """Read back, `4-14, 16-30 by 2, 36` gives the numbers again."""
    found: list[int] = []
    for part in filter(None, ranges(numbers).split(", ")):
        span, _, step = part.partition(" by ")
        first, dash, last = span.partition("-")
        found += range(int(first), int(last) + 1, int(step or 1)) if dash else [int(span)]

    assert found == numbers


@pytest.mark.parametrize(("given", "code"), [("64GB", 0), ("64 gib", 0), ("lots", 2)])
def test_memory_may_have_its_unit(given: str, code: int) -> None:
    """GB is what is meant; anything else is refused in plain words."""
    ran = vnuma_here("predict", "--vcpus", "16", "--memory", given, "--host-nodes", "2x16/96")

    assert ran.code == code


@pytest.mark.parametrize("format_", ["svg", "png"])
def test_one_shape_as_a_picture(tmp_path: Path, format_: str) -> None:
    """Its host, sockets, vNUMA nodes and SQL nodes, in a file."""
    picture = tmp_path / f"vm.{format_}"
    shape = ("--vcpus", "30", "--cores-per-socket", "15")
    shown = vnuma_here(*SWEEP, *shape, "--format", format_, "-o", picture)

    assert (shown.code, shown.out) == (0, "")
    start = picture.read_bytes()[:300]
    assert start.startswith(b"\x89PNG") if format_ == "png" else b"30 vCPUs (2x15)" in start


def test_a_picture_shows_where_remote_memory_may_be(tmp_path: Path) -> None:
    """A host node without vCPUs is not called unused if part of the memory fits no other node."""
    texts = []
    for memory in ("384", "192"):
        picture = tmp_path / f"{memory}.svg"
        shape = ("--vcpus", "24", "--cores-per-socket", "24", "--host-nodes", "2x28/384@8.0")
        shown = vnuma_here("predict", "--memory", memory, *shape, "--format", "svg", "-o", picture)
        assert shown.code == 0, shown.text
        texts.append(picture.read_text(encoding="utf-8"))

    assert [("may hold remote memory" in text, "not used" in text) for text in texts] == [
        (True, False),
        (False, True),
    ]
