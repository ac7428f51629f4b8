"""RVTools exports of several versions and languages, whole and in pieces."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.estate.build import check
from tests.estate.workbooks import export, write
from tools import rvtools_doc
from vnuma.checks.fix_as import Target
from vnuma.domain.vm.estate import Estate, NotShown
from vnuma.engine.design_check.check import CheckRequest, run_check
from vnuma.errors import InputError
from vnuma.estate.design import read_design
from vnuma.estate.rvtools import COLUMNS, read_rvtools
from vnuma.estate.workbook import NO, YES, number, truth
from vnuma.report.check.words import undecided_words


def read(tmp_path: Path, sheets: dict[str, list[dict[str, Any]]]) -> Estate:
    """An export of these sheets, read."""
    return read_rvtools(write(tmp_path / "export.xlsx", sheets))


def test_a_complete_export_becomes_an_estate(tmp_path: Path) -> None:
    """Shape, hot-add, reservation, place and host of each VM are put together from three sheets."""
    estate = read(tmp_path, export())
    vm = estate.vms[1].facts
    assert vm.settings == {
        "numCPUs": 16,
        "memoryMB": 65536,
        "latencySensitivity": "normal",
        "numCoresPerSocket": 4,
        "cpuHotAddEnabled": True,
        "exposeVnumaOnCpuHotadd": False,
        "cpuReservation": 0,
        "memoryReservationLockedToMax": True,
        "memoryReservation": 65536,
    }
    assert (vm.name, vm.path, vm.key) == ("vm1", "/DC1/vm/Prod/SQL/vm1", "vc-uuid/uuid-1")
    assert (vm.hardware_version, vm.host_name) == (19, "esx1")
    host = estate.hosts[vm.host_moid]
    assert (host.release.version, host.release.build) == ("7.0.3", "21930508")
    assert (host.packages, host.cores, host.threads, host.cores_per_node) == (2, 40, 80, 20)
    assert (host.power_policy, host.numa_reported) == ("static", False)
    assert host.powered_on_mb == {"vm-1": 65536}
    assert [(cluster.name, cluster.drs_enabled, len(cluster.hosts)) for cluster in estate.clusters] == [
        ("cl", True, 2)
    ]
    assert estate.product == "RVTools 4.4.1"


@pytest.mark.parametrize("both", [True, False])
def test_a_fix_names_the_instance_uuid_only_where_it_is_one(tmp_path: Path, *, both: bool) -> None:
    """Exports with a column of BIOS UUIDs have the instance's beside it; in others it may be the BIOS's."""
    uuid = "503a1d55-6d0f-4f4a-9f5e-0d7c2f0e1a11"
    sheets = export(vms=1)
    sheets["vInfo"][0] |= {"VM UUID": uuid}
    if not both:
        del sheets["vInfo"][0]["SMBIOS UUID"]
    vm = read(tmp_path, sheets).vms[0].facts
    assert Target.of_key(vm.name, vm.key) == Target("vm0", uuid if both else "")


def test_what_no_export_has_is_not_known(tmp_path: Path) -> None:
    """Affinity, extraConfig and manual vNUMA are absent with a reason, never treated as unset."""
    estate = read(tmp_path, export())
    vm = estate.vms[0]
    assert vm.facts.settings.keys().isdisjoint({"cpuAffinity"})
    assert vm.absent["cpuAffinity"] == vm.absent["extraConfig"] == NotShown("RVTools")
    # Nor has it NUMA nodes: that one per socket is assumed is listed with what could not be read.
    assert [item.kind for item in estate.unseen if item.why.count("one per socket is assumed")] == ["host"]


def test_the_internal_names_of_old_versions_are_known(tmp_path: Path) -> None:
    """Headers such as vInfoVMName and sheets such as tabvInfo mean the same."""
    old = {
        "VM": "VMName",
        "Host": "Host",
        "VM ID": "ObjectID",
        "HW version": "HWVersion",
        "VI SDK UUID": "VISDKUUID",
    }
    sheets = export()
    sheets["tabvInfo"] = [
        {f"vInfo{old.get(header, header).replace(' ', '')}": cell for header, cell in row.items()}
        for row in sheets.pop("vInfo")
    ]
    estate = read(tmp_path, sheets)
    assert [vm.facts.name for vm in estate.vms] == ["vm0", "vm1", "vm2"]
    assert estate.vms[0].facts.settings["numCoresPerSocket"] == 4


def test_text_cells_in_another_language_are_read(tmp_path: Path) -> None:
    """Numbers with points or spaces for thousands and words for yes and no, all of them text."""
    sheets = export(vms=1, hosts=1)
    sheets["vInfo"][0] |= {"CPUs": "16", "Memory": "65.536", "Template": "FALSCH"}
    sheets["vCPU"][0] |= {"Hot Add": "WAHR", "Cores p/s": "4,0"}
    sheets["vHost"][0] |= {"# Memory": "524\u202f288", "HT Active": "VRAI"}
    estate = read(tmp_path, sheets)
    settings = estate.vms[0].facts.settings
    assert settings.items() >= {"memoryMB": 65536, "numCoresPerSocket": 4, "cpuHotAddEnabled": True}.items()
    assert next(iter(estate.hosts.values())).memory_mb == 524288


@pytest.mark.parametrize(
    ("sheet", "column", "setting"),
    [
        ("vCPU", "", "cpuHotAddEnabled"),
        ("vMemory", "", "memoryReservationLockedToMax"),
        ("vHost", "", "host"),
        ("vCPU", "Numa Hotadd Exposed", "exposeVnumaOnCpuHotadd"),
    ],
)
def test_a_missing_sheet_or_column_is_named_and_the_rest_is_read(
    tmp_path: Path, sheet: str, column: str, setting: str
) -> None:
    """Its settings have a reason, and it is listed with what could not be read."""
    sheets = export()
    if column:
        for row in sheets[sheet]:
            del row[column]
    else:
        del sheets[sheet]
    estate = read(tmp_path, sheets)
    named = ("column", f"{sheet}: {column}") if column else ("sheet", sheet)
    assert len(estate.vms) == 3
    assert {named} <= {(item.kind, item.name) for item in estate.unseen}
    assert estate.vms[0].absent[setting]


def test_the_hardware_s_technology_is_not_the_host_s_power_policy(tmp_path: Path) -> None:
    """Without Host Power Policy the policy is not known, whatever technology the processors have."""
    sheets = export()
    for row in sheets["vHost"]:
        del row["Host Power Policy"]
        row["Current CPU power man. policy"] = "static"
    estate = read(tmp_path, sheets)
    assert {host.power_policy for host in estate.hosts.values()} == {None}
    assert {("column", "vHost: Host Power Policy")} <= {(item.kind, item.name) for item in estate.unseen}
    assert {"M04"} <= run_check([estate], CheckRequest()).vms[0].not_evaluated.keys()


def test_rows_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """Inaccessible VMs, placeholders, rows without numbers and hosts without cores do not end the reading."""
    sheets = export(vms=6, hosts=2)
    sheets["vInfo"][0]["Connection state"] = "inaccessible"
    sheets["vInfo"][1]["SRM Placeholder"] = "True"
    sheets["vInfo"][2]["CPUs"] = "n/a"
    sheets["vInfo"][3]["Template"] = "True"
    sheets["vInfo"][4]["Host"] = sheets["vCPU"][4]["Host"] = None
    sheets["vHost"][1]["# Cores"] = sheets["vHost"][1]["Cores per CPU"] = None
    estate = read(tmp_path, sheets)
    assert [vm.facts.name for vm in estate.vms] == ["vm4", "vm5"]
    assert [vm.absent.get("host") for vm in estate.vms] == [
        "the VM has no host (orphaned)",
        "the export's sheet vHost does not show esx1",
    ]
    assert {item.name: item.why for item in estate.unseen if item.kind == "vm"} == {
        "vm0": "it was inaccessible when RVTools ran",
        "vm1": "it is a placeholder of Site Recovery Manager, without a configuration of its own",
        "vm2": "its CPUs is 'n/a', not a number",
    }
    assert estate.clusters[0].unread == ("esx1",)


def test_vms_of_one_name_keep_their_own_rows(tmp_path: Path) -> None:
    """Sheets are joined by vCenter and identifier, not by the name alone."""
    sheets = export(vms=2, hosts=1)
    for name in ("vInfo", "vCPU", "vMemory"):
        for row in sheets[name]:
            row["VM"] = "twin"
    sheets["vCPU"][1]["Cores p/s"] = 16
    assert [vm.facts.settings["numCoresPerSocket"] for vm in read(tmp_path, sheets).vms] == [4, 16]


@pytest.mark.parametrize("missing", ["vInfo", "CPUs"])
def test_a_file_without_vms_is_refused(tmp_path: Path, missing: str) -> None:
    """Without the sheet vInfo, or without its vCPUs, there is nothing to check."""
    sheets = export()
    if missing == "vInfo":
        del sheets["vInfo"]
    else:
        for row in sheets["vInfo"]:
            del row[missing]
    with pytest.raises(InputError):
        read(tmp_path, sheets)


@given(st.integers(0, 10**12 - 1), st.sampled_from([",", ".", " ", "'", "\u00a0", "\u202f", ""]))
def test_thousands_are_read_whatever_separates_them(value: int, separator: str) -> None:
    """Any language's way to write a whole number gives that number."""
    assert number(f"{value:,}".replace(",", separator)) == value


