"""Answers that real servers gave, 5.5 to 9.0: they are read from a folder beside the checkout.

It is other people's data, so it is not in this repository. VNUMA_RECORDINGS names another place.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyodbc
import pytest
from pyVmomi import SoapAdapter, vmodl
from ruamel.yaml import YAML

from tests.support.replay import FOLDER
from vnuma.contract.suite import SEEN_FOR_REAL
from vnuma.domain.vm.server import windows_of_banner
from vnuma.sqlserver.client.failures import natives, sqlstate, translate
from vnuma.sqlserver.client.statistics_time import parse_messages, read_times
from vnuma.vsphere.counters import counter_ids
from vnuma.vsphere.facts import Place, host_facts, vm_facts
from vnuma.vsphere.session import _found

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no recordings of real servers here")


def _listed(name: str) -> list[Any]:
    path = FOLDER / name
    return list(YAML(typ="safe").load(path.read_text("utf-8"))) if path.is_file() else []


def _of(kind: str) -> list[Any]:
    return [
        pytest.param(case, id=f"{Path(case['file']).stem} {case['must'].get('moid', '')}")
        for case in _listed("cases.yml")
        if case["kind"] == kind
    ]


@cache
def _answer(name: str) -> Any:
    reader: Any = SoapAdapter.SoapResponseDeserializer(None)
    return reader.Deserialize((FOLDER / name).read_bytes(), vmodl.query.PropertyCollector.RetrieveResult)


def _object(case: Any) -> Any:
    (entry,) = (one for one in _answer(case["file"]).objects if one.obj._moId == case["must"]["moid"])
    return _found(entry)


@pytest.mark.parametrize("case", _of("VirtualMachine"))
def test_a_vm_is_read_as_its_server_answered(case: Any) -> None:
    """Shape, power, keys and disabled methods; nothing that arrived is refused."""
    found, must = _object(case), case["must"]
    values = {"config.instanceUuid": "not recorded", **found.values}
    facts = vm_facts("vcenter", SimpleNamespace(ref=found.ref, values=values), Place("/", "", None))  # type: ignore[arg-type]
    settings = {
        name: value for name, value in must.items() if name.startswith(("num", "memoryMB", "coresPer"))
    }

    assert dict(found.unread) == {}
    assert (facts.hardware_version, facts.is_template) == (must["hardware_version"], must["template"])
    assert facts.power.value == must["power"]
    assert {name: facts.settings.get(name) for name in settings} == settings
    assert list(facts.disabled_methods) == must.get("disabled_methods", list(facts.disabled_methods))
    assert facts.managed_by == must.get("managed_by", facts.managed_by)
    assert facts.is_system_vm is (must.get("managed_by") == "com.vmware.vim.eam")


@pytest.mark.parametrize("case", _of("HostSystem"))
def test_a_host_is_read_as_its_server_answered(case: Any) -> None:
    """Processors, memory and NUMA nodes; each node has its part of the memory."""
    must = case["must"]
    host = host_facts(_object(case), None)
    names = ("packages", "cores", "threads", "memory_mb", "mhz", "power_policy")
    share = host.memory_mb // len(host.numa_nodes)

    assert {name: getattr(host, name) for name in names} == {name: must[name] for name in names}
    assert {node.id: list(node.cpus) for node in host.numa_nodes} == must["numa_nodes"]
    assert all(0.95 * share <= node.memory_mb <= share for node in host.numa_nodes)


def _cpus(text: str) -> list[int]:
    first, last = map(int, text.split(".."))
    return list(range(min(first, last), max(first, last) + 1))


@pytest.mark.parametrize("host", _listed("vsphere/numa_nodes.yml"), ids=lambda host: host["server"][:30])
def test_a_nodes_memory_is_never_the_length_of_a_range(host: Any) -> None:
    """What HostNumaNode says of five real hosts; where it has no size, the memory is an estimate."""
    nodes = [
        SimpleNamespace(
            typeId=node["id"],
            cpuID=_cpus(node["cpus"]),
            memoryRangeBegin=node["begin"],
            memoryRangeLength=node["length"],
            memorySize=node.get("size"),
        )
        for node in host["nodes"]
    ]
    facts = host_facts(_host_with(nodes, host["memory_size"], host["packages"]), None)

    assert not {node.memory_mb for node in facts.numa_nodes} & set(host.get("never", ()))
    assert facts.node_memory_estimated is (len(nodes) > 1 and not nodes[0].memorySize)


def _host_with(nodes: list[Any], memory: int, packages: int) -> Any:
    cpus = sum(len(node.cpuID) for node in nodes)
    values = {
        "name": "host",
        "summary.config.product": SimpleNamespace(version="6.7.0", build="1"),
        "hardware.cpuInfo": SimpleNamespace(
            numCpuPackages=packages, numCpuCores=cpus, numCpuThreads=cpus, hz=2_000_000_000
        ),
        "hardware.systemInfo": SimpleNamespace(vendor="Dell Inc.", model="R720"),
        "hardware.memorySize": memory,
        "hardware.numaInfo": SimpleNamespace(numaNode=nodes),
    }
    return SimpleNamespace(ref=SimpleNamespace(_GetMoId=lambda: "host-1"), values=values, missing={})


def test_counters_have_the_servers_ids() -> None:
    """vCenter 9.0.1 numbers them in its own way."""
    (case,) = (one for one in _listed("cases.yml") if one["kind"] == "PerformanceManager")
    counters = _answer(case["file"]).objects[0].propSet[0].val
    session: Any = SimpleNamespace(content=SimpleNamespace(perfManager=SimpleNamespace(perfCounter=counters)))

    assert counter_ids(session) == case["must"]


@pytest.mark.parametrize("error", _listed("sql/errors.yml"), ids=lambda error: error["becomes"])
def test_an_error_of_sql_server_becomes_the_right_one(error: Any) -> None:
    """Texts of Microsoft's drivers on Linux and Windows, with SQLSTATE and every number that they have."""
    raised = getattr(pyodbc, error["raised"])(*error["args"])
    *state, text = sorted(error["args"], key=len)
    numbers = re.findall(r"\((\d+)\)(?= \(SQL|;|$)", text)

    assert ([sqlstate(raised)], list(natives(raised))) == (state, [int(number) for number in numbers])
    assert type(translate(raised, "statement")).__name__ == error["becomes"]


@pytest.mark.parametrize("line", _listed("sql/statistics_time.yml"), ids=lambda line: line["language"])
def test_times_are_read_in_the_servers_language(line: Any) -> None:
    """SET STATISTICS TIME in seven languages."""
    times = read_times(line["text"])

    assert (times.cpu_ms, times.elapsed_ms) == (line["cpu_ms"], line["elapsed_ms"])
    assert len(parse_messages([("(3612)", line["text"])])[0]) == 1
    assert "time.two_figures" in SEEN_FOR_REAL


@pytest.mark.parametrize("banner", _listed("sql/banners.yml"), ids=lambda banner: banner["version_text"][:28])
def test_the_banner_names_the_windows_build(banner: Any) -> None:
    """@@VERSION on Windows; on Linux there is none."""
    windows = windows_of_banner(" ".join(banner["version_text"].split()))

    assert (windows.build if windows else None) == banner["windows_build"]
