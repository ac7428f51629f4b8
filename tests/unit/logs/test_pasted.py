"""Texts as people paste them: several sources in one, half of one, quoted, translated, wrapped."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.logs.layouts import new_form
from vnuma.domain.topology.evidence import conclusion
from vnuma.logs.kinds import Reading, read_any
from vnuma.logs.pasted import decoded

MAPS = """Logical Processor to Socket Map:
****----  Socket 0
----****  Socket 1

Logical Processor to NUMA Node Map:
****----  NUMA Node 0
----****  NUMA Node 1
"""
LSCPU = """CPU(s):              8
Core(s) per socket:  4
Socket(s):           2
NUMA node(s):        2
NUMA node0 CPU(s):   0-3
NUMA node1 CPU(s):   4-7
"""
TWO_NODES = {"cpus": 8, "sockets": 2, "numa_nodes": 2, "node_sizes": (4, 4)}


def dict_lines(**settings: object) -> str:
    """A power-on's settings, as its log has them."""
    return "".join(f'vmx| DICT {key:>24} = "{value}"\n' for key, value in settings.items())


def start(at: str, sockets: int, cores: int, *, soft: bool = False, nodes: int = 1) -> str:
    """What a SQL Server writes at a start, with its nodes' masks."""
    total = sockets * cores
    words = (
        f"SQL Server detected {sockets} sockets with {cores} cores per socket and {cores} logical processors "
        f"per socket, {total} total logical processors; using {total} logical processors based on SQL Server "
        "licensing."
    )
    lines = [words, *["Automatic soft-NUMA was enabled because"] * soft]
    for node in range(nodes):
        mask = ((1 << total // nodes) - 1) << node * (total // nodes)
        lines.append(
            f"Node configuration: node {node}: CPU mask: 0x{mask:016x}:0 Active CPU mask: 0x{mask:016x}:0."
        )
    return "".join(f"{at}.10 Server      {line}\n" for line in lines)


def one(text: str, kind: str) -> Reading:
    """The text's one reading, of that kind."""
    (reading,) = read_any(text)
    assert reading.kind == kind
    return reading


def figures(text: str, kind: str, *names: str) -> dict[str, Any]:
    """Those figures of the text's one reading."""
    return {name: one(text, kind).figures.get(name) for name in names}


@pytest.mark.parametrize(
    "text",
    [
        LSCPU.replace("\n", "<br/>\n"),
        f"<p>{LSCPU.rstrip()}</p>",
        "".join(f"> {line}\n" for line in LSCPU.splitlines()),
        "".join(f"# {line}\n" for line in LSCPU.splitlines()),
        "alpha$ lscpu\n" + LSCPU.replace(" ", "\u00a0"),
    ],
)
def test_what_a_page_or_a_reply_has_put_around_is_taken_away(text: str) -> None:
    """Tags, quotes and comment signs."""
    assert figures(text, "lscpu", *TWO_NODES) == TWO_NODES


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_an_encoding_shows_without_its_mark(encoding: str) -> None:
    """A log's end has lost it."""
    assert decoded(LSCPU.encode(encoding)) == LSCPU


def test_a_piece_that_begins_within_a_character_is_read() -> None:
    """`tail -c` cuts between two bytes."""
    assert decoded(LSCPU.encode("utf-16-le")[1:])[:30] == LSCPU[1:31]


@pytest.mark.parametrize(
    "text",
    [
        """CPU(s):                  8
Liste der Online-CPU(s): 0-7
Kern(e) pro Socket:      4
Sockel:                  2
NUMA-Knoten:             2
NUMA-Knoten0 CPU(s):     0-3
NUMA-Knoten1 CPU(s):     4-7
""",
        """CPU:             8
在线 CPU 列表@  0-7
每个座的核数@   4
座@             2
NUMA 节点@      2
NUMA 节点0 CPU@ 0-3
NUMA 节点1 CPU@ 4-7
""",
        """Processeur(s) :                 8
Cœur(s) par socket :            4
Socket(s) :                     2
Nœud(s) NUMA :                  2
Nœud NUMA 0 de processeur(s) :  0-3
Nœud NUMA 1 de processeur(s) :  4-7
""",
        """CPU(s):                   8
Núcleo(s) por «socket»:   4
«Socket(s)»               2
Modo(s) NUMA:             2
CPU(s) del nodo NUMA 0:   0-3
CPU(s) del nodo NUMA 1:   4-7
""",
        """CPU(s):             8
Core(s) per socket: 4
座@                2
NUMA 节点@         2
NUMA 节点0 CPU@    0-3
NUMA 节点1 CPU@    4-7
""",
    ],
    ids=["German", "Chinese", "French", "Spanish", "half Chinese"],
)
def test_lscpu_is_read_in_other_languages(text: str) -> None:
    """util-linux translates line by line."""
    text = text.replace("@", "\uff1a")  # a colon as wide as a Chinese character
    assert figures(text, "lscpu", *TWO_NODES, "cores_per_socket") == TWO_NODES | {"cores_per_socket": 4}


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (LSCPU.replace("4-7", "").replace("0-3", "0-7"), (8, 0)),  # memory without processors
        (LSCPU.replace("NUMA node0 CPU(s)", "CPU(s) de nó0 NUMA"), (4, 4)),  # Portuguese
    ],
)
def test_lists_of_nodes_are_read_in_rarer_forms(text: str, sizes: tuple[int, ...]) -> None:
    """A node that has no processors, and one whose number stands before the word NUMA."""
    assert figures(text, "lscpu", "node_sizes", "doubts") == {"node_sizes": sizes, "doubts": None}


