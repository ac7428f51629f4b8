"""Designs as .vmx, .ovf and .ova: the same facts as from any other source, and refusals in a sentence."""

from __future__ import annotations

import io
import json
import re
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.estate.build import check, checked, failed, rules_in
from tests.estate.designs import Design
from tests.support.cli import vnuma_here
from vnuma.checks.facts import HARDWARE
from vnuma.checks.rule import Severity
from vnuma.checks.rules.catalogue import RULES
from vnuma.domain.topology.vm_location import VmLocation, parse_host
from vnuma.domain.vm.estate import Estate, EstateVm
from vnuma.engine.design_check.designed_vms import on_hosts
from vnuma.estate.design import read_design, with_contradictions
from vnuma.estate.rvtools import read_rvtools

HOSTS = {
    release: VmLocation((parse_host("2x16/256", release, 2),)) for release in ("6.7", "7.0", "8.0", "9.0")
}

DESIGNS = st.builds(
    Design,
    vcpus=st.sampled_from([2, 8, 12, 16, 20, 30, 48, 80]),
    cores_per_socket=st.sampled_from([1, 2, 4, 5, 8, 16]),
    memory=st.sampled_from([4096, 65536, 393216]),
    reservation=st.sampled_from([0, 4096]),
    cpu_hot_add=st.booleans(),
    memory_hot_add=st.booleans(),
    hardware=st.sampled_from([13, 19, 20]),
    windows=st.sampled_from(["", "2019"]),
    keys=st.dictionaries(
        st.sampled_from(["numa.vcpu.preferHT", "numa.autosize.once", "numa.vcpu.min"]),
        st.sampled_from(["TRUE", "FALSE", "4"]),
    ),
)


@dataclass(frozen=True)
class Judged:
    """What failed, with what was seen; the rules that were not evaluated, and those that assumed defaults."""

    failed: dict[str, dict[str, str]]
    unknown: set[str]
    assumed: set[str]

    def seen(self, rule: str, *, sure: bool) -> dict[str, str] | None:
        """What a finding observed; unless `sure`, without how sure predictions are. None: it passed."""
        found = self.failed.get(rule)
        if found is None or sure:
            return found
        return {name: value.partition(" (")[0] for name, value in found.items()}


def _judged(estate: Estate, release: str) -> Judged:
    """The rules on the only VM, on a described host."""
    (vm,) = checked(on_hosts(estate, HOSTS[release], None)).vms
    failed = {item.finding.rule: dict(item.finding.observed) for item in vm.findings}
    return Judged(failed, set(vm.not_evaluated), set(vm.assumed))


