"""Connect to a vCenter or ESXi host: address, certificate, login, with an error of its own for each."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from pyVmomi import vim, vmodl

from vnuma.domain.vm.facts import Release
from vnuma.errors import AccountRefused, InputError, VnumaError
from vnuma.logins import Logins
from vnuma.vsphere.faults import SessionExpired, unexpected
from vnuma.vsphere.session import About, Session, VmRef
from vnuma.vsphere.tls import context_for
from vnuma.vsphere.transport import Transport, api_version
from vnuma.vsphere.vcenter import VCenter

__all__ = ["About", "Session", "SessionExpired", "VCenter", "VmRef", "agreed_version", "connect", "log_out"]

_COOKIE = "vmware_soap_session"
_LOGOUT_S = 10.0
"""How long an unresponsive vCenter may delay the end of a command, in seconds."""


_ASSERTION = "{urn:oasis:names:tc:SAML:2.0:assertion}Assertion"
_CONFIRMATION = ".//{urn:oasis:names:tc:SAML:2.0:assertion}SubjectConfirmation"
_HOLDER_OF_KEY = "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"


def connect(vcenter: VCenter) -> Session:
    """Log in; the session is a context manager that logs out.

    With shared logins, the run's session is used; an expired one is renewed by one process for all, and its
    owner logs out (`log_out`). A refused login is not tried again in that run. A session from `vcenter` is
    used as it is.

    Raises VCenterUnreachable, CertificateRejected (before anything is sent), AccountRefused, PrivilegeMissing
    and EnvironmentProblem.
    """
    context = context_for(vcenter)
    transport = Transport(vcenter, context, vcenter.api_version or api_version(vcenter, context))
    try:
        if vcenter.session:
            return _joined(vcenter, transport)
        if vcenter.logins is None:
            content = _content(transport)
            return Session(
                transport, content, _login(vcenter, transport, content), _about(content, transport)
            )
        content, key = _shared_login(vcenter, transport, vcenter.logins)
        return Session(transport, content, key, _about(content, transport), is_shared=True)
    except vmodl.MethodFault as fault:
        transport.close()
        raise unexpected(fault, vcenter.address) from fault
    except BaseException:
        transport.close()
        raise


def _joined(vcenter: VCenter, transport: Transport) -> Session:
    """The inventory's session. Raises AccountRefused if it has ended."""
    content, key = _adopted(transport, {"cookie": f"{_COOKIE}={vcenter.session}"})
    if not key:
        raise AccountRefused(
            f"The session given for {vcenter.address} has ended, or was opened elsewhere.",
            fix="Open a session there, and give its cookie vmware_soap_session as vnuma_vcenter.session.",
        )
    return Session(transport, content, key, _about(content, transport), is_shared=True)


def agreed_version(vcenter: VCenter) -> str:
    """The newest API version that both sides know, for later connections.

    Raises VCenterUnreachable, CertificateRejected and EnvironmentProblem. Sends no credential.
    """
    return api_version(vcenter, context_for(vcenter))


def log_out(logins: Logins) -> None:
    """End the sessions that a run shared. One that cannot be ended now expires when idle."""
    for saved in logins.sessions():
        with suppress(VnumaError, vmodl.MethodFault):
            _end(saved)


def _end(saved: Mapping[str, Any]) -> None:
    vcenter = replace(VCenter(**saved["vcenter"]), timeout_s=_LOGOUT_S)
    context = context_for(vcenter)
    transport = Transport(vcenter, context, vcenter.api_version or api_version(vcenter, context))
    try:
        transport.cookie = saved["cookie"]
        _content(transport).sessionManager.Logout()
    finally:
        transport.close()


def _content(transport: Transport) -> Any:
    return vim.ServiceInstance("ServiceInstance", transport).RetrieveContent()


