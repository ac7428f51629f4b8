"""Design tables: one planned VM a row, in CSV, a workbook or YAML, with German headers too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from tests.estate import workbooks
from tests.estate.build import SMALL, check, checked, failed
from vnuma.domain.topology.vm_location import VmLocation, parse_host
from vnuma.domain.vm.estate import Estate, EstateVm
from vnuma.engine.design_check.designed_vms import on_hosts
from vnuma.estate import snapshot
from vnuma.estate.design import read_design

GERMAN = (
    "Planung SQL 2027;;\n\n"
    "Servername;vCPU;Kerne pro Sockel;Arbeitsspeicher (GB);CPU Hot-Add;Hostmodell;ESXi-Version;SQL-Edition;"
    "Betriebssystem;Reservierung\n"
    "sql01;16;2;64,0;ja;2x16/256;7.0;Standard 2022;Windows Server 2022;100 %\n"
    "sql02;viele;2;64;nein;;;;;\n"
    "müller;2x12;;1,5 TB;nein;;;Oracle;Linux;50 %\n"
    "Summe;;;;;;;;;\n"
)


def _csv(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    file = folder / "design.csv"
    file.write_bytes(text.encode(encoding))
    return file


def _row(folder: Path, **cells: str) -> Any:
    """The VM of one row, whose other columns are these."""
    columns = {"name": "sql01", "vCPU": "16", "Cores per socket": "8", "Memory GB": "64", **cells}
    text = "\n".join(";".join(values) for values in (columns.keys(), columns.values()))
    (vm,) = read_design(_csv(folder, text)).vms
    return vm


CLIENT = "name;vCPU;Cores per socket;OS;host\npc;16;{};{};2x16/256@7.0\n"


def _build(vm: EstateVm) -> int | None:
    """Of its Windows."""
    return vm.guest.build if vm.guest else None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_german_table_is_read_and_what_is_wrong_is_named(tmp_path: Path, encoding: str) -> None:
    """Titles above, semicolons, decimal commas, units; each row that is not a VM has a sentence."""
    estate = read_design(_csv(tmp_path, GERMAN, encoding))
    one, two = estate.vms
    assert (
        one.facts.settings.items()
        >= {
            **{
                "numCPUs": 16,
                "memoryMB": 65536,
                "memoryReservationLockedToMax": True,
                "cpuHotAddEnabled": True,
            }
        }.items()
    )
    assert (one.facts.name, one.facts.host_name, one.facts.hardware_version) == ("sql01", "2x16/256@7.0", 17)
    assert one.sql is not None
    assert (one.sql.edition, one.sql.major, _build(one)) == ("Standard Edition", 16, 20348)
    assert one.declared is not None
    assert one.declared.line == 4
    assert two.facts.name == "müller"
    assert (
        two.facts.settings.items()
        >= {**{"numCPUs": 24, "numCoresPerSocket": 12, "memoryReservation": 1536 * 1024 // 2}}.items()
    )
    assert two.absent.keys() >= {"edition", "guest"}
    assert {item.name for item in estate.unseen} >= {"sql02", "Summe"}


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        (GERMAN, {"S01": "fail", "T11": "fail"}),
        # Standard's limit counts sockets, which vSphere chooses at power-on.
        ("name;vCPU;Cores per socket;SQL;host\nsql01;16;auto;Standard 2022;2x16/256@8.0\n", {"S01": "open"}),
        # SQL Server 2025 has two Developer editions.
        ("name;vCPU;Cores per socket;SQL\nsql01;48;12;Standard Developer 2025\n", {"S01": "fail"}),
        # Above four sockets no edition of a client Windows uses 16 vCPUs; up to four it depends on it.
        (CLIENT.format(2, "Microsoft Windows 11 (64-bit)"), {"W04": "fail"}),
        (CLIENT.format(4, "Microsoft Windows 10 (64-bit)"), {"W04": "open"}),
        (CLIENT.format(4, "Windows 10 Enterprise"), {"W04": "pass"}),
        (CLIENT.format(4, "Windows 10 Pro"), {"W04": "fail"}),
        # Automatic cores per socket are a default from ESXi 8 on; reservations are never assumed.
        ("name;vCPU;RAM GB;host\ndb;8;64;2x16/256@8.0\n", {"T01": "pass", "M01": "open"}),
        ("name;vCPU;RAM GB;host\ndb;8;64;2x16/256@7.0\n", {"T01": "open", "M01": "open"}),
    ],
)
def test_a_server_is_judged_before_it_exists(tmp_path: Path, text: str, outcomes: dict[str, str]) -> None:
    """By the edition, the system and the host that the table plans."""
    vm = checked(read_design(_csv(tmp_path, text))).vms[0]
    found = dict.fromkeys(failed(vm), "fail") | dict.fromkeys(vm.not_evaluated, "open")
    assert {rule: found.get(rule, "pass") for rule in outcomes} == outcomes


def test_a_table_without_columns_for_defaults_assumes_them(tmp_path: Path) -> None:
    """Hot-add, affinity and keys, and from ESXi 8 automatic cores per socket: marked."""
    (vm,) = checked(read_design(_csv(tmp_path, "name;vCPU;RAM GB;host\ndb;8;64;2x16/256@8.0\n"))).vms
    assert vm.assumed["T12"] == "assumes default CPU hot-add, not shown by the table"
    assert vm.assumed["T01"] == "assumes default cores per socket, not shown by the table"
    assert vm.undecided == ()


@pytest.mark.parametrize(
    ("cells", "setting", "value"),
    [
        ({"Memory GB": "65536 MB"}, "memoryMB", 65536),
        ({"Memory GB": "1.024"}, "memoryMB", 1024 * 1024),
        ({"Memory GB": "0,5 TiB"}, "memoryMB", 512 * 1024),
        ({"vCPU": "16 vCPU", "Cores per socket": "", "Sockets": "2"}, "numCoresPerSocket", 8),
        ({"Cores per socket": "auto"}, "autoCoresPerSocket", True),
        ({"Cores per socket": "Assigned at power on"}, "numCoresPerSocket", 0),
        ({"Memory reservation": "32"}, "memoryReservation", 32768),
        ({"CPU limit": "unlimited"}, "cpuLimit", -1),
        ({"Latency sensitivity": "Hoch"}, "latencySensitivity", "high"),
        ({"sched.cpu.affinity": "0,2,4-5"}, "cpuAffinity", (0, 2, 4, 5)),
        ({"CPU affinity": "none"}, "cpuAffinity", ()),
        ({"numa.vcpu.preferHT": "TRUE"}, "numa.vcpu.preferHT", "TRUE"),
    ],
)
def test_a_cell_becomes_a_setting(tmp_path: Path, cells: dict[str, str], setting: str, value: object) -> None:
    """With the unit that the cell or its column has."""
    assert _row(tmp_path, **cells).facts.settings[setting] == value


@pytest.mark.parametrize(
    ("cells", "setting"),
    [
        ({"Memory GB": "65536"}, "memoryMB"),
        ({"Memory GB": "64 KB"}, "memoryMB"),
        ({"CPU hot add": "maybe"}, "cpuHotAddEnabled"),
        ({"CPU hot add": ""}, "cpuHotAddEnabled"),
        ({"Memory reservation": "plenty"}, "memoryReservation"),
        ({"Memory reservation": "100000 GB"}, "memoryReservation"),
        ({"CPU affinity": "node 0"}, "cpuAffinity"),
        ({"Host": "Dell R750"}, "host"),
        ({"SQL edition": "Standard"}, "edition"),
        ({"SQL edition": "Web 2025"}, "edition"),
    ],
)
def test_what_a_cell_does_not_say_is_not_guessed(tmp_path: Path, cells: dict[str, str], setting: str) -> None:
    """There is a reason instead; the rest of the row is checked."""
    vm = _row(tmp_path, **cells)
    assert vm.absent[setting]
    assert setting not in vm.facts.settings
    assert vm.facts.settings["numCPUs"] == 16


@pytest.mark.parametrize(
    "cells",
    [
        {"Sockets": "4", "Cores per socket": "8"},
        {"Topology": "2x4"},
        {"vCPU": "12,5"},
        {"Cores per socket": "auto", "Sockets": "2"},
    ],
)
def test_a_row_that_contradicts_itself_is_named(tmp_path: Path, cells: dict[str, str]) -> None:
    """Which of its numbers is meant, nobody can tell."""
    columns = {"name": "sql01", "vCPU": "16", **cells}
    text = "\n".join(";".join(values) for values in (columns.keys(), columns.values()))
    estate = read_design(_csv(tmp_path, text))
    assert (estate.vms, [item.name for item in estate.unseen]) == ((), ["sql01"])


def test_a_workbook_and_yaml_say_the_same(tmp_path: Path) -> None:
    """The first sheet with the columns counts, below its titles; in YAML a list, alone or under a name."""
    rows = [{"Name": "sql01", "vCPUs": 16, "Cores per socket": 8, "RAM GB": 64.0, "CPU hot add": True}]
    book = workbooks.write(tmp_path / "d.xlsx", {"Notes": [{"a": 1}], "VMs": rows})
    listed, named = tmp_path / "d.yml", tmp_path / "e.yaml"
    listed.write_text("- {name: sql01, vcpus: 16, cores_per_socket: 8, memory_gb: 64, cpu_hot_add: true}\n")
    named.write_text(
        "team: dba\nvms:\n  - name: sql01\n    vcpus: 16\n    topology: 2x8\n    memory: 64 GB\n"
        "    cpu_hot_add: yes\n"
    )
    estates = [read_design(file) for file in (book, listed, named)]
    found = [_settings(estate) for estate in estates]
    assert found[0] == found[1] == found[2]
    assert [estate.kind for estate in estates] == ["table"] * 3
    assert [vm.declared.line for estate in estates[1:] for vm in estate.vms if vm.declared] == [1, 3]


def _settings(estate: Estate) -> dict[str, object]:
    (vm,) = estate.vms
    return dict(vm.facts.settings)


def test_a_row_of_sizes_without_a_name_is_named_by_its_place(tmp_path: Path) -> None:
    """It may be a total, or a VM that nobody would check; a remark is neither."""
    estate = read_design(_csv(tmp_path, "name;vCPU;host\nsql01;8;\n;16;\n;;a remark\n"))

    assert [item.name for item in estate.unseen] == ["row 3"]


def test_a_name_listed_twice_is_checked_twice_and_said(tmp_path: Path) -> None:
    """Two rows that differ are two facts; the reader decides which is meant."""
    estate = read_design(_csv(tmp_path, "name;vCPU\nsql01;8\nsql01;16\n"))
    assert [vm.facts.settings["numCPUs"] for vm in estate.vms] == [8, 16]
    assert len({vm.facts.key for vm in estate.vms}) == 2
    assert [item.name for item in estate.unseen] == ["sql01"]


def test_a_host_model_is_found_in_a_snapshot(tmp_path: Path) -> None:
    """The catalogue of the site says how many nodes it has; a model that it lacks is named."""
    (estate,) = snapshot.load(SMALL)
    (host,) = estate.hosts.values()
    model = host.model or host.name
    file = _csv(tmp_path, f"name;vCPU;memory GB;host model\nsql01;16;64;{model}\nsql02;8;8;X1\n")
    said = check("--design", file, "--snapshot", SMALL)
    assert {one["vms"] for one in said["not_evaluated"] if "is called X1" in one["reason"]} == {1}


@pytest.mark.parametrize(("named", "expected"), [("", 13), ("20", 20)])
def test_a_host_given_in_place_of_the_rows_decides_the_hardware_version(
    tmp_path: Path, named: str, expected: int
) -> None:
    """Of a row that names no version; one that does keeps its own."""
    columns = {"name": "sql01", "vCPU": "16", "Memory GB": "64", "Host": "2x16/256@8.0", "HW version": named}
    text = "\n".join(";".join(values) for values in (columns.keys(), columns.values()))
    estate = read_design(_csv(tmp_path, text))
    assert estate.vms[0].facts.hardware_version == 20

    older = on_hosts(estate, VmLocation((parse_host("2x16/256@6.5", "6.5"),)), None)

    assert older.vms[0].facts.hardware_version == expected
    assumed = [item for item in older.unseen if item.name == "hardware version"]
    assert bool(assumed) is not bool(named)


def test_a_workbooks_rows_have_excels_numbers_and_its_bad_cells_are_named(tmp_path: Path) -> None:
    """Below a title and an empty row. A total is not a VM; a system other than Windows is valid."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in (
        *(["SQL platform"], [], ["VM name", "vCPU", "Memory GB", "CPU hot add", "SQL", "OS"]),
        ["sql01", 16, 64, "no", "Enterprise 2022", "2022"],
        ["sql02", 16, 64, "maybe", "Web 2025", "Debian 12"],
        ["Total", 32, 128],
    ):
        sheet.append(row)
    book.save(tmp_path / "design.xlsx")

    estate = read_design(tmp_path / "design.xlsx")

    assert [(vm.facts.name, _build(vm)) for vm in estate.vms] == [("sql01", 20348), ("sql02", None)]
    rows = [(item.name, item.why[: len("row 5")]) for item in estate.unseen]
    assert rows == [("sql02", "row 5"), ("sql02", "row 5"), ("Total", "row 6")]
    assert estate.vms[1].absent.keys() >= {"cpuHotAddEnabled", "edition"}