@given(st.text())
def test_no_text_breaks_a_cell(text: str) -> None:
    """A cell's content is a value or missing."""
    assert number(text) is None or isinstance(number(text), int)
    assert truth(text) in (True, False, None)


HEADERS = [
    (sheet, headers[0], header)
    for sheet, columns in COLUMNS.items()
    for headers in columns.values()
    for header in headers
]


@pytest.mark.parametrize(("sheet", "first", "header"), HEADERS)
def test_every_header_that_is_known_means_the_same(
    tmp_path: Path, sheet: str, first: str, header: str
) -> None:
    """Whatever a version calls a column, and with the sheet's name before it, what is read is the same."""
    whole = read(tmp_path, export())
    for spelt in (header, f"{sheet}{header.replace(' ', '')}".upper()):
        sheets = export()
        sheets[sheet] = [
            {spelt if key == first else key: cell for key, cell in row.items()} for row in sheets[sheet]
        ]
        renamed = read(tmp_path, sheets)
        assert (renamed.vms, renamed.clusters, renamed.product) == (whole.vms, whole.clusters, whole.product)


def test_the_page_names_every_header_and_every_word() -> None:
    """docs/reference/rvtools.md is what the reading knows; after a change: python tools/rvtools_doc.py."""
    text = rvtools_doc.PAGE.read_text(encoding="utf-8")
    assert text == rvtools_doc.page()
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| v")}
    for sheet, _, header in HEADERS:
        assert f"`{header}`" in rows[sheet]


