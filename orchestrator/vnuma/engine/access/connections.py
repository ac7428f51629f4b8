"""Turn a target of the inventory into the adapters' connection values, with secrets resolved."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from functools import lru_cache
from multiprocessing import parent_process
from pathlib import Path

from vnuma import assets
from vnuma.engine.access.private_folder import private_folder
from vnuma.engine.access.secrets import PRIVATE_FILE_VARIABLE, Private, resolve
from vnuma.engine.access.target import Target, VCenterTarget
from vnuma.errors import VCenterUnreachable
from vnuma.logins import Logins, now_sharing, sharing
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.sqlserver.client.driver import ENVIRONMENT_VARIABLE, Driver, discover
from vnuma.vsphere.connect import VCenter, agreed_version, log_out


def vcenter(target: Target) -> VCenter:
    """How to log in to this target's vCenter."""
    return _login(target.hypervisor)


def _login(wanted: VCenterTarget) -> VCenter:
    private = Private.read()
    return VCenter(
        host=wanted.host,
        port=wanted.port,
        user=wanted.user,
        password=resolve(wanted.password) if wanted.password else "",
        session=resolve(wanted.session) if wanted.session else "",
        token=resolve(wanted.token) if wanted.token else "",
        proxy=wanted.proxy_address,
        ca_file=wanted.ca_file,
        verify_tls=wanted.verify_tls,
        api_version=private.api_versions.get(_address(wanted)) if private else None,
        logins=shared_logins(),
    )


def shared_logins() -> Logins | None:
    """The logins that this run's processes share: the supervisor's in a play, else this process's own.

    None where nothing is shared: then each connection logs in and out by itself.
    """
    private, sharing = Private.read(), now_sharing()
    if private and private.logins:
        return _logins_in(private.logins)
    return sharing.logins(_begin_sharing) if sharing else None


def share_in_play() -> None:
    """Share logins among the workers of a play that has no supervisor; they are logged out when it ends.

    Does nothing in a worker, which ends before the play does.
    """
    if os.environ.get(PRIVATE_FILE_VARIABLE) or parent_process() is not None or now_sharing():
        return
    ending = ExitStack()
    ending.enter_context(sharing()).logins(_begin_sharing)
    owner = os.getpid()
    atexit.register(lambda: ending.close() if os.getpid() == owner else None)


@lru_cache(maxsize=1)
def _logins_in(folder: str) -> Logins:
    return Logins(Path(folder))


def _begin_sharing(ending: ExitStack) -> Logins:
    """Keep logins in a folder that is removed with this process; `ending` logs them out first."""
    try:
        logins = Logins(ending.enter_context(private_folder(assets.home())))
    except OSError:  # a full disk must not prevent a restore: keep the logins in memory
        logins = Logins(None)
    ending.callback(log_out, logins)
    return logins


def api_versions(targets: Iterable[Target]) -> dict[str, str]:
    """The API version agreed with each target's vCenter, by address; unreachable vCenters are left out."""
    found: dict[str, str] = {}
    for target in targets:
        wanted = target.vcenter
        if wanted and _address(wanted) not in found:
            with suppress(VCenterUnreachable):
                found[_address(wanted)] = agreed_version(_login(wanted))
    return found


def _address(wanted: VCenterTarget) -> str:
    return f"{wanted.host}:{wanted.port}"


def sql_server(target: Target) -> SqlServer:
    """How to log in to this target's SQL Server, with the ODBC driver found here."""
    wanted = target.server
    return SqlServer(
        host=wanted.host,
        port=wanted.port,
        user=wanted.user,
        password=resolve(wanted.password) if wanted.password else "",
        encrypt=wanted.encrypt,
        trust_server_certificate=wanted.trust_server_certificate,
        ca_file=wanted.ca_file,
        driver=driver(wanted.driver),
        kerberos=wanted.kerberos,
        instance=wanted.instance,
        node_ports=wanted.node_ports,
        logins=shared_logins(),
    )


def driver(preferred: str = "auto") -> Driver:
    """The ODBC driver, cached while the environment names the same one. Raises DriverMissing."""
    return _driver(preferred, os.environ.get(ENVIRONMENT_VARIABLE), os.environ.get("ODBCSYSINI"))


@lru_cache(maxsize=4)
def _driver(preferred: str, _named: str | None, _registry: str | None) -> Driver:
    return discover(preferred)
