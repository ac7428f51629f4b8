"""A vCenter that does not answer: nothing listens at its port."""

from __future__ import annotations

import ssl
from typing import Any

from pyVmomi import vim, vmodl
from pyVmomi.VmomiSupport import newestVersions

from tests.support.ports import free_port
from vnuma.domain.vm.facts import Release
from vnuma.engine.access.target import Target
from vnuma.vsphere.connect import About, Session, VCenter
from vnuma.vsphere.transport import Transport

LAB = "VMware vCenter Server (simulated by vnuma-lab, scenario paper)"


def session_at(uuid: str, name: str = "VMware vCenter Server") -> Session:
    """A login at one that has gone away since."""
    vcenter = VCenter(host="127.0.0.1", port=free_port(), user="u", password="")
    transport = Transport(vcenter, ssl.create_default_context(), newestVersions.GetName("vim"))
    content = vim.ServiceInstanceContent(
        searchIndex=vim.SearchIndex("SearchIndex", transport),
        propertyCollector=vmodl.query.PropertyCollector("propertyCollector", transport),
    )
    return Session(transport, content, "key", About(name, Release("8.0.3"), "8.0.3.0", uuid, True))


def variables() -> dict[str, Any]:
    """A host's variables in an inventory."""
    return {"vnuma_vcenter": {"host": "127.0.0.1", "port": free_port(), "session": {"env": "HOME"}}}


def target_away(name: str, site: str | None = None) -> Target:
    """A VM there."""
    return Target(name=name, vm=name, vcenter=variables()["vnuma_vcenter"], site=site)