@pytest.mark.parametrize("word", sorted(YES | NO))
def test_yes_and_no_are_known_in_every_language_listed(tmp_path: Path, word: str) -> None:
    """Excel's words for truth, in the language of whoever saved the file."""
    sheets = export(vms=1, hosts=1)
    sheets["vCPU"][0]["Hot Add"] = word.upper()
    assert read(tmp_path, sheets).vms[0].facts.settings["cpuHotAddEnabled"] is (word in YES)


def _without(column: str, sheets: dict[str, Any], *names: str) -> dict[str, Any]:
    return {
        name: [
            {key: value for key, value in row.items() if name not in names or key != column} for row in rows
        ]
        for name, rows in sheets.items()
    }


@pytest.mark.parametrize(
    ("column", "lacking"),
    [
        ("VI SDK Server", ("vHost", "vCPU", "vMemory")),
        ("VI SDK Server", ("vInfo",)),
        ("VI SDK Server", ("vCPU",)),
        ("Host", ("vCPU", "vMemory")),
    ],
)
def test_sheets_without_vcenter_or_host_join_by_unique_names(
    tmp_path: Path, column: str, lacking: tuple[str, ...]
) -> None:
    """Each VM has its host and its row of every sheet, whichever sheet lacks the column."""
    by_name = {
        name: [{key: cell for key, cell in row.items() if key not in {"VM ID", "VM UUID"}} for row in rows]
        for name, rows in export().items()
    }
    estate = read(tmp_path, _without(column, by_name, *lacking))
    assert len(estate.vms) == 3
    for vm in estate.vms:
        assert vm.absent.keys().isdisjoint({"host"})
        assert {"numCoresPerSocket", "memoryReservation"} <= vm.facts.settings.keys()


def test_a_host_name_of_two_vcenters_is_no_one_s_without_the_vcenter(tmp_path: Path) -> None:
    """It could be either: the rules on the host are not evaluated."""
    sheets = export(hosts=1)
    sheets["vHost"].append({**sheets["vHost"][0], "VI SDK Server": "vcsa02"})
    estate = read(tmp_path, _without("VI SDK Server", sheets, "vInfo"))
    assert all(vm.absent.keys() >= {"host"} for vm in estate.vms)


def test_a_sheet_that_the_export_lacks_is_the_reason(tmp_path: Path) -> None:
    """Not a missing row of each VM."""
    sheets = {name: rows for name, rows in export().items() if name != "vCPU"}
    estate = read(tmp_path, sheets)
    result = run_check([estate], CheckRequest())
    assert {vm.absent["numCoresPerSocket"] for vm in estate.vms} == {"the export has no sheet vCPU"}
    assert undecided_words(result).endswith("the export has no sheet vCPU (3)")
    assert all(vm.undecided for vm in result.vms)


def test_hosts_of_a_cluster_that_differ_are_found_in_an_export(tmp_path: Path) -> None:
    """T19, with the keys' defaults: 24 vCPUs need two nodes of 20 cores, or three of 8."""
    sheets = export(vms=1)
    sheets["vInfo"][0]["CPUs"] = sheets["vCPU"][0]["CPUs"] = 24
    sheets["vHost"][1] |= {"# CPU": 4, "Cores per CPU": 8, "# Cores": 32}
    (vm,) = run_check([read(tmp_path, sheets)], CheckRequest()).vms
    (found,) = [item.finding for item in vm.findings if item.finding.rule == "T19"]
    assert found.observed["predicted nodes"] == "2 or 3"
    assert found.assumed == "assumes default numa.* keys, not shown by RVTools"