def _shared_login(vcenter: VCenter, transport: Transport, logins: Logins) -> tuple[Any, str]:
    """The service's content and the key of the run's session, opened or renewed if necessary."""
    logins.require_open(vcenter.account)
    known = logins.session(vcenter.account)
    content, key = _adopted(transport, known)
    if key:
        return content, key
    with logins.alone(vcenter.account):
        logins.require_open(vcenter.account)  # or another process has renewed it meanwhile
        newer = logins.session(vcenter.account)
        if newer != known:
            content, key = _adopted(transport, newer)
        if not key:
            try:
                key = _login(vcenter, transport, content)
            except AccountRefused as error:
                raise logins.refused(vcenter.account, error, 1, password=not vcenter.token) from error
            kept = {"vcenter": vcenter.without_secrets(), "cookie": transport.cookie}
            logins.keep_session(vcenter.account, kept)
    return content, key


def _adopted(transport: Transport, known: Mapping[str, Any]) -> tuple[Any, str]:
    """The content as a session sees it, with its key; no key if that session has ended.

    Requests with the same cookie belong to one session, whichever process sends them. Each process creates
    and destroys its own session objects on the server, such as property collectors and views.
    https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.SessionManager.html
    """
    transport.cookie = known.get("cookie", "")
    content = _content(transport)
    if not known:
        return content, ""
    with suppress(SessionExpired):
        current = content.sessionManager.currentSession
        if current is not None:
            return content, str(current.key)
    transport.cookie = ""
    return content, ""


def _login(vcenter: VCenter, transport: Transport, content: Any) -> str:
    """Log in, requesting English fault messages; returns the session's key."""
    if vcenter.token:
        return _login_by_token(vcenter, transport, content)
    try:
        return str(content.sessionManager.Login(vcenter.user, vcenter.password, "en_US").key)
    except vim.fault.InvalidLogin as fault:
        raise AccountRefused(
            f"{vcenter.host} does not accept the user {vcenter.user} or its password.",
            fix="Check vnuma_vcenter.user and its password; repeated attempts may lock the account.",
        ) from fault


def _login_by_token(vcenter: VCenter, transport: Transport, content: Any) -> str:
    """Log in with a bearer token in the request's security header.

    https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.SessionManager.html#loginByToken
    """
    transport.samlToken = _bearer_token(vcenter.token, vcenter.address)
    try:
        return str(content.sessionManager.LoginByToken("en_US").key)
    except vim.fault.InvalidLogin as fault:
        raise AccountRefused(
            f"{vcenter.host} does not accept the SAML token in vcenter.token.",
            fix="It may have expired, or belong to another vCenter's sign-on: get a new one.",
        ) from fault
    finally:
        transport.samlToken = None


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
    """The hardware's UUID, since an ESXi host has no instance UUID. Its host object is `ha-host`."""
    hardware: Any = vim.HostSystem("ha-host", transport).summary.hardware
    return str(hardware.uuid)


def _bearer_token(given: str, address: str) -> str:
    """The assertion as XML, byte for byte since it is signed, from XML or from base64 on one line.

    Raises InputError for anything else, and for a token that requires a private key.
    """
    text = given.strip()
    if not text.startswith("<"):
        try:
            text = base64.b64decode(text, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            text = ""
    try:
        root = ElementTree.fromstring(text) if "<!" not in text else None
    except ElementTree.ParseError:
        root = None
    if root is None or root.tag != _ASSERTION:
        raise InputError(
            f"vcenter.token of {address} is not a SAML 2.0 assertion.",
            fix="Give only the Assertion: as XML on one line, or as base64 of it on one line.",
        )
    if any(one.get("Method") == _HOLDER_OF_KEY for one in root.iterfind(_CONFIRMATION)):
        raise InputError(
            f"vcenter.token of {address} is a holder-of-key token: each login must be signed with its "
            "key, which vnuma does not support.",
            fix="Get a bearer token, or open a session and give its cookie as vcenter.session.",
        )
    return text
