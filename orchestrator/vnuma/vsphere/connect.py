"""Connecting to a vCenter or ESXi host: address, certificate, login; each failure with its own words."""

from __future__ import annotations

from typing import Any

from pyVmomi import vim, vmodl

from vnuma.domain.facts import Release
from vnuma.errors import AccountRefused
from vnuma.vsphere.faults import SessionExpired, unexpected
from vnuma.vsphere.session import About, Session
from vnuma.vsphere.tls import context_for
from vnuma.vsphere.transport import Transport, api_version
from vnuma.vsphere.vcenter import VCenter

__all__ = ["About", "Session", "SessionExpired", "VCenter", "agreed_version", "connect"]


def connect(vcenter: VCenter) -> Session:
    """Log in; the session is a context manager that logs out.

    Raises VCenterUnreachable, CertificateRejected (before anything is sent), AccountRefused,
    PrivilegeMissing and EnvironmentProblem.
    """
    context = context_for(vcenter)
    transport = Transport(vcenter, context, vcenter.api_version or api_version(vcenter, context))
    try:
        content = vim.ServiceInstance("ServiceInstance", transport).RetrieveContent()
        key = _login(vcenter, content)
        return Session(transport, content, key, _about(content, transport))
    except vmodl.MethodFault as fault:
        transport.close()
        raise unexpected(fault, vcenter.address) from fault
    except BaseException:
        transport.close()
        raise


def agreed_version(vcenter: VCenter) -> str:
    """The newest API version that both sides know, to be given to later connections.

    Raises VCenterUnreachable, CertificateRejected and EnvironmentProblem. Sends no credential.
    """
    return api_version(vcenter, context_for(vcenter))


def _login(vcenter: VCenter, content: Any) -> str:
    """Log in and return the session's key. Fault messages are asked for in English."""
    try:
        return str(content.sessionManager.Login(vcenter.user, vcenter.password, "en_US").key)
    except vim.fault.InvalidLogin as fault:
        raise AccountRefused(
            f"{vcenter.host} does not accept the user {vcenter.user} or its password.",
            fix="Check vcenter.user and its password; repeated attempts may lock the account.",
        ) from fault


def _about(content: Any, transport: Transport) -> About:
    info = content.about
    is_vcenter = info.apiType == "VirtualCenter"
    return About(
        name=info.fullName,
        release=Release(info.version, info.build),
        api_version=info.apiVersion,
        uuid=str(info.instanceUuid) if is_vcenter else _esxi_uuid(transport),
        is_vcenter=is_vcenter,
    )


def _esxi_uuid(transport: Transport) -> str:
    """An ESXi host has no instance UUID; its hardware's serves. Its own host object is `ha-host`."""
    hardware: Any = vim.HostSystem("ha-host", transport).summary.hardware
    return str(hardware.uuid)
