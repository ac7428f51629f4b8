"""Rules on Windows in the guest: processor groups, boot options, socket limits."""

from __future__ import annotations

from vnuma.checks.facts import Facts, Unknown, known
from vnuma.checks.finding import Fix, Severity
from vnuma.checks.rule import Fail, rule
from vnuma.checks.rules.shape import NO_HOT_ADD
from vnuma.checks.rules.sources import HOT_ADD_KB
from vnuma.domain.topology.licence import windows_sockets
from vnuma.domain.topology.topology import topologies

GROUP_SIZE = 64
# Windows Server 2022: builds from here on do not show the empty nodes.
FIXED_BUILD = 20348

_BCDEDIT = "https://learn.microsoft.com/windows-hardware/drivers/devtest/bcdedit--set"


@rule(
    "W01",
    Severity.WARN,
    "More than 64 CPUs in one Windows",
    condition="more than 64 vCPUs, or CPU hot-add that allows more than 64, on Windows before build 20348",
    consequence="Windows makes several processor groups and may show empty NUMA nodes.",
    fix="Set cpuid.maxVCPUs to at most 64, or turn CPU hot-add off; with more than 64 vCPUs accept it.",
    sources=(HOT_ADD_KB,),
    needs="vm guest",
    editions="Windows before build 20348 (Server 2019 and earlier)",
    related=("T11",),
)
def w01(facts: Facts) -> Fail | None:
    """One processor group."""
    if known(facts.guest.build, "the build of Windows") >= FIXED_BUILD:
        return None
    most = facts.vcpus
    if facts.on("cpuHotAddEnabled"):
        most = max(most, facts.key_number("cpuid.maxVCPUs") or GROUP_SIZE + 1)
    if most <= GROUP_SIZE:
        return None
    return Fail(
        {
            "vCPUs": str(facts.vcpus),
            "cpuHotAddEnabled": str(facts.on("cpuHotAddEnabled")).lower(),
            "cpuid.maxVCPUs": facts.key("cpuid.maxVCPUs") or "not set",
            "Windows build": str(facts.guest.build),
        },
        NO_HOT_ADD if facts.vcpus <= GROUP_SIZE else None,
    )


def _boot_option(facts: Facts, name: str) -> str | None:
    options = facts.guest.boot_options
    if options is None:
        raise Unknown(
            "only Windows itself tells its boot options (bcdedit); this program does not log in there"
        )
    return options.get(name)


@rule(
    "W02",
    Severity.BLOCK,
    "Windows is told to split processor groups",
    condition="bcdedit has groupsize",
    consequence="Windows makes several processor groups, which Microsoft offers for testing only; threads "
    "of a process may stay in one.",
    fix="Remove the option and restart Windows.",
    sources=(_BCDEDIT, "https://github.com/MicrosoftDocs/windows-driver-docs"),
    needs="guest",
)
def w02(facts: Facts) -> Fail | None:
    """No such option."""
    size = _boot_option(facts, "groupsize")
    if size is None:
        return None
    return Fail({"groupsize": size}, Fix("Remove it and restart.", commands="bcdedit /deletevalue groupsize"))


@rule(
    "W03",
    Severity.WARN,
    "The guest uses another number of CPUs",
    condition="CPUs that SQL Server or Windows shows differ from numCPUs",
    consequence="Arms of a study, or the sizing of this VM, count CPUs that the guest does not use.",
    fix="Look for numproc in bcdedit (remove it and restart), or power-cycle the VM.",
    sources=(
        _BCDEDIT,
        "https://learn.microsoft.com/sql/relational-databases/system-dynamic-management-views/"
        "sys-dm-os-sys-info-transact-sql",
    ),
    needs="vm",
    unconfirmed=True,
    related=("T24", "W05"),
)
def w03(facts: Facts) -> Fail | None:
    """All CPUs are used."""
    facts.require_running_shape()
    sql, guest = facts.subject.sql, facts.subject.guest
    shown = sql.topology.vcpus if sql else guest.logical_cpus if guest else None
    if shown is None:
        raise Unknown("the guest was not read: neither SQL Server (--sql) nor Windows")
    if shown == facts.vcpus:
        return None
    numproc = (guest.boot_options or {}).get("numproc") if guest else None
    return Fail(
        {"numCPUs": str(facts.vcpus), "CPUs in the guest": str(shown), "numproc": numproc or "not seen"},
        Fix("Remove numproc and restart.", commands="bcdedit /deletevalue numproc") if numproc else None,
    )


@rule(
    "W04",
    Severity.WARN,
    "Windows uses fewer sockets than the VM has",
    condition="more virtual sockets than this edition of Windows uses",
    consequence="CPUs of the sockets beyond are not used.",
    fix="Use fewer, larger sockets.",
    sources=("https://learn.microsoft.com/windows-server/get-started/locks-limits",),
    needs="vm guest",
    editions="Windows Home (1 socket), Pro (2), Enterprise and Pro for Workstations (4), Server (64)",
    unconfirmed=True,
    related=("S01",),
)
def w04(facts: Facts) -> Fail | None:
    """Every socket is used."""
    caption = known(facts.guest.caption, "the edition of Windows")
    most = windows_sockets(caption)
    if most is None:
        raise Unknown(f"the socket limit of {caption} is not known")
    if facts.sockets <= most:
        return None
    return Fail(
        {"sockets": str(facts.sockets), "Windows": caption, "sockets used": f"at most {most}"},
        fewer_sockets(facts, most),
    )


def fewer_sockets(facts: Facts, most: int) -> Fix:
    """The same vCPUs in at most so many sockets, as many as that allows."""
    shape = max(one for one in topologies(facts.vcpus) if one.sockets <= most)
    return Fix(
        f"Use {shape.sockets} sockets of {shape.cores_per_socket} cores.",
        arm={"topology": str(shape)},
        settings={"numCoresPerSocket": shape.cores_per_socket},
    )


@rule(
    "W05",
    Severity.WARN,
    "Windows shows another number of processors",
    condition="instances of Win32_Processor differ from the VM's sockets",
    consequence="The configured topology is not the one in effect.",
    fix="Power the VM off and on; then look at T14.",
    sources=("https://learn.microsoft.com/windows/win32/cimwin32prov/win32-processor",),
    needs="vm guest",
    unconfirmed=True,
    yields_to={
        "W04": "Windows uses fewer sockets than there are: W04 first.",
        "W03": "The guest uses another number of CPUs: W03 first.",
    },
    related=("T14", "T24"),
)
def w05(facts: Facts) -> Fail | None:
    """As many processors as sockets."""
    facts.require_running_shape()
    shown = facts.guest.processors
    if shown is None:
        raise Unknown("only Windows itself tells its Win32_Processor; this program does not log in there")
    if shown == facts.sockets:
        return None
    return Fail({"sockets": str(facts.sockets), "Win32_Processor": str(shown)})