def _as_csv(folder: Path, sheets: dict[str, Any], *names: str) -> Path:
    for name in names:
        headers = list(dict.fromkeys(key for row in sheets[name] for key in row))
        with (folder / f"RVTools_tab{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, headers, delimiter=";")
            writer.writeheader()
            writer.writerows(sheets[name])
    return folder / "RVTools_tabvInfo.csv"


@pytest.mark.parametrize("option", [(), ("--rvtools",)], ids=["as a design", "--rvtools"])
def test_an_export_as_csv_is_read_like_a_workbook(tmp_path: Path, option: tuple[str, ...]) -> None:
    """With the sheets beside it; memory is in MiB, and templates are no VMs."""
    sheets = export()
    sheets["vInfo"][2]["Template"] = True
    workbook = write(tmp_path / "export.xlsx", sheets)
    file = _as_csv(tmp_path, sheets, "vInfo", "vCPU", "vMemory", "vHost", "vCluster")
    summaries = [check(*option, read)["summary"] for read in (file, workbook)]
    assert summaries[0] == summaries[1]
    assert summaries[0]["vms"] == 2


def test_the_sheet_of_vms_alone_says_what_it_lacks(tmp_path: Path) -> None:
    """512 is MiB there, whatever the file is called."""
    sheets = export(vms=1)
    sheets["vInfo"][0]["Memory"] = 512
    file = _as_csv(tmp_path, sheets, "vInfo").rename(tmp_path / "vms.csv")
    (vm,) = read_design(file).vms
    assert vm.facts.settings["memoryMB"] == 512
    assert vm.absent["numCoresPerSocket"] == "the export has no sheet vCPU"


SIZES = ((2, 1, 8), (4, 4, 16), (8, 1, 384), (16, 8, 128), (24, 2, 192), (12, 12, 96))
"""vCPUs, cores per socket and GB, as an estate mixes them."""


def _estate_of_240() -> dict[str, Any]:
    """Two clusters of unlike hosts and releases; Windows and others, all with Tools but some."""
    sheets = export(vms=240, hosts=8)
    for nth, (info, cpu, memory) in enumerate(
        zip(sheets["vInfo"], sheets["vCPU"], sheets["vMemory"], strict=True)
    ):
        vcpus, cores, gigabytes = SIZES[nth % len(SIZES)]
        cluster = "SQL" if nth % 8 < 4 else "Apps"
        info |= {"CPUs": vcpus, "Memory": gigabytes * 1024, "Cluster": cluster, "HW version": 13 + nth % 7}
        info |= {"Powerstate": "poweredOff" if nth % 9 == 0 else "poweredOn"}
        if nth % 5:
            info["OS according to the VMware Tools"] = "Microsoft Windows Server 2019 (64-bit)"
        cpu |= {"CPUs": vcpus, "Cores p/s": cores, "Sockets": vcpus // cores, "Hot Add": nth % 7 == 0}
        cpu |= {"Limit": -1}
        memory |= {"Size MiB": gigabytes * 1024, "Reservation": 0, "Limit": -1}
        memory |= {"Memory Reservation Locked To Max": False}
    for nth, host in enumerate(sheets["vHost"]):
        host |= {
            "Cluster": "SQL" if nth < 4 else "Apps",
            "Speed": 2100,
            "BIOS Version": "2.19.1",
            "Current EVC": "intel-broadwell",
        }
        host |= {"ESX Version": "VMware ESXi 8.0.2 build-22380479"} if nth < 4 else {}
    sheets["vCluster"] = [{**sheets["vCluster"][0], "Name": name} for name in ("SQL", "Apps")]
    return sheets


def test_an_estate_s_export_has_a_topology_for_each_vm(tmp_path: Path) -> None:
    """Of the rules that a vCenter's listing allows, only those on BIOS settings stay open."""
    result = run_check([read(tmp_path, _estate_of_240())], CheckRequest())
    assert len(result.vms) == 240
    assert all(vm.guest.startswith("~") for vm in result.vms)
    assert not any(vm.undecided for vm in result.vms)
    always = {rule.id for rule in result.rules} - {rule for vm in result.vms for rule in vm.not_evaluated}
    assert always >= {rule.id for rule in result.rules if rule.id[0] in "TAM"} - OPEN
    (evaluated,) = result.coverage.values()
    (assumed,) = result.assumed_rules.values()
    assert (evaluated, assumed) == (46, 16)


OPEN = {
    *("T20", "T22"),  # the host's NUMA nodes
    *("T24", "M03"),  # SQL Server
    *("M05", "M06", "M09", "M10", "R06"),  # esxtop, and what is read for a single VM
}
