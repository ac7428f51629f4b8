"""Options that describe a VM, its hosts and its guest, for verbs that look ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vnuma.errors import InputError

if TYPE_CHECKING:
    from vnuma.domain.facts import HostFacts
    from vnuma.domain.forecast import Guest
    from vnuma.domain.setting import Value

VcpusOption = Annotated[int, typer.Option("--vcpus", min=1, max=768, help="vCPUs of the VM.")]
MemoryOption = Annotated[int, typer.Option("--memory", min=1, metavar="GB", help="Memory of the VM in GB.")]
HostsOption = Annotated[
    list[str],
    typer.Option(
        "--host-nodes",
        metavar="NxC[/GB][@ESXi]",
        help="A host: NUMA nodes x cores of a node, GB of a node, release (2x16/96@8.0). "
        "Repeat it for a cluster of unlike hosts.",
    ),
]
EsxiOption = Annotated[str, typer.Option("--esxi", help="ESXi release of hosts that name none.")]
ThreadsOption = Annotated[int, typer.Option("--threads-per-core", min=1, max=8, help="2: hyper-threading.")]
HardwareOption = Annotated[
    int | None,
    typer.Option("--hardware", min=4, max=99, help="Virtual hardware version; the newest release's own."),
]
EditionOption = Annotated[
    str,
    typer.Option("--edition", help="SQL Server: developer, enterprise, standard, web, express."),
]
SqlYearOption = Annotated[int, typer.Option("--sql", metavar="YEAR", help="SQL Server's release.")]
WindowsOption = Annotated[
    str, typer.Option("--windows", metavar="NAME", help="Windows in the guest, as 'Server 2022'.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the VM: a numa.* key, coresPerNumaNode, cpuHotAddEnabled and so on.",
    ),
]

_EDITIONS = ("developer", "evaluation", "enterprise", "standard", "web", "express")


def hosts_of(specs: list[str], release: str, threads_per_core: int) -> list[HostFacts]:
    """The hosts that were described. Raises InputError."""
    from vnuma.domain.host_spec import parse_host

    try:
        return [parse_host(spec, release, threads_per_core) for spec in specs]
    except ValueError as error:
        raise InputError(
            f"--host-nodes: {error}.", fix="For example: --host-nodes 2x16/96 --esxi 8.0"
        ) from error


def hardware_of(given: int | None, hosts: list[HostFacts]) -> int:
    """The hardware version that was given, or the one of the oldest release among the hosts."""
    from vnuma.domain.release import hardware_version_of

    return given or min(hardware_version_of(host.release.key) for host in hosts)


def guest_of(edition: str, year: int, windows: str, *, soft_numa: bool = True) -> Guest:
    """What runs in the VM. Raises InputError for an edition or a year that SQL Server does not have."""
    from vnuma.domain.forecast import SQL_YEARS, Guest

    word = edition.strip().lower()
    if not any(word.startswith(known) for known in _EDITIONS):
        raise InputError(f"--edition: '{edition}' is no edition.", fix=f"Use one of {', '.join(_EDITIONS)}.")
    if year not in SQL_YEARS:
        years = ", ".join(map(str, SQL_YEARS))
        raise InputError(f"--sql: there is no SQL Server {year}.", fix=f"Use one of {years}.")
    # Named alone, Enterprise means the one licensed by core.
    full = "enterprise: core-based" if word == "enterprise" else word
    named = windows if not windows or "windows" in windows.lower() else f"Windows {windows}"
    return Guest(full, SQL_YEARS[year], named, soft_numa)


def settings_of(pairs: list[str] | None) -> dict[str, Value]:
    """KEY=VALUE as settings: truth, whole numbers, else text. Raises InputError."""
    from vnuma.domain.setting import TYPED, is_governed

    found: dict[str, Value] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not equals or not (name in TYPED or is_governed(name)):
            raise InputError(
                f"--set {pair}: not a setting that shapes a VM.",
                fix=f"Use a numa.* key, or one of {', '.join(sorted(TYPED))}.",
            )
        found[name] = _value(text) if name in TYPED else text
    return found


def _value(text: str) -> Value:
    if text.strip().lower() in {"true", "false"}:
        return text.strip().lower() == "true"
    return int(text) if text.strip().isdigit() else text
