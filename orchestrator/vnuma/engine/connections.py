"""From a target of the inventory to the adapters' own connection values, secrets resolved."""

from __future__ import annotations

from vnuma.engine.secrets import resolve
from vnuma.engine.target import Target
from vnuma.sqlserver.connect import SqlServer
from vnuma.sqlserver.driver import discover
from vnuma.vsphere.connect import VCenter


def vcenter(target: Target) -> VCenter:
    """How to log in to this target's vCenter."""
    wanted = target.vcenter
    return VCenter(
        host=wanted.host,
        port=wanted.port,
        user=wanted.user,
        password=resolve(wanted.password),
        ca_file=wanted.ca_file,
        verify_tls=wanted.verify_tls,
    )


def sql_server(target: Target) -> SqlServer:
    """How to log in to this target's SQL Server, with the ODBC driver that was found."""
    wanted = target.sql
    return SqlServer(
        host=wanted.host,
        port=wanted.port,
        user=wanted.user,
        password=resolve(wanted.password) if wanted.password else "",
        encrypt=wanted.encrypt,
        trust_server_certificate=wanted.trust_server_certificate,
        driver=discover(wanted.driver),
        kerberos=wanted.kerberos,
    )
