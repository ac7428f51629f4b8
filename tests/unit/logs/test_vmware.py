"""vmware.log: totals, sizes and times, and what of them is in doubt."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.logs.layouts import new_form
from vnuma.logs.vmware import read_cookie, read_vmware_log


@given(
    st.lists(st.integers(1, 64), min_size=1, max_size=12),
    st.sampled_from(
        ["", "2024-03-01T10:00:00.123Z In(05) vmx - ", "2019-02-18T13:10:40.490Z| vmx| I125: ", "esx.log:77:"]
    ),
)
def test_any_layout_is_read_back(sizes: list[int], prefix: str) -> None:
    """Whatever precedes the lines."""
    log = read_vmware_log(new_form(sizes, prefix=prefix))

    assert (log.vcpus, log.vpds, log.ppds) == (sum(sizes), len(sizes), len(sizes))
    assert log.vpd_sizes == log.ppd_sizes == tuple(sizes)
    assert len(log.lines) == sum(sizes) + 1


def test_the_last_account_of_several_holds() -> None:
    """A VM that was moved or reset tells its layout again in the same file."""
    log = read_vmware_log(new_form([8, 8]) + "reset\n" + new_form([4, 4, 4, 4]))

    assert log.vpd_sizes == (4, 4, 4, 4)
    assert log.doubts == ()


def test_an_account_starts_again_with_a_vcpu_that_was_named_already() -> None:
    """The old form has no line that begins an account."""
    old = "".join(f"numa: VCPU {cpu}: VPD {cpu // 4} (PPD 0)\n" for cpu in range(8))
    log = read_vmware_log(old + old.replace("VPD 1", "VPD 0"))

    assert (log.vcpus, log.vpds) == (8, 1)


def test_a_log_cut_in_the_middle_gives_totals_and_no_sizes() -> None:
    """Half of the lines do not say how large the nodes are."""
    whole = new_form([8, 8]).splitlines(keepends=True)
    log = read_vmware_log("".join(whole[:6]))

    assert (log.vcpus, log.vpds, log.vpd_sizes, log.ppd_sizes) == (16, 2, (), ())
    assert log.doubts == (
        "the total line says 16 vCPUs, the detail lines 5",
        "the total line says 2 vNUMA nodes, the detail lines 1",
    )


def test_older_releases_place_every_vcpu_on_domain_0_in_their_lines() -> None:
    """The summary says how many physical domains there are; the lines then tell no sizes."""
    lines = "".join(f"numa: VCPU {cpu}: VPD {cpu // 6} (PPD 0)\n" for cpu in range(12))
    log = read_vmware_log(lines + "numaHost: 2 virtual nodes, 12 virtual sockets, 2 physical domains\n")

    assert (log.vpds, log.ppds, log.vpd_sizes, log.ppd_sizes) == (2, 2, (6, 6), ())
    assert log.doubts == ()


def test_a_name_that_looks_like_a_line_of_the_layout_is_a_name() -> None:
    """What users write into the configuration is not what ESXi says."""
    log = read_vmware_log('DICT  displayName = "numaHost: 9 VCPUs 3 VPDs 3 PPDs"\n' + new_form([2, 2]))

    assert log.vpds == 2
    assert log.settings["displayname"] == "numaHost: 9 VCPUs 3 VPDs 3 PPDs"


@given(
    st.dictionaries(
        st.sampled_from(["numvcpus", "cpuid.coresPerSocket", "vcpu.hotadd", "numa.vcpu.preferHT", "memSize"]),
        st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.]{0,8}", fullmatch=True),
        min_size=1,
    ),
    st.sampled_from(['DICT {:>24} = "{}"', "DICT {:>24} = {}", '{} = "{}"']),
)
def test_settings_are_read_in_each_form(settings: dict[str, str], form: str) -> None:
    """DICT with and without quotes, and lines as the .vmx has them."""
    log = read_vmware_log("".join(f"{form.format(key, value)}\n" for key, value in settings.items()))

    assert log.settings == {key.lower(): value for key, value in settings.items()}


def test_a_line_of_the_log_counts_more_than_one_of_the_vmx() -> None:
    """Whichever comes first: a user's text in the log may look like a .vmx line."""
    lines = ['DICT numvcpus = "8"\n', 'numvcpus = "4"\n']

    assert read_vmware_log("".join(lines)).vcpus == read_vmware_log("".join(reversed(lines))).vcpus == 8


