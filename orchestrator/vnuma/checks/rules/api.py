"""Rules on what vSphere accepts."""

from __future__ import annotations

from vnuma.checks.facts import Facts, Unknown
from vnuma.checks.finding import Fix, Severity
from vnuma.checks.rule import Fail, rule
from vnuma.checks.rules.shape_questions import gigabytes
from vnuma.checks.rules.sources import HARDWARE_22, HARDWARE_FEATURES, HARDWARE_VERSIONS
from vnuma.domain.topology.release import MOST_MEMORY_GB, most_of_hardware, newest_hardware


@rule(
    "R06",
    Severity.BLOCK,
    "More cores per socket than the host supports",
    condition="cores per socket exceed the host's maximum for a virtual socket",
    consequence="vSphere refuses it: NumVirtualCoresPerSocketNotSupported.",
    fix="Use fewer cores per socket, or a newer hardware version.",
    sources=(
        "https://developer.broadcom.com/xapis/vsphere-web-services-api/7.0u3/"
        "vim.fault.NumVirtualCoresPerSocketNotSupported.html",
    ),
    reads="vm host",
)
def r06(facts: Facts) -> Fail | None:
    most = facts.host.max_cores_per_socket
    if most is None:
        raise Unknown("the host's maximum (its ConfigOption) is read only for single VMs and studies")
    if facts.per_socket <= most:
        return None
    return Fail({"cores per socket": str(facts.per_socket), "maximum": str(most)})


@rule(
    "R07",
    Severity.BLOCK,
    "The hardware version is newer than the host",
    condition="the VM's hardware version is newer than the newest that the host's ESXi release runs",
    consequence="The host cannot run the VM: it neither powers on there nor moves there.",
    fix="Use a hardware version that the oldest host runs, or upgrade ESXi.",
    sources=(HARDWARE_VERSIONS,),
    reads="vm host",
    related=("T18",),
)
def r07(facts: Facts) -> Fail | None:
    version = facts.host.release.version
    newest = newest_hardware(version)
    if newest is None:
        raise Unknown(f"the newest hardware version of ESXi {version} is not known")
    if facts.hardware <= newest:
        return None
    return Fail(
        {"hardware version": f"vmx-{facts.hardware}", "ESXi": f"{version} runs up to vmx-{newest}"},
        Fix(
            f"Plan hardware version {newest} or earlier, or upgrade ESXi. An existing VM can go back only by "
            "a snapshot or backup."
        ),
    )


@rule(
    "R08",
    Severity.BLOCK,
    "More than the hardware version allows",
    condition=(
        "more vCPUs or memory than the VM's hardware version allows: 32 vCPUs in version 8, 64 in 9 and 10, "
        "128 in 11 to 14, 256 in 15 to 17, 768 in 18 to 21, 960 in 22"
    ),
    consequence="vSphere refuses the size, or does not power the VM on.",
    fix="Upgrade the VM's compatibility with the VM off, or use a smaller size.",
    sources=(HARDWARE_FEATURES, HARDWARE_22),
    reads="vm",
    related=("T18",),
)
def r08(facts: Facts) -> Fail | None:
    most = most_of_hardware(facts.hardware)
    if most is None:
        raise Unknown(f"the limits of hardware version {facts.hardware} are not known")
    vcpus, memory_gb = most
    fits = facts.memory_mb <= (memory_gb or MOST_MEMORY_GB) * 1024
    if facts.vcpus <= vcpus and fits:
        return None
    if facts.vcpus <= vcpus and memory_gb is None:
        raise Unknown(f"the most memory of hardware version {facts.hardware} is not known")
    return Fail(
        {
            "hardware version": f"vmx-{facts.hardware}",
            "vCPUs": f"{facts.vcpus} of at most {vcpus}",
            "memory": gigabytes(facts.memory_mb) + (f" of at most {memory_gb} GB" if memory_gb else ""),
        }
    )