def test_two_machines_are_two_readings() -> None:
    """Never the nodes of one with the processors of the other."""
    small = "CPU(s): 4\nSocket(s): 1\nNUMA node(s): 1\nNUMA node0 CPU(s): 0-3\n"
    assert [reading.figures["node_sizes"] for reading in read_any(LSCPU + small)] == [(4, 4), (4,)]
    assert [reading.figures["node_sizes"] for reading in read_any(MAPS + MAPS)] == [(4, 4), (4, 4)]


def test_processors_of_two_models_are_one_machine() -> None:
    """lscpu then has sockets and cores for each model: one reading, which claims neither."""
    text = LSCPU.replace("NUMA node(s)", "Core(s) per socket:  4\nSocket(s):           2\nNUMA node(s)")
    assert figures(text, "lscpu", *TWO_NODES) == TWO_NODES | {"sockets": None}


def test_a_total_that_its_details_contradict_is_in_doubt() -> None:
    """A cut text of lscpu: no sizes, and the conclusion says why."""
    reading = one(LSCPU.rpartition("NUMA node1")[0], "lscpu")
    assert (reading.figures["numa_nodes"], reading.figures.get("node_sizes")) == (2, None)
    assert len(reading.figures["doubts"]) == 2


def test_offline_processors_are_no_contradiction() -> None:
    """They are counted, and on no node's list."""
    text = LSCPU.replace("4-7", "4-5").replace(
        "Core", "On-line CPU(s) list: 0-5\nOff-line CPU(s) list: 6,7\nCore"
    )
    assert figures(text, "lscpu", "node_sizes", "doubts") == {"node_sizes": (4, 2), "doubts": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MAPS, (2, 2, (4, 4), 0)),
        (MAPS.rpartition("----****")[0], (2, None, None, 1)),  # cut after its first node
        (MAPS.replace("----", "——"), (2, 2, (4, 4), 1)),  # a blog's dashes
        ("".join(f"> {line}\n" for line in MAPS.splitlines()), (2, 2, (4, 4), 0)),
    ],
)
def test_maps_of_coreinfo_are_whole_or_in_doubt(text: str, expected: tuple[object, ...]) -> None:
    """A map that places fewer CPUs than it is wide is cut."""
    seen = one(text, "Coreinfo").figures
    counts = seen.get("sockets"), seen.get("numa_nodes"), seen.get("node_sizes"), len(seen.get("doubts", ()))
    assert counts == expected


def test_numactl_shows_nodes_and_their_memory() -> None:
    """A node without CPUs is a node; a missing one is a doubt."""
    text = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 9000 MB\n"
    whole = one(text.replace("1 2", "1-2") + "node 1 cpus:\nnode 1 size: 8000 MB\n", "numactl -H").figures
    assert (whole["node_sizes"], whole["node_memory_mb"]) == ((4, 0), (9000, 8000))
    cut = one(text, "numactl -H").figures
    assert (cut["numa_nodes"], cut.get("node_sizes"), len(cut["doubts"])) == (2, None, 1)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("  64 PCPUs\n  32 cores\n   2 packages\n   4 NUMA nodes\n", "sched-stats -t ncpus", (2, 4)),
        ("CPU Packages: 2\nCPU Cores: 32\nNUMA Node Count: 4\n", "esxcli hardware", (2, 4)),
        ("   CPU Packages: 2\n   CPU Cores: 32\n", "esxcli hardware", (2, None)),
    ],
)
def test_a_host_is_read_as_its_own_tools_count_it(
    text: str, kind: str, expected: tuple[int, int | None]
) -> None:
    """Packages and NUMA nodes, as far as shown."""
    reading = one(text, kind)
    assert (reading.figures["packages"], reading.figures.get("numa_nodes")) == expected
    assert str(expected[0]) in conclusion(reading)


