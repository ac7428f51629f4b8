"""Rules on what vSphere accepts."""

from __future__ import annotations

from vnuma.checks.facts import Facts, Unknown
from vnuma.checks.finding import Severity
from vnuma.checks.rule import Fail, rule


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
        raise Unknown("the host's maximum (its ConfigOption) is read only for single VMs and studies")
    if facts.per_socket <= most:
        return None
    return Fail({"cores per socket": str(facts.per_socket), "maximum": str(most)})
