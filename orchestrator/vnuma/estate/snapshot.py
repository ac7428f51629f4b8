"""An estate in a file: JSON with a format number, no credentials, readable by later versions.

Also the findings of an earlier check, and bounds for the counts and releases with which rules calculate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from vnuma import __version__
from vnuma.checks.result import SCHEMA, Key
from vnuma.domain.vm import bounded_input
from vnuma.domain.vm.estate import Estate
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.errors import InputError, writing
from vnuma.estate.rvtools_hosts import MOST_CPUS

FORMAT = 1
"""Raised when a reader of the previous format would misunderstand the file; optional fields do not
need that.
"""

READABLE_SINCE = "0.1.0"
"""The first version of vnuma that reads this format."""

KIND = "vnuma/inventory"

MOST_BYTES = 64_000_000
"""A VM takes 4 to 8 kB: more VMs than a vCenter supports."""

_ESTATES = TypeAdapter(tuple[Estate, ...])


def save(estates: Sequence[Estate], path: Path) -> None:
    """Write estates as one snapshot. Raises InputError when the file cannot be written."""
    document = {
        "schema": f"{KIND}/{FORMAT}",
        "readable_since": READABLE_SINCE,
        "written_by": __version__,
        "estates": _ESTATES.dump_python(tuple(estates), mode="json"),
    }
    with writing(path, "The snapshot"):
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> tuple[Estate, ...]:
    """Read a snapshot of this format or an older one.

    Raises InputError for a file that is not a snapshot, is damaged, or comes from a newer version.
    """
    return from_document(read_json(path), path)


def read_json(path: Path) -> Any:
    """A JSON file's content. Raises InputError."""
    try:
        with path.open("rb") as file:
            return bounded_input.read_json(file.read(MOST_BYTES + 1), most_bytes=MOST_BYTES)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).", fix="Check the name.") from error
    except ValueError as error:
        raise InputError(
            f"{path} is not a JSON document written by vnuma: {error}.",
            fix="Write a snapshot: vnuma inventory save FILE",
        ) from error


def is_snapshot(document: Any) -> bool:
    """Whether a JSON document declares itself a snapshot."""
    return isinstance(document, dict) and str(document.get("schema", "")).startswith(f"{KIND}/")


def from_document(document: Any, path: Path) -> tuple[Estate, ...]:
    """The estates of a snapshot document. Raises InputError."""
    number = str(document["schema"]).rpartition("/")[2] if is_snapshot(document) else ""
    if not re.fullmatch("[0-9]{1,9}", number):
        raise InputError(
            f"{path} is not a snapshot of an inventory.",
            fix="Write one: vnuma inventory save FILE. An Ansible inventory is given with -i.",
        )
    if int(number) > FORMAT:
        raise InputError(
            f"{path} has format {number}; this vnuma {__version__} reads up to format {FORMAT}.",
            fix=f"Use vnuma {document.get('readable_since', 'of a later version')} or newer.",
        )
    try:
        estates = _ESTATES.validate_python(document.get("estates"), strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise InputError(
            f"{path} is damaged: estates.{where}: {first['msg']}.", fix="Save the snapshot again."
        ) from None
    for why in (why for estate in estates for why in implausible(estate)):
        raise InputError(f"{path} is damaged: {why}.", fix="Save the snapshot again.")
    return estates


MOST_MB = 10**9
"""A petabyte."""

_MOST = {
    "numCPUs": MOST_CPUS,
    "memoryMB": MOST_MB,
    "numCoresPerSocket": MOST_CPUS,
    "coresPerNumaNode": MOST_CPUS,
}
_LEAST = {"numCPUs": 1, "memoryMB": 1}
_RELEASE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,9})*", re.ASCII)


def implausible(estate: Estate) -> Iterator[str]:
    """Impossible values, each in a few words."""
    for vm in estate.vms:
        yield from implausible_vm(vm.facts)
    for host in estate.hosts.values():
        yield from _of_host(host)


def implausible_vm(vm: VmFacts) -> Iterator[str]:
    """A VM's impossible values, each in a few words."""
    for name, most in _MOST.items():
        value = vm.settings.get(name)
        least = _LEAST.get(name, 0)
        if name in vm.settings and not (value is None and not least) and not _is_count(value, least, most):
            yield f"{name} of VM {vm.name} is {str(value)[:20]!r}, not a number from {least} to {most:,}"
    for name in ("cpuAffinity", "memoryAffinity"):
        value = vm.settings.get(name)
        if isinstance(value, tuple) and not all(_is_count(one, 0, MOST_CPUS) for one in value):
            yield f"{name} of VM {vm.name} names a CPU or node that no host can have"


def _of_host(host: HostFacts) -> Iterator[str]:
    for name in ("packages", "cores", "threads"):
        if not _is_count(getattr(host, name), 1, MOST_CPUS):
            yield f"{name} of host {host.name} is {getattr(host, name)}, not a number from 1 to {MOST_CPUS:,}"
    if not _RELEASE.fullmatch(host.release.version):
        yield f"the release of host {host.name} is {host.release.version[:20]!r}, not a version such as 8.0.3"
    if not host.numa_nodes:
        yield f"host {host.name} has no NUMA node"
    for node in host.numa_nodes:
        cpus_exist = len(node.cpus) >= host.threads_per_core if host.cores > 0 else False
        if not cpus_exist or not all(_is_count(cpu, 0, MOST_CPUS) for cpu in node.cpus):
            yield f"NUMA node {node.id} of host {host.name} has no CPUs, or one that no host can have"


def _is_count(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


@dataclass(frozen=True)
class Earlier:
    """Findings by their identity, each with its object's name."""

    checked_at: str
    found: Mapping[Key, str]
    sources: frozenset[str] = frozenset()
    """The names of what was checked: vCenters or files."""


def earlier_of(document: Any, path: Path) -> Earlier:
    """The findings in a check's JSON document. Raises InputError for any other file."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(
            f"{path} is neither a check nor a snapshot of an inventory.",
            fix="Write one: vnuma check ... --format json > FILE",
        )
    try:
        found = {
            (item["rule"], item["object"]["kind"], item["object"]["key"]): item["object"]["name"]
            for item in document["findings"]
        }
        sources = frozenset(str(source["name"]) for source in document["sources"])
        return Earlier(str(document["checked_at"]), found, sources)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: {error} is missing.", fix="Create it again.") from error
