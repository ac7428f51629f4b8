"""Design tables: one planned VM a row, in CSV, a workbook or YAML, with German headers too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from tests.estate import workbooks
from tests.estate.build import SMALL, checked
from tests.support.cli import vnuma_here
from vnuma.domain.topology.vm_location import VmLocation, parse_host
from vnuma.domain.vm.estate import Estate
from vnuma.engine.design_check.designed_vms import on_hosts
from vnuma.errors import InputError
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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_german_table_is_read_and_what_is_wrong_is_named(tmp_path: Path, encoding: str) -> None:
    """Titles above, semicolons, decimal commas, units; each row that is not a VM has a sentence."""
    estate = read_design(_csv(tmp_path, GERMAN, encoding))
    one, two = estate.vms
    assert (one.facts.name, one.facts.settings["numCPUs"]) == ("sql01", 16)
    assert one.facts.settings["memoryMB"] == 65536
    assert one.facts.settings["memoryReservationLockedToMax"] is True
    assert one.facts.settings["cpuHotAddEnabled"] is True
    assert (one.facts.host_name, one.facts.hardware_version) == ("2x16/256@7.0", 17)
    assert one.sql is not None
    assert (one.sql.edition, one.sql.major) == ("Standard Edition", 16)
    assert one.guest is not None
    assert one.guest.build == 20348
    assert one.declared is not None
    assert one.declared.line == 4
    assert (two.facts.name, two.facts.settings["numCPUs"]) == ("müller", 24)
    assert two.facts.settings["numCoresPerSocket"] == 12
    assert two.facts.settings["memoryReservation"] == 1536 * 1024 // 2
    assert "Oracle" in two.absent["edition"]
    assert "Linux" in two.absent["guest"]
    said = {item.name: item.why for item in estate.unseen}
    assert "viele" in said["sql02"]
    assert "a total" in said["Summe"]


def test_an_edition_is_judged_before_the_server_exists(tmp_path: Path) -> None:
    """Standard with eight sockets, as the table plans it."""
    vm = next(one for one in checked(read_design(_csv(tmp_path, GERMAN))).vms if one.name == "sql01")
    assert {"S01", "T11"} <= {item.finding.rule for item in vm.findings}


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


def test_automatic_cores_per_socket_leave_the_sockets_open(tmp_path: Path) -> None:
    """Standard's limit counts sockets, which vSphere chooses at power-on: neither passed nor failed."""
    text = "name;vCPU;Cores per socket;SQL;host\nsql01;16;automatic;Standard 2022;2x16/256@8.0\n"
    (vm,) = checked(read_design(_csv(tmp_path, text))).vms
    assert "chooses them at power-on" in vm.not_evaluated["S01"]
    assert vm.shape == "16 vCPUs"


def test_standard_developer_has_the_limits_of_standard(tmp_path: Path) -> None:
    """SQL Server 2025 has two Developer editions."""
    text = "name;vCPU;Cores per socket;SQL\nsql01;48;12;Standard Developer 2025\n"
    (vm,) = checked(read_design(_csv(tmp_path, text))).vms
    assert "S01" in {item.finding.rule for item in vm.findings}


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

    assert [(item.name, "no name" in item.why) for item in estate.unseen] == [("row 3", True)]


def test_a_name_listed_twice_is_checked_twice_and_said(tmp_path: Path) -> None:
    """Two rows that differ are two facts; the reader decides which is meant."""
    estate = read_design(_csv(tmp_path, "name;vCPU\nsql01;8\nsql01;16\n"))
    assert [vm.facts.settings["numCPUs"] for vm in estate.vms] == [8, 16]
    assert len({vm.facts.key for vm in estate.vms}) == 2
    assert "twice" in estate.unseen[0].why


@pytest.mark.parametrize(
    "text", ["", "a;b\n1;2\n", "name;memory\nsql01;64\n", '"', "name;vCPU\n" + '"x' * 90_000]
)
def test_another_file_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    """With the columns that it needs."""
    with pytest.raises(InputError) as refused:
        read_design(_csv(tmp_path, text))
    assert "vCPU" in str(refused.value.fix)


