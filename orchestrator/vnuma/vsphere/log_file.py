"""Fetch a VM's vmware.log: from its host while it runs, from vCenter when it is off.

A running VM keeps its log open, so on shared storage only its own host can read it. vCenter issues a ticket
for one request to that host (AcquireGenericServiceTicket; privileges Datastore.Browse and
Datastore.FileManagement), with the host's certificate (`tls`).
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Literal
from urllib.parse import quote, urlencode, urlsplit

from pyVmomi import vim, vmodl

from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.errors import PrivilegeMissing, VnumaError
from vnuma.vsphere.faults import describe
from vnuma.vsphere.session import Session
from vnuma.vsphere.tls import NotThatHost, connect_to_host, thumbprint_of

Source = Literal["host", "vcenter"]

LOG_NAME = "vmware.log"

# The lines on vNUMA come early in a power-on, after some hundreds of lines of configuration.
_MOST_BYTES = 1024 * 1024
_CHUNK = 64 * 1024
_TIMEOUT_S = 5.0
_DIRECTORY = re.compile(r"\[([^\]]+)\]\s*(.*)")
_HOSTS_DATACENTER = "ha-datacenter"
_HTTPS = 443


class LogUnavailable(VnumaError):
    """The log is not available; nothing else is wrong."""


@dataclass(frozen=True)
class LogFile:
    """The beginning of a vmware.log; `host_time` is the time on the machine that served it."""

    text: str
    source: Source
    host_time: datetime | None


def fetch_log(session: Session, vm: VmFacts, *, clock: Callable[[], float] = time.monotonic) -> LogFile:
    """A VM's vmware.log, at most its first MiB, within _TIMEOUT_S after the ticket: two round trips.

    Raises LogUnavailable for any failure.
    """
    found = _DIRECTORY.fullmatch(vm.log_directory or "")
    if found is None:
        raise LogUnavailable(f"vSphere names no log directory of {vm.name}")
    path = "/folder/" + quote("/".join(part for part in (found[2].strip("/"), LOG_NAME) if part))
    request = _Request(session, path, found[1], clock() + _TIMEOUT_S, clock)
    if not session.about.is_vcenter:
        return request.with_session(_HOSTS_DATACENTER, "host")
    if vm.power is Power.OFF:
        return request.with_session(vm.path.partition("/vm/")[0].strip("/"), "vcenter")
    return request.with_ticket(vm.host_name)


@dataclass(frozen=True)
class _Request:
    session: Session
    path: str
    datastore: str
    deadline: float
    clock: Callable[[], float]

    def with_ticket(self, host: str) -> LogFile:
        """Fetch from the host, with vCenter's ticket."""
        target = self._target(_HOSTS_DATACENTER)
        spec = vim.SessionManager.HttpServiceRequestSpec(method="httpGet", url=f"https://{host}{target}")
        try:
            ticket = self.session.content.sessionManager.AcquireGenericServiceTicket(spec)
        except PrivilegeMissing as error:
            raise LogUnavailable(error.what.rstrip(".")) from error
        except vmodl.MethodFault as fault:
            raise LogUnavailable(f"vCenter gave no ticket for {host}: {describe(fault)}") from fault
        named = ticket.hostName or host
        parts = urlsplit(f"//{named}")
        cookie = f"vmware_cgi_ticket={ticket.id}"
        address = parts.hostname or named, parts.port or _HTTPS
        return self._get(*address, target, cookie, "host", thumbprint_of(ticket))

    def with_session(self, datacenter: str, source: Source) -> LogFile:
        """Fetch from the server where we are logged in."""
        server = self.session.transport.vcenter
        cookie = str(self.session.transport.cookie or "").partition(";")[0]
        return self._get(server.host, server.port, self._target(datacenter), cookie, source)

    def _target(self, datacenter: str) -> str:
        return f"{self.path}?{urlencode({'dcPath': datacenter, 'dsName': self.datastore})}"

    def _get(
        self, host: str, port: int, target: str, cookie: str, source: Source, thumbprint: str | None = None
    ) -> LogFile:
        connection: http.client.HTTPSConnection | None = None
        try:
            vcenter = self.session.transport.vcenter
            connection = connect_to_host(vcenter, host, port, thumbprint, _TIMEOUT_S)
            connection.request("GET", target, headers={"Cookie": cookie})
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                raise LogUnavailable(f"{host} answers {response.status} {response.reason} for {LOG_NAME}")
            data = self._read(response, host)
        except NotThatHost as error:
            raise LogUnavailable(str(error.args[0])) from error
        except (OSError, http.client.HTTPException) as error:
            why = str(getattr(error, "strerror", None) or error or type(error).__name__)
            raise LogUnavailable(f"{host}:{port} did not return {LOG_NAME} ({why})") from error
        finally:
            if connection:
                connection.close()
        return LogFile(data.decode("utf-8", errors="replace"), source, _date(response.headers.get("Date")))

    def _read(self, response: http.client.HTTPResponse, host: str) -> bytes:
        data = b""
        while len(data) < _MOST_BYTES:
            chunk = response.read1(_CHUNK)
            if not chunk:
                break
            data += chunk
            if self.clock() > self.deadline:
                raise LogUnavailable(f"{host} took longer than {_TIMEOUT_S:g} s to return {LOG_NAME}")
        return data


def _date(text: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