def test_a_batch_file_of_esxtop_is_read_by_its_last_sample() -> None:
    """VMs by id and name; without NUMA columns nothing is claimed of them."""

    def column(counter: str) -> str:
        return f'"\\\\esx\\Group Memory(71:sql16)\\{counter}"'

    header = f'"(PDH-CSV 4.0) (UTC)(0)",{column("Memory Size MBytes")},{column("NHN")},{column("N%L")}'
    samples = '\n"05/15/2031 06:49:37","64","0","50"\n"05/15/2031 06:49:42","64","0,1","97"\n'
    (vm,) = one(header + samples, "esxtop, batch").figures["vms"]
    assert (vm["gid"], vm["name"], vm["nhn"], vm["n_pct_l"]) == ("71", "sql16", (0, 1), 97)

    bare = one(
        f'"(PDH-CSV 4.0) (UTC)(0)",{column("Memory Size MBytes")}\n"05/15/2031","64"\n', "esxtop, batch"
    )
    assert bare.figures["vms"][0]["n_pct_l"] is None


def test_a_table_that_a_terminal_has_folded_is_read() -> None:
    """Eleven columns are wider than 80 characters."""
    names = [*("groupName", "groupID", "clientID", "homeNode", "affinity", "nWorlds"), "vmmWorlds"]
    names += ["localMem", "remoteMem"]
    rows = [names, ["vm.7", "811", "0", "1", "3", "8", "8", "33554432", "0"]]
    table = ["".join(f"{cell:>12}" for cell in row) for row in rows]
    folded = "\n".join(f"{line[:80].rstrip()}\n{line[80:]}" for line in table)
    (row,) = one(folded, "sched-stats -t numa-clients").figures["rows"]
    assert (row["group_id"], row["home_node"], row["local_kb"], row["remote_kb"]) == (811, 1, 33554432, 0)


OLD, NEW = start("2031-02-03 04:05:06", 4, 4, soft=True, nodes=4), start("2031-02-04 07:00:00", 1, 8)


@pytest.mark.parametrize(
    "text", [OLD + NEW, NEW + OLD, "".join(f"{line}\n" for line in reversed((OLD + NEW).splitlines()))]
)
def test_the_last_start_of_an_error_log_decides(text: str) -> None:
    """Whatever the order of the files or of the lines; the others are named, and nothing of them counts."""
    seen = one(text, "SQL Server error log").figures
    assert (seen["sockets"], seen["total"], seen["node_cpus"]) == (1, 8, (8,))
    assert "soft_numa" not in seen
    assert seen["earlier_starts"] == ("2031-02-03T04:05:06",)


def test_two_servers_in_one_text_are_two_readings() -> None:
    """Each log names its server."""
    named = (f"{OLD}Server name is 'A'. This is\n", f"{NEW}Server name is 'B'. This is\n")
    assert [reading.figures["total"] for reading in read_any("".join(named))] == [16, 8]


def test_a_new_file_of_the_same_process_is_no_new_start() -> None:
    """sp_cycle_errorlog repeats the process and the machine, and no processors."""
    first = "Server process ID is 12.\nSystem Manufacturer: 'VMware, Inc.', System Model: 'VMware7,1'.\n"
    assert figures(first + NEW + first, "SQL Server error log", "total", "model") == {
        "total": 8,
        "model": "VMware7,1",
    }


def test_error_logs_of_old_and_translated_servers() -> None:
    """2005 to 2008 R2 count CPUs alone; in other languages masks are read, and marked as translated."""
    assert figures("Server  Detected 8 CPUs. This is", "SQL Server error log", "total") == {"total": 8}
    other = "Knotenkonfiguration: Knoten 0: CPU-Maske: 0x00ff:0 Aktive CPU-Maske: 0x00ff:0."
    reading = one(other, "SQL Server error log")
    assert (reading.figures["node_cpus"], reading.figures["translated"]) == ((8,), True)


def test_nodes_that_do_not_add_up_are_a_doubt() -> None:
    """Half of the masks are cut off."""
    text = "\n".join(OLD.splitlines()[:4])
    assert len(one(text, "SQL Server error log").figures["doubts"]) == 1


BIG = dict_lines(displayName="db", numvcpus=16) + new_form([8, 8])
SMALL = dict_lines(displayName="print", numvcpus=4)


def test_logs_of_two_vms_are_two_readings() -> None:
    """The loop over `vmdumper -l` prints every VM of a host, and a small one may have no layout."""
    assert [reading.figures["vpds"] for reading in read_any(BIG + SMALL + new_form([4]))] == [2, 1]
    bare, whole = read_any(f"{SMALL}\n{BIG}")
    assert (bare.figures["settings"]["numvcpus"], whole.figures["settings"]["numvcpus"]) == ("4", "16")
    whole, bare = read_any(BIG + SMALL)
    assert (whole.figures["vcpus"], bare.figures["vcpus"], "vpds" in bare.figures) == (16, 4, False)
    assert not any("Sure" in conclusion(reading) for reading in (whole, bare))