@pytest.mark.parametrize("text", ["vms: []\n", "[]\n"])
def test_an_empty_list_of_vms_is_called_empty(tmp_path: Path, text: str) -> None:
    """Neither Ansible nor a missing task is the matter: a row is shown."""
    (tmp_path / "design.yml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="lists no VMs") as refused:
        read_design(tmp_path / "design.yml")
    assert "name: sql16" in str(refused.value.fix)


def test_a_host_model_is_found_in_a_snapshot(tmp_path: Path) -> None:
    """The catalogue of the site says how many nodes it has."""
    (estate,) = snapshot.load(SMALL)
    (host,) = estate.hosts.values()
    file = _csv(
        tmp_path, f"name;vCPU;memory GB;host model\nsql01;16;64;{host.model or host.name}\nsql02;8;8;X1\n"
    )
    ran = vnuma_here("check", "--design", file, "--snapshot", SMALL, "--format", "json")
    assert ran.code == 0, ran.text
    assert "is called X1" in ran.out


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


def test_a_count_that_is_none_is_named_as_its_column_is(tmp_path: Path) -> None:
    """The message has the words of a table, not a name of ours."""
    table = tmp_path / "design.csv"
    table.write_text("name,vCPU,cores per socket,memory\na,4,4,64\nb,4,0,64\n", encoding="utf-8")
    shown = vnuma_here("check", table, "--format", "markdown")
    assert "cores per socket is '0', not a number of CPUs" in shown.out, shown.text


def test_a_workbooks_rows_have_excels_numbers_and_its_bad_cells_are_named(tmp_path: Path) -> None:
    """Below a title and an empty row. A total is not a VM; a system other than Windows is valid."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in (
        ["SQL platform"],
        [],
        ["VM name", "vCPU", "Memory GB", "CPU hot add", "SQL", "OS"],
        ["sql01", 16, 64, "no", "Enterprise 2022", "2022"],
        ["sql02", 16, 64, "maybe", "Web 2025", "Debian 12"],
        ["Total", 32, 128],
    ):
        sheet.append(row)
    book.save(tmp_path / "design.xlsx")

    estate = read_design(tmp_path / "design.xlsx")

    assert [vm.facts.name for vm in estate.vms] == ["sql01", "sql02"]
    assert estate.vms[0].guest is not None
    assert estate.vms[0].guest.build == 20348
    said = [(item.name, item.why) for item in estate.unseen]
    assert [name for name, _ in said] == ["sql02", "sql02", "Total"]
    assert all(why.startswith(f"row {row}") for (_, why), row in zip(said, (5, 5, 6), strict=True))
    assert {"maybe", "no Web edition"} <= {
        word for _, why in said for word in ("maybe", "no Web edition") if word in why
    }


POWERCLI = (
    "#TYPE Selected.VMware.VimAutomation.ViCore.Impl.V1.VM.UniversalVirtualMachineImpl\n"
    '"Name","PowerState","NumCpu","CoresPerSocket","MemoryMB","MemoryGB","HardwareVersion","Guest"\n'
    '"sql01","PoweredOn","16","8","65536","64","vmx-19","sql01:Microsoft Windows Server 2019 (64-bit)"\n'
)


def test_what_powercli_exports_is_a_table(tmp_path: Path) -> None:
    """Get-VM | Export-Csv, with its line of types above the headers."""
    (vm,) = read_design(_csv(tmp_path, POWERCLI)).vms

    settings = vm.facts.settings
    assert (settings["numCPUs"], settings["numCoresPerSocket"], settings["memoryMB"]) == (16, 8, 65536)
    assert vm.facts.hardware_version == 19
    assert vm.guest is not None
    assert vm.guest.build == 17763


@pytest.mark.parametrize(
    ("name", "system", "build"),
    [
        ("sql-2016", "Microsoft Windows Server 2022 (64-bit)", 20348),
        ("windows-sql", "Red Hat Enterprise Linux 9 (64-bit)", None),
        ("windows-sql", "", None),  # without VMware Tools
    ],
)
def test_the_vms_name_in_powerclis_guest_says_nothing_of_its_system(
    tmp_path: Path, name: str, system: str, build: int | None
) -> None:
    """The system is what follows the name, which may itself look like one."""
    text = POWERCLI.replace("sql01", name).replace("Microsoft Windows Server 2019 (64-bit)", system)

    (vm,) = read_design(_csv(tmp_path, text)).vms

    assert (vm.guest.build if vm.guest else None) == build
    assert (vm.guest is None) is (build is None)
    assert name not in vm.absent.get("guest", "")


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


@pytest.mark.parametrize(
    ("system", "cores", "found"),
    [
        ("Microsoft Windows 11 (64-bit)", 2, True),
        ("Microsoft Windows 10 (64-bit)", 4, False),
        ("Windows 10 Enterprise", 4, False),
        ("Windows 10 Pro", 4, True),
    ],
)
def test_a_client_windows_without_an_edition_uses_four_sockets_at_most(
    tmp_path: Path, system: str, cores: int, found: bool
) -> None:
    """16 vCPUs: above four sockets no edition uses them all; up to four it depends on the edition."""
    text = f"name;vCPU;Cores per socket;OS;host\npc;16;{cores};{system};2x16/256@7.0\n"
    (vm,) = checked(read_design(_csv(tmp_path, text))).vms
    assert ("W04" in {item.finding.rule for item in vm.findings}) == found
    assert ("W04" in vm.not_evaluated) == (system == "Microsoft Windows 10 (64-bit)")


def test_a_table_without_columns_for_defaults_assumes_them(tmp_path: Path) -> None:
    """Hot-add, affinity and keys, and from ESXi 8 automatic cores per socket: marked; never reservations."""
    (vm,) = checked(read_design(_csv(tmp_path, "name;vCPU;RAM GB;host\ndb;8;64;2x16/256@8.0\n"))).vms
    assert vm.assumed["T12"] == "assumes default CPU hot-add, not shown by the table"
    assert vm.assumed["T01"] == "assumes default cores per socket, not shown by the table"
    assert vm.undecided == ()
    assert "M01" in vm.not_evaluated
    (older,) = checked(read_design(_csv(tmp_path, "name;vCPU;RAM GB;host\ndb;8;64;2x16/256@7.0\n"))).vms
    assert "T01" in older.undecided