POWERCLI = (
    "#TYPE Selected.VMware.VimAutomation.ViCore.Impl.V1.VM.UniversalVirtualMachineImpl\n"
    '"Name","PowerState","NumCpu","CoresPerSocket","MemoryMB","MemoryGB","HardwareVersion","Guest"\n'
    '"sql01","PoweredOn","16","8","65536","64","vmx-19","sql01:Microsoft Windows Server 2019 (64-bit)"\n'
)


@pytest.mark.parametrize(
    ("name", "system", "build"),
    [
        ("sql01", "Microsoft Windows Server 2019 (64-bit)", 17763),
        # The system is what follows the name, which may itself look like one.
        ("sql-2016", "Microsoft Windows Server 2022 (64-bit)", 20348),
        ("windows-sql", "Red Hat Enterprise Linux 9 (64-bit)", None),
        ("windows-sql", "", None),  # without VMware Tools
    ],
)
def test_what_powercli_exports_is_a_table(tmp_path: Path, name: str, system: str, build: int | None) -> None:
    """Get-VM | Export-Csv, with its line of types above the headers."""
    text = POWERCLI.replace("sql01", name).replace("Microsoft Windows Server 2019 (64-bit)", system)

    (vm,) = read_design(_csv(tmp_path, text)).vms

    assert (_build(vm), vm.guest is None) == (build, build is None)
    assert name not in vm.absent.get("guest", "")
    assert vm.facts.settings.items() >= {"numCPUs": 16, "numCoresPerSocket": 8, "memoryMB": 65536}.items()
    assert vm.facts.hardware_version == 19


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_a_column_that_may_matter_and_is_not_known_is_named(tmp_path: Path, form: str) -> None:
    """Its settings would silently count as not set; columns about other things are not named."""
    titles = ["VM", "vCPU", "Memory GB", "CPU shares", "numa.slit.enable", "Owner", "Ports"]
    row = ["sql01", "16", "64", "high", "TRUE", "CORP", "1433"]
    file = tmp_path / f"design.{form}"
    if form == "csv":
        file.write_text(f"{';'.join(titles)}\n{';'.join(row)}\n", encoding="utf-8")
    else:
        book = Workbook()
        assert book.active is not None
        for cells in (titles, row):
            book.active.append(cells)
        book.save(file)

    (told,) = [one for one in read_design(file).unseen if one.kind == "column"]

    assert told.name == "CPU shares, numa.slit.enable"


