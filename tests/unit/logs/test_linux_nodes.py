"""Linux's output about its NUMA nodes, and dd's about its time, are parsed as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.logs import guest_tools

# Closson 2009, https://kevinclosson.net: numactl 0.9 on a two-socket Xeon 5500.
MEMINFO = """Node 0 MemTotal:        8087764 kB
Node 0 MemFree:         4757576 kB
Node 0 Active(file):     915920 kB
Node 0 FilePages:       2006640 kB
Node 1 MemTotal:         222996 kB
Node 1 FilePages:          1024 kB
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1472114768 bytes (1.5 GB) copied, 0.30021 seconds, 4.9 GB/s", (1472114768, 0.30021)),
        ("314572800 bytes (315 MB, 300 MiB) copied, 0.371725 s, 846 MB/s", (314572800, 0.371725)),
        ("67108864 bytes (64.0MB) copied, 0.021 seconds, 3.0GB/s", (67108864, 0.021)),
        ("512 bytes copied, 6.5e-05 s, 7.9 MB/s", (512, 6.5e-05)),
    ],
    ids=["coreutils 2009", "coreutils 9", "busybox", "below a kilobyte"],
)
def test_dd_tells_bytes_and_seconds(line: str, expected: tuple[int, float]) -> None:
    """Every dd's last line gives bytes and its own seconds, whatever surrounds it."""
    found = guest_tools.copied(f"1403+1 records in\n1403+1 records out\n{line}\n")

    assert [(one.bytes, one.seconds) for one in found] == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "61+1 records in\n61+1 records out\n",  # some builds of busybox
        "314572800 Bytes (315 MB) kopiert, 0,371725 s, 846 MB/s",
    ],
)
def test_a_dd_without_a_time_tells_nothing(text: str) -> None:
    """No time is made up, nor one half understood that is not of the C locale."""
    assert guest_tools.copied(text) == ()


def test_a_dd_that_took_no_time_is_refused() -> None:
    """A throughput over zero seconds is not a figure."""
    with pytest.raises(ValueError, match="time of zero"):
        guest_tools.copied("512 bytes copied, 0.0 s, Infinity B/s")


def test_meminfo_is_reported_by_node() -> None:
    """Each node has its own figures, names with brackets included."""
    shown = guest_tools.meminfo(MEMINFO)

    assert shown[0]["FilePages"] == 2006640
    assert shown[0]["Active(file)"] == 915920
    assert shown[1] == {"MemTotal": 222996, "FilePages": 1024}


@given(text=st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text is read or refused with ValueError; nothing else is raised."""
    try:
        guest_tools.meminfo(text)
    except ValueError:
        return


@given(numbers=st.sets(st.integers(0, 2000), max_size=40))
def test_a_kernel_list_gives_its_numbers_back(numbers: set[int]) -> None:
    """A list written as single numbers is read as written; an empty one has none."""
    text = ",".join(str(number) for number in sorted(numbers))

    assert set(guest_tools.number_list(text)) == numbers


def test_ranges_of_a_kernel_list_are_whole() -> None:
    """`0-3,8` are five numbers; a descending range is invalid."""
    assert guest_tools.number_list("0-3,8\n") == (0, 1, 2, 3, 8)
    with pytest.raises(ValueError, match="no range"):
        guest_tools.number_list("3-0")


def test_sections_are_cut_at_their_marks() -> None:
    """Text before the first mark, such as a login banner, belongs to no section."""
    assert guest_tools.sections("Welcome!\n@@ a\n1\n2\n@@ b\n") == {"a": "1\n2", "b": ""}