def test_keys_are_whole() -> None:
    """ethernet0.displayname is not displayName."""
    log = read_vmware_log('DICT displayName = "sql16"\nDICT ethernet0.displayname = "Ethernet"\n')

    assert log.settings["displayname"] == "sql16"


def test_the_time_of_the_layout_is_that_of_its_first_line() -> None:
    """A later account has a time of its own; the file's beginning stays."""
    log = read_vmware_log(
        "2024-03-01T10:00:00.123Z In(05) vmx Log for VMware ESX\n"
        + new_form([8], prefix="2024-03-01T10:00:01.500Z In(05) vmx ")
        + new_form([4, 4], prefix="2024-03-01T12:00:00+02:00| vmx| I125: ")
    )

    assert log.began == datetime(2024, 3, 1, 10, 0, 0, 123000, UTC)
    assert log.numa_at == datetime(2024, 3, 1, 10, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("line", ["2024-13-45T99:00:00Z x", "Feb 06 17:22:38.979: vmx| x", "x", ""])
def test_a_time_that_is_none_is_not_known(line: str) -> None:
    """Impossible dates, and the form before ESXi 5 that has no year."""
    assert read_vmware_log(line).began is None


@pytest.mark.parametrize(
    ("text", "cookie"),
    [
        ("160001", (16, None, 1)),
        ("120122", (12, 12, 2)),
        ("360022", (36, 2, 2)),
        ("12", None),
        ("x", None),
    ],
)
def test_cookies_are_taken_apart(text: str, cookie: tuple[int | None, ...] | None) -> None:
    """vCPUs, cores per socket where the version has them, and the version."""
    found = read_cookie(text)
    assert (tuple(found.values()) if found else None) == cookie


@pytest.mark.parametrize(
    "words",
    [
        "Hot add is enabled and vNUMA hot add is disabled, forcing UMA.",
        "Hot-add is enabled, forcing UMA.",
        "CPU hotplug enabled; forcing UMA",
    ],
)
def test_hot_add_that_forces_one_node_is_recognised_however_it_is_worded(words: str) -> None:
    """Releases word it differently; what they share is the cause and the effect."""
    log = read_vmware_log(f"2024-01-01T10:00:00.000Z In(05) vmx - numa: {words}\n")

    assert (log.hot_add, log.vpds) == (True, 1)


@pytest.mark.parametrize(
    ("cores", "most", "doubts"),
    [
        (
            12,
            8,
            ("sockets of 12 cores and vNUMA nodes of up to 8 vCPUs do not nest",),
        ),  # as a VM's log has it
        (4, 8, ()),
        (16, 8, ()),
    ],
)
def test_sockets_that_belong_to_two_nodes_are_a_doubt(cores: int, most: int, doubts: tuple[str, ...]) -> None:
    """The line that names both; `cpuid.coresPerSocket ... is suggested` is another figure."""
    log = read_vmware_log(f"numa: coresPerSocket = {cores} maxVcpusPerVPD = {most}\n")

    assert (log.cores_per_socket, log.max_vcpus_per_vpd, log.doubts) == (cores, most, doubts)
    assert read_vmware_log("numa: cpuid.coresPerSocket = 8 is suggested").cores_per_socket is None


@pytest.mark.parametrize("words", ["partitionByMemory = 1, manual override", "VM sizing request is ignored"])
def test_a_setting_by_hand_that_decides_is_reported(words: str) -> None:
    """Then ESXi's own sizing says nothing about the layout."""
    assert read_vmware_log(f"numa: {words}").overridden
