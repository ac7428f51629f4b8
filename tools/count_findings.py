"""How many objects of a vCenter some design rules concern, counted with govc and nothing of vnuma's.

    python -m tools.count_findings --govc PATH      (vCenter and login in GOVC_URL, GOVC_USERNAME, ...)

Prints one JSON object: rule -> number of VMs or hosts. Each count restates its rule in the plainest words,
so that a mistake in the product's reading, its facts or its rules shows as a difference.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from typing import Any

Properties = dict[str, Any]

_HOST = (
    *("name", "runtime.connectionState", "hardware.numaInfo.numNodes", "hardware.cpuInfo"),
    *("config.product.version", "config.powerSystemInfo.currentPolicy.shortName"),
)
_VM = ("name", "runtime.host", "config")


def collect(govc: str, kind: str, properties: tuple[str, ...]) -> dict[str, Properties]:
    """Objects of a kind by managed object id, each with the properties that it has."""
    command = [govc, "object.collect", "-json", "-type", kind, "/", *properties]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {
        update["obj"]["value"]: {change["name"]: change.get("val") for change in update["changeSet"]}
        for update in _documents(told)
    }


def _documents(text: str) -> Iterator[Any]:
    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        document, position = decoder.raw_decode(text, position)
        yield document
        while position < len(text) and text[position].isspace():
            position += 1


def counts(hosts: dict[str, Properties], vms: dict[str, Properties]) -> dict[str, int]:
    """Objects by rule. A disconnected host shows what it was: neither it nor its VMs count for host rules."""
    connected = {moid: host for moid, host in hosts.items() if host["runtime.connectionState"] == "connected"}
    shown = [vm for vm in vms.values() if vm.get("config")]
    placed = [
        (vm["config"], connected[vm["runtime.host"]["value"]], vm["runtime.host"]["value"])
        for vm in shown
        if vm.get("runtime.host") and vm["runtime.host"]["value"] in connected
    ]
    return {
        "A02": sum(bool(_pinned(vm["config"])) for vm in shown),
        "A05": sum(len(_pinned(vm["config"])) == _cpus(vm["config"]) for vm in shown),
        "A06": sum(_shares_cores(vm, host) for vm, host, _ in placed),
        "M04": len({moid for vm, host, moid in placed if _cpus(vm) > 8 and _policy(host) != "static"}),
        "T10": sum(_cpus(vm) > host["hardware.cpuInfo"]["numCpuCores"] for vm, host, _ in placed),
        "T11": sum(bool(vm.get("cpuHotAddEnabled")) and _release(host) < (8, 0) for vm, host, _ in placed),
        "T12": sum(
            bool(vm.get("cpuHotAddEnabled")) and _release(host) >= (8, 0) and not _exposed(vm)
            for vm, host, _ in placed
        ),
        "T20": len({moid for _, host, moid in placed if _nodes(host) > _packages(host)}),
        "T22": len({moid for _, host, moid in placed if _nodes(host) == 1 < _packages(host)}),
        "W04": sum("Windows 11 Pro" in _tools(vm["config"]) and _sockets(vm["config"]) > 2 for vm in shown),
    }


def _cpus(config: Properties) -> int:
    return int(config["hardware"]["numCPU"])


def _sockets(config: Properties) -> int:
    return max(1, _cpus(config) // int(config["hardware"].get("numCoresPerSocket") or 1))


def _pinned(config: Properties) -> list[int]:
    return list((config.get("cpuAffinity") or {}).get("affinitySet") or ())


def _shares_cores(config: Properties, host: Properties) -> bool:
    """Whether two CPUs of the set are threads of one core: 2k and 2k+1 where there is hyper-threading."""
    cpu = host["hardware.cpuInfo"]
    cores = [number // 2 for number in _pinned(config)]
    return cpu["numCpuThreads"] == 2 * cpu["numCpuCores"] and len(cores) > len(set(cores))


def _exposed(config: Properties) -> bool:
    return bool((config.get("numaInfo") or {}).get("vnumaOnCpuHotaddExposed"))


def _tools(config: Properties) -> str:
    return next(
        (
            item["value"]
            for item in config.get("extraConfig") or ()
            if item["key"] == "guestInfo.detailed.data"
        ),
        "",
    )


def _nodes(host: Properties) -> int:
    return int(host["hardware.numaInfo.numNodes"])


def _packages(host: Properties) -> int:
    return int(host["hardware.cpuInfo"]["numCpuPackages"])


def _policy(host: Properties) -> str:
    return str(host["config.powerSystemInfo.currentPolicy.shortName"])


def _release(host: Properties) -> tuple[int, ...]:
    return tuple(int(part) for part in host["config.product.version"].split(".")[:2])


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--govc", default="govc", help="the program")
    govc = parser.parse_args().govc
    hosts, vms = collect(govc, "HostSystem", _HOST), collect(govc, "VirtualMachine", _VM)
    print(json.dumps(counts(hosts, vms), indent=2))


if __name__ == "__main__":
    main()