def test_another_power_on_without_a_name_may_be_another_vms() -> None:
    """The last one decides, and the conclusion is not sure that it is of the VM that is meant."""
    reading = one(
        dict_lines(numvcpus=16) + new_form([8, 8]) + dict_lines(numvcpus=4) + new_form([4]), "vmware.log"
    )
    assert (reading.figures["vcpus"], reading.figures["earlier_power_ons"]) == (
        4,
        ({"began": None, "vpds": 2},),
    )
    assert "Sure" not in conclusion(reading)


def test_the_last_power_on_decides_with_its_own_flags_and_keys() -> None:
    """Hot-add of an earlier one, and a key that is gone, count no more; the earlier one is named."""
    forced = "numa: Hot add is enabled and vNUMA hot add is disabled, forcing UMA.\n"
    first = (
        dict_lines(**{"numvcpus": 16, "vcpu.hotadd": "TRUE", "numa.vcpu.min": 8}) + forced + new_form([16])
    )
    seen = one(
        first + dict_lines(**{"numvcpus": 16, "vcpu.hotadd": "FALSE"}) + new_form([8, 8]), "vmware.log"
    ).figures
    assert (seen["vpds"], "forced_uma" in seen, "numa.vcpu.min" in seen["settings"]) == (2, False, False)
    assert len(seen["earlier_power_ons"]) == 1


def test_a_layout_told_again_has_its_own_flags() -> None:
    """Without settings between, as in lines found by grep."""
    forced = "numa: Hot add is enabled and vNUMA hot add is disabled, forcing UMA.\n"
    assert "forced_uma" not in one(forced + new_form([16]) + new_form([8, 8]), "vmware.log").figures


@pytest.mark.parametrize("removal", ['Setting numa.autosize.cookie = ""', 'Unsetting "numa.autosize.cookie"'])
def test_a_removed_key_is_not_written(removal: str) -> None:
    """By an empty value, or by name."""
    written = 'ConfigDB: Setting numa.autosize.cookie = "160001"\n'
    assert "written" not in one(f"{BIG}{written}ConfigDB: {removal}\n", "vmware.log").figures


def test_a_logs_first_line_begins_a_power_on() -> None:
    """Of two files, one after the other: settings of the first are not those of the second."""
    begin = "2031-01-01T10:00:00.000Z In(05) vmx - Log for VMware ESX pid=21 version=8.0.3\n"
    seen = one(begin + BIG + begin + new_form([4, 4]), "vmware.log").figures
    assert (seen["vcpus"], "settings" in seen, len(seen["earlier_power_ons"])) == (8, False, 1)


def test_a_log_without_its_total_is_never_sure() -> None:
    """Seven of sixteen vCPUs: no layout. All of them, but no total: a layout, in doubt."""
    lines = BIG.splitlines(keepends=True)
    cut = one("".join(lines[:2] + lines[3:10]), "vmware.log")
    assert ("vpds" in cut.figures, cut.figures["vcpus"], len(cut.figures["doubts"])) == (False, 16, 1)
    bare = one("".join(lines[:2] + lines[3:]), "vmware.log")
    assert (bare.figures["vpds"], "has_total" in bare.figures) == (2, False)
    assert "Not sure" in conclusion(bare)


def test_a_layout_of_other_vcpus_than_the_configuration_is_a_doubt() -> None:
    """Settings of one VM above the layout of another."""
    assert one(SMALL + new_form([8, 8]), "vmware.log").figures["doubts"] == (
        "the configuration has 4 vCPUs, the layout 16",
    )


@pytest.mark.parametrize("at", [" ", "PD", "V"])
def test_lines_that_a_console_has_wrapped_are_joined(at: str) -> None:
    """Between words or within one, each line with its time."""
    whole = new_form([1, 1], prefix="2031-01-01T10:00:01.000Z| vmx| I125: ")
    wrapped = "".join(
        f"{line[:cut]}\n{line[cut:]}\n" for line in whole.splitlines() if (cut := line.rfind(at)) >= 0
    )
    assert figures(wrapped, "vmware.log", "vcpus", "vpds", "ppds") == {"vcpus": 2, "vpds": 2, "ppds": 2}


def test_lines_without_a_layout_are_not_called_missing() -> None:
    """A stored sizing of another shape: what ESXi says of it is the answer."""
    text = "numa: coresPerSocket = 12 maxVcpusPerVPD = 8\nnuma: Invalid NUMA cookie.\n"
    words = conclusion(one(dict_lines(numvcpus=12) + text, "vmware.log"))
    assert "cookie" in words