@settings(max_examples=40, deadline=None)
@given(design=DESIGNS, release=st.sampled_from(sorted(HOSTS)))
def test_the_same_vm_gives_the_same_findings_whatever_describes_it(design: Design, release: str) -> None:
    """Each rule that two sources can answer, they answer alike, down to what was observed. Where one had to
    assume a default, it says so, and may be less sure of a prediction.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        forms = (design.terraform, design.vmx, design.ovf, design.ansible, design.table, design.api)
        read = [read_design(write(folder)) for write in forms]
        # An export shows no keys, so it is the same VM only where there are none.
        exported = [] if design.keys else [read_rvtools(design.rvtools(folder))]
        read += [design.live(), *exported]
    # With hot-add, sources that do not show its exposure of vNUMA are less sure of the same nodes.
    unsure = design.cpu_hot_add and design.hardware >= 20
    answers = {estate.kind: _judged(estate, release) for estate in read}
    for kind, one in answers.items():
        for other_kind, other in answers.items():
            assumed = one.assumed | other.assumed
            for rule in (one.failed.keys() | other.failed.keys()) - one.unknown - other.unknown:
                sure = not unsure and rule not in assumed
                assert one.seen(rule, sure=sure) == other.seen(rule, sure=sure), (rule, kind, other_kind)
    assert answers["vcenter"].assumed <= {"T16"}  # the described host's options
    assert min(len(RULES) - len(one.unknown) for one in answers.values()) > 25


def _only(path: Path) -> EstateVm:
    (vm,) = read_design(path).vms
    return vm


BARE = (("UTF-16", "utf-16-le"), ("UTF-16", "utf-16-be"), ("UTF-16", "utf-8"))
"""UTF-16 without a byte order mark, and a file that only says that it is UTF-16."""


@pytest.mark.parametrize(
    ("encoding", "stored"),
    [("windows-1252", "latin-1"), ("UTF-8", "utf-8"), ("UTF-16", "utf-16"), *BARE],
)
def test_a_vmx_file_is_read_whatever_its_spelling_and_character_set(
    tmp_path: Path, encoding: str, stored: str
) -> None:
    """Keys in any case, values with and without quotes, comments, escapes; no hardware version is open."""
    lines = (
        f'# A VM\n.encoding = "{encoding}"\nNUMVCPUS = "8"\ncpuid.corespersocket=4\nMEMSIZE = "32768" # MB\n'
    )
    file = tmp_path / "vm.vmx"
    file.write_bytes(f'{lines}displayName = "Müller |22x|22"\nsched.cpu.affinity = "0-3,8"\n'.encode(stored))
    vm = _only(file)
    assert vm.facts.name == 'Müller "x"'
    assert (
        vm.facts.settings.items()
        >= {**{"numCPUs": 8, "numCoresPerSocket": 4, "cpuAffinity": (0, 1, 2, 3, 8)}}.items()
    )
    assert vm.absent["coresPerNumaNode"] == "a .vmx file does not show it"
    assert {HARDWARE} <= vm.absent.keys()


@pytest.mark.parametrize(("text", "size"), [("6", (6, False)), ("0", (0, True))])
def test_a_vmx_file_of_esxi_8_has_the_size_of_its_numa_nodes(
    tmp_path: Path, text: str, size: tuple[int, bool]
) -> None:
    """`numa.vcpu.coresPerNode`, as a log of 8.0 shows it; 0 is automatic. T09: its two nodes are set."""
    keys = {"numa.vcpu.coresPerNode": text}
    file = Design(vcpus=12, cores_per_socket=6, memory=393216, hardware=20, keys=keys).vmx(tmp_path)
    settings = _only(file).facts.settings
    assert (settings["coresPerNumaNode"], settings["autoCoresPerNumaNode"]) == size
    assert _only(file).absent.keys().isdisjoint({"coresPerNumaNode"})
    assert text == "0" or _judged(read_design(file), "8.0").failed.keys().isdisjoint({"T09"})


@pytest.mark.parametrize(
    "line", ['numvcpus = "abc"', f'memSize = "{"9" * 5000}"', 'cpuid.coresPerSocket = "x"']
)
def test_a_vm_whose_size_is_not_a_number_is_unread(tmp_path: Path, line: str) -> None:
    """Nothing replaces it; a file with nothing else to check ends with exit code 3."""
    file = tmp_path / "vm.vmx"
    file.write_text(f'displayName = "db"\nvirtualHW.version = "19"\n{line}\n')
    ran = vnuma_here("check", file)
    assert (ran.code, ran.out) == (3, "")
    assert line[:5].lower() in ran.err


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("20",), (0, True)),
        (("20", "0"), (0, True)),
        (("20", "12"), (12, False)),
        (("19",), (1, False)),
        (("19", "0"), (1, False)),
        (("19", "1"), (1, False)),
    ],
)
def test_cores_per_socket_without_a_number_are_automatic_since_hardware_20(
    tmp_path: Path, lines: tuple[str, ...], expected: tuple[int, bool]
) -> None:
    """Older hardware has one core per socket then; 0 says the same as no key."""
    file = tmp_path / "vm.vmx"
    keys = zip(("virtualHW.version", "cpuid.coresPerSocket"), lines, strict=False)
    file.write_text("".join(f'{key} = "{value}"\n' for key, value in keys) + 'numvcpus = "24"\n')
    settings = _only(file).facts.settings
    assert (settings["numCoresPerSocket"], settings["autoCoresPerSocket"]) == expected


_SYSTEM = """<VirtualSystem ovf:id="v"><Name>v</Name><VirtualHardwareSection>
<System><vssd:VirtualSystemType>{types}</vssd:VirtualSystemType></System>
<Item><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>{cpus}</rasd:VirtualQuantity></Item>
<Item><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>65536</rasd:VirtualQuantity></Item>
</VirtualHardwareSection></VirtualSystem>"""


def _ovf(folder: Path, body: str) -> Path:
    file = folder / "v.ovf"
    names = {"ovf": "envelope/1", "rasd": "CIM_ResourceAllocationSettingData", "vssd": "VSSD"}
    spaces = " ".join(f'xmlns:{prefix}="http://schemas.dmtf.org/{name}"' for prefix, name in names.items())
    file.write_text(f"<Envelope {spaces}>{body}</Envelope>", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("release", "hardware", "rules"), [("8.0", 20, set()), ("7.0", 13, {"R08"}), ("6.0", 9, {"R08"})]
)
def test_the_host_runs_the_highest_hardware_version_that_an_ovf_offers(
    tmp_path: Path, release: str, hardware: int, rules: set[str]
) -> None:
    """192 vCPUs need version 15 or later; what the host does not run is not chosen."""
    estate = read_design(_ovf(tmp_path, _SYSTEM.format(types="vmx-9 vmx-20 vmx-13", cpus=192)))
    there = on_hosts(estate, VmLocation((parse_host("2x128/1024", release),)), None)
    (vm,) = there.vms
    assert vm.facts.hardware_version == hardware
    (judged,) = checked(there).vms
    assert {item.finding.rule for item in judged.findings} & {"R07", "R08"} == rules


@pytest.mark.parametrize(
    ("body", "words"),
    [("<Content/>", "OVF 0.9"), (_SYSTEM.format(types="vmx-19", cpus="4" * 5000), "processors")],
)
def test_an_ovf_that_is_not_read_says_why(tmp_path: Path, body: str, words: str) -> None:
    """OVF 0.9 is named; a quantity of 5,000 digits is an unread VM."""
    ran = vnuma_here("check", _ovf(tmp_path, body))
    assert ran.code == 3
    assert words in ran.err


def test_the_default_configuration_of_an_ovf_is_what_is_deployed(tmp_path: Path) -> None:
    """Items of other configurations are not; memory is read in the units that it has."""
    file = Design(vcpus=4, cores_per_socket=1, memory=8192).ovf(tmp_path)
    text = file.read_text()
    item = text[text.index("<Item><rasd:ElementName>CPUs") : text.index("<Item><rasd:AllocationUnits>")]
    wide = item.replace("<Item>", '<Item ovf:configuration="large">').replace(">4<", ">32<")
    options = (
        '<DeploymentOptionSection><Info/><Configuration ovf:id="small"/><Configuration ovf:id="large"{}/>'
    )
    text = text.replace(item, item + wide).replace("byte * 2^20", "byte * 2^30").replace(">8192<", ">8<")
    for marked, vcpus in (("", 4), (' ovf:default="true"', 32)):
        section = options.format(marked) + "</DeploymentOptionSection>"
        file.write_text(text.replace("<VirtualSystem ", section + "<VirtualSystem ", 1))
        settings = _only(file).facts.settings
        assert (settings["numCPUs"], settings["memoryMB"]) == (vcpus, 8192)


@pytest.mark.parametrize(
    ("units", "reservation", "megahertz"),
    [("hertz * 10^6", 8000, 8000), ("hertz * 10^9", 8, 8000), ("", 8000, 8000), ("MHz", 8000, 8000)],
)
def test_an_ovf_has_reservations_and_limits_in_their_units(
    tmp_path: Path, units: str, reservation: int, megahertz: int
) -> None:
    """Of processors in hertz, of memory in bytes; an item that bounds a range is not what is deployed."""
    file = Design(memory=64, reservation=64, limit=128, cpu_reservation=reservation).ovf(tmp_path)
    text = file.read_text().replace("byte * 2^20", "byte * 2^30")
    item = text[text.index("<Item><rasd:ElementName>CPUs") : text.index("<Item><rasd:AllocationUnits>")]
    given = item.replace("<Item>", f"<Item><rasd:AllocationUnits>{units}</rasd:AllocationUnits>")
    most = item.replace("<Item>", '<Item ovf:bound="max">').replace(">16<", ">64<")
    file.write_text(text.replace(item, given + most))

    vm = _only(file)

    shown = vm.facts.settings
    assert (shown["numCPUs"], shown["cpuReservation"], shown["cpuLimit"]) == (16, megahertz, -1)
    assert (shown["memoryMB"], shown["memoryReservation"], shown["memoryLimit"]) == (65536, 65536, 131072)


@pytest.mark.parametrize(("reservation", "found"), [(65536, set()), (4096, {"M01"})])
def test_an_ovf_shows_whether_all_memory_is_reserved(
    tmp_path: Path, reservation: int, found: set[str]
) -> None:
    """M01: a template with all memory reserved passes, another is found."""
    (vm,) = checked(read_design(Design(reservation=reservation).ovf(tmp_path))).vms
    assert failed(vm) & {"M01"} == found
    assert vm.not_evaluated.keys().isdisjoint({"M01"})


def test_an_ovf_of_a_newer_vcenter_has_cores_per_numa_node(tmp_path: Path) -> None:
    """0 is automatic."""
    file = Design(hardware=20).ovf(tmp_path)
    text, key = file.read_text(), '<vmw:Config ovf:required="false" vmw:key="cpuHotAddEnabled"'
    for size, automatic in ((0, True), (8, False)):
        numa = f'<vmw:Config vmw:key="virtualNuma.coresPerNumaNode" vmw:value="{size}"/>'
        file.write_text(text.replace(key, numa + key))
        settings = _only(file).facts.settings
        assert (settings["coresPerNumaNode"], settings["autoCoresPerNumaNode"]) == (size, automatic)


def test_of_an_ova_only_the_descriptor_is_read(tmp_path: Path) -> None:
    """The disk behind it is cut off here: nobody looks."""
    descriptor = Design(cores_per_socket=3).ovf(tmp_path).read_bytes()
    ova = tmp_path / "sql16.ova"
    with tarfile.open(ova, "w") as archive:
        for name, size in (("sql16.ovf", len(descriptor)), ("disk.vmdk", 10_000)):
            info = tarfile.TarInfo(name)
            info.size = size
            archive.addfile(info, io.BytesIO(descriptor.ljust(size)))
    ova.write_bytes(ova.read_bytes()[: len(descriptor) + 4096])

    assert rules_in(check("--design", ova)) >= {"T01"}


def test_a_design_whose_last_socket_is_not_full_is_found_and_not_predicted(tmp_path: Path) -> None:
    """A block, no layout of the guest, and rules that need one say why they were not evaluated."""
    estate = read_design(Design(cores_per_socket=3).vmx(tmp_path))

    (vm,) = checked(on_hosts(estate, HOSTS["8.0"], None)).vms

    assert [item.finding.rule for item in vm.findings if item.severity is Severity.BLOCK] == ["T01"]
    assert (vm.guest, vm.planned, "x" in vm.shape) == ("", None, False)
    assert {"T04"} <= vm.not_evaluated.keys()


def test_a_vmx_file_with_a_key_twice_is_not_checked(tmp_path: Path) -> None:
    """VMware does not open it; both lines are named. A key twice in two cases is the same key."""
    file = Design().vmx(tmp_path)
    file.write_text(file.read_text(encoding="utf-8") + '\nNUMVCPUS = "24"\n', encoding="utf-8")

    estate = read_design(file)

    (unread,) = estate.unseen
    assert (estate.vms, unread.name) == ((), "sql16")
    assert re.findall(r"'(\d+)' in line (\d+)", unread.why) == [("16", "4"), ("24", "13")]


def test_designs_that_contradict_each_other_are_reported_and_checked(tmp_path: Path) -> None:
    """One VM in two files: what differs is named with both files; what only one of them states is not."""
    table, file = tmp_path / "plan.csv", tmp_path / "sql01.vmx"
    table.write_text("name;vCPU;cores per socket;memory GB\nsql01;16;8;64\nsql02;8;8;32\n", encoding="utf-8")
    file.write_text(
        'displayName = "sql01"\nnumvcpus = "8"\ncpuid.coresPerSocket = "8"\nmemSize = "65536"\n'
        'virtualHW.version = "19"\n',
        encoding="utf-8",
    )

    first, second = with_contradictions([read_design(table), read_design(file)])

    assert (first.unseen, len(first.vms), len(second.vms)) == ((), 2, 1)
    (told,) = second.unseen
    assert (told.kind, told.name) == ("vm", "sql01")
    assert told.why == "plan.csv has numCPUs 16; sql01.vmx has 8: each is checked as it is"


def test_a_topology_is_as_certain_as_what_the_design_gives(tmp_path: Path) -> None:
    """A table without hot-add and numa.* keys: low confidence, each doubt once for two hosts."""
    table = tmp_path / "d.csv"
    table.write_text("name,cpus,cores per socket,memory,hardware version\na,24,12,64 GB,20\n", "utf-8")
    hosts = ("--host-nodes", "2x20/384@8.0", "--host-nodes", "2x16/384@8.0")

    shown = vnuma_here("check", table, *hosts)
    document = json.loads(vnuma_here("check", table, *hosts, "--format", "json").out)

    (planned,) = [vm["planned"] for vm in document["predictions"]]
    text = " ".join(shown.out.split())
    assert planned["confidence"] == "low"
    assert text.count("CPU hot-add was not read") == 1
    assert "(low confidence: CPU hot-add" in text