def test_standard_may_be_abbreviated(tmp_path: Path) -> None:
    """As people write it."""
    for text in ("SQL Server 2019 Std.", "Std 2019", "Standard 2019"):
        sql = _row(tmp_path, SQL=text).sql
        assert (sql.edition, sql.major) == ("Standard Edition", 15)
    assert _row(tmp_path, SQL="Std Developer 2025").sql.edition == "Standard Developer Edition"


@pytest.mark.parametrize(
    ("headers", "cells"),
    [
        ("Name,NumCPUs,CoresPerSocket,MemoryGB,HardwareVersion,CpuHotAddEnabled", "db,24,6,64,vmx-19,True"),
        ("Name,NumCpu,CoresPerSocket,MemoryGB,Version,CpuHotAddEnabled", "db,24,6,64,v19,True"),
        (
            "Name,CPUs,Cores per socket,Memory Size,Compatibility,CPU Hot Plug",
            "db,24,6,64 GB,ESXi 7.0 U2 and later (VM version 19),Enabled",
        ),
    ],
    ids=["API", "PowerCLI", "vSphere Client"],
)
def test_headers_and_values_of_vmware_s_own_tools_are_known(tmp_path: Path, headers: str, cells: str) -> None:
    """As each of them exports its list of VMs."""
    (vm,) = read_design(_csv(tmp_path, f"{headers}\n{cells}\n")).vms
    settings = vm.facts.settings
    shape = ("numCPUs", "numCoresPerSocket", "memoryMB", "cpuHotAddEnabled")
    assert [settings[name] for name in shape] == [24, 6, 65536, True]
    assert vm.facts.hardware_version == 19
