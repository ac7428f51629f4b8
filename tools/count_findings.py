"""Which objects of a vCenter some design rules concern, counted with govc and jq and nothing of vnuma's.

    python -m tools.count_findings --govc PATH --jq PATH     (vCenter and login: GOVC_URL, GOVC_USERNAME, ...)

Prints one JSON object: rule -> VMs by instance UUID, hosts and clusters by managed object id. Each filter of
tools/counting/rules restates its rule in the plainest words, so that a mistake in the product's reading, its
facts or its rules shows as a difference. jq is the program of that name, or gojq: they speak one language.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

FILTERS = Path(__file__).parent / "counting" / "rules"
JOIN = "estate"

_WANTED = {
    "VirtualMachine": ("runtime.host", "runtime.powerState", "config"),
    "HostSystem": (
        *("runtime.connectionState", "vm", "hardware.numaInfo", "hardware.cpuInfo", "hardware.memorySize"),
        *("config.product.version", "config.powerSystemInfo.currentPolicy.shortName"),
    ),
    "ClusterComputeResource": ("host", "configurationEx"),
}


def collect(govc: str) -> bytes:
    """What govc prints of every VM, host and cluster: JSON documents, one an object."""
    return b"".join(
        _output([govc, "object.collect", "-json", "-type", kind, "/", *properties])
        for kind, properties in _WANTED.items()
    )


def count(jq: str, told: bytes) -> dict[str, list[str]]:
    """Objects by rule, a filter of its own for each."""
    estate = _output([jq, "-L", str(FILTERS), "--slurp", f'include "{JOIN}"; {JOIN}'], told)
    return {
        file.stem: json.loads(_output([jq, "-L", str(FILTERS), "-f", str(file)], estate))
        for file in sorted(FILTERS.glob("*.jq"))
        if file.stem != JOIN
    }


def _output(command: list[str], given: bytes | None = None) -> bytes:
    """Standard output of a program. SystemExit with its own words where it fails."""
    ran = subprocess.run(command, input=given, capture_output=True, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(command)}: {ran.stderr.decode(errors='replace').strip()}")
    return ran.stdout


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--govc", default="govc", help="the program")
    parser.add_argument("--jq", default="jq", help="jq or gojq")
    asked = parser.parse_args()
    print(json.dumps(count(asked.jq, collect(asked.govc)), indent=2))


if __name__ == "__main__":
    main()
