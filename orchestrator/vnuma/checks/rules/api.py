"""Rules on how a change is sent to vSphere, and on what must be kept to undo it."""

from __future__ import annotations

from vnuma.checks.facts import Facts, Unknown
from vnuma.checks.finding import Fix, Severity
from vnuma.checks.rule import Fail, rule
from vnuma.checks.rules.sources import HARDWARE_API
from vnuma.domain.vm.setting import TYPED, Power, is_evidence, is_extra_config, is_governed

_VCENTER_MODULE = "vmware_guest"


@rule(
    "R01",
    Severity.BLOCK,
    "A cold setting is changed on a running VM",
    condition="a change of CPU count, cores per socket, affinity or vNUMA settings while the VM is on and "
    "is not shut down first",
    consequence="vSphere refuses it (InvalidPowerState), or stores it without effect.",
    fix="Shut the guest down, reconfigure, power on.",
    sources=("https://github.com/vmware/pyvmomi-community-samples/issues/265",),
    needs="vm change",
    related=("T24",),
)
def r01(facts: Facts) -> Fail | None:
    """Cold settings change with the VM off."""
    planned = facts.change
    if planned.powered_off or facts.vm.power is Power.OFF or not planned.change.needs_power_off:
        return None
    return Fail({"power": str(facts.vm.power), "settings": ", ".join(sorted(planned.change.desired))})


@rule(
    "R02",
    Severity.BLOCK,
    "Cores per socket are ignored without the CPU count",
    condition="the Ansible module vmware_guest is given cores per socket without num_cpus",
    consequence="The module ignores it without a word.",
    fix="Always send both, then read both back.",
    sources=("https://github.com/ansible-collections/community.vmware/issues/1596",),
    needs="change",
)
def r02(facts: Facts) -> Fail | None:
    """Both are sent."""
    desired = facts.change.change.desired
    if facts.change.via != _VCENTER_MODULE or "numCoresPerSocket" not in desired or "numCPUs" in desired:
        return None
    vm = facts.subject.vm
    count = vm.settings.get("numCPUs") if vm else None
    return Fail(
        {"sent": "numCoresPerSocket", "not sent": "numCPUs"},
        Fix(
            "Send num_cpus with it.",
            settings={"numCPUs": count, "numCoresPerSocket": desired["numCoresPerSocket"]},
        )
        if count
        else None,
    )


@rule(
    "R03",
    Severity.BLOCK,
    "Automatic is sent again to what is automatic",
    condition="a restore sends cores per socket 0 while it is automatic already",
    consequence="A server error, or a forced reconfiguration of the hardware.",
    fix="Leave it unset unless it changes.",
    sources=("https://github.com/vmware/terraform-provider-vsphere/pull/2732",),
    needs="vm change",
)
def r03(facts: Facts) -> Fail | None:
    """0 is sent only where there is a number."""
    if not facts.change.restores or facts.change.change.desired.get("numCoresPerSocket") != 0:
        return None
    if not facts.on("autoCoresPerSocket"):
        return None
    return Fail({"numCoresPerSocket sent": "0", "autoCoresPerSocket now": "true"})


@rule(
    "R04",
    Severity.BLOCK,
    "What is saved does not suffice to undo the change",
    condition="nothing was saved before a change, or what was saved lacks a typed setting or a numa.* key "
    "that the VM has, or the change writes keys that typed fields own (cpuid.coresPerSocket, sched.cpu.*, "
    "sched.mem.*)",
    consequence="The VM would be left altered; keys that typed fields own are ignored by vSphere without a "
    "word.",
    fix="Save every typed setting, every numa.* key, vmx.reboot.PowerCycle and the power state; write typed "
    "settings through typed fields only.",
    sources=(
        HARDWARE_API,
        "https://github.com/vmware/terraform-provider-vsphere/issues/2339",
    ),
    needs="vm change",
)
def r04(facts: Facts) -> Fail | None:
    """Everything that changes can be put back."""
    planned = facts.change
    saved = planned.baseline or {}
    governed = {name for name in facts.vm.settings if is_extra_config(name) and is_governed(name)}
    lacking = sorted(({*TYPED} | governed) - set(saved))
    owned = sorted(name for name in planned.change.desired if is_evidence(name))
    if not lacking and not owned:
        return None
    unsaved = ", ".join(lacking) if saved else "anything"
    return Fail({"not saved": unsaved or "nothing", "ignored": ", ".join(owned) or "nothing"})


@rule(
    "R05",
    Severity.INFO,
    "A simulator does not show vNUMA settings",
    condition="the vCenter is a simulator that never reflects virtualNuma into what is read back",
    consequence="A read-back that fails there says nothing about a real vCenter, which shows it at once, "
    "even with the VM off.",
    fix="Test against a simulator that overlays it (vnuma lab up), or a real vCenter.",
    sources=("https://github.com/vmware/govmomi/issues/4072",),
    needs="vcenter",
)
def r05(facts: Facts) -> Fail | None:
    """The server shows what was set."""
    server = facts.vcenter
    if not server.simulator or server.overlays_numa:
        return None
    return Fail({"vCenter": server.name, "version": server.version}, object=("vcenter", server.name, ""))


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
    needs="vm host",
)
def r06(facts: Facts) -> Fail | None:
    """The socket is one that the host can give."""
    most = facts.host.max_cores_per_socket
    if most is None:
        raise Unknown("the host's maximum is in its ConfigOption, which is not read; vSphere refuses more")
    if facts.per_socket <= most:
        return None
    return Fail({"cores per socket": str(facts.per_socket), "maximum": str(most)})
