"""A first contact with a real vCenter and SQL Server, recorded without names: what the lab then learns from.

Nothing is changed. What is not available is recorded with its reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from vnuma import __version__
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.redact import Redactor
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.target import Target
from vnuma.errors import EnvironmentProblem, writing
from vnuma.logs.vmware import read_vmware_log
from vnuma.sqlserver.client.connect import connect as connect_sql
from vnuma.sqlserver.client.query import value
from vnuma.sqlserver.instance import record, server
from vnuma.vsphere import provoke, read
from vnuma.vsphere.connect import connect
from vnuma.vsphere.log_file import LogUnavailable, fetch_log

SCHEMA = "vnuma/first-contact/1"

Document = dict[str, Any]


def record_contact(target: Target, path: Path) -> None:
    """Write what vCenter and SQL Server of one VM answer, redacted, to a YAML file. Raises InputError."""
    document = contact(target)
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    with writing(path, "The recording"), path.open("w", encoding="utf-8") as stream:
        yaml.dump(document, stream)


def contact(target: Target) -> Document:
    """The recording as a redacted document."""
    with connect(vcenter(target)) as session:
        vm = read.read_vm(session, read.find_vm(session, target.vm))
        host = read.read_host(session, session.host(vm.host_moid))
        about = session.about
        try:
            log: object = list(read_vmware_log(fetch_log(session, vm).text).lines)
        except LogUnavailable as error:
            log = {"not_recorded": error.what}
        vsphere = {
            "about": about.name,
            "hardware_version": vm.hardware_version,
            "settings": {name: _plain(value) for name, value in vm.settings.items()},
            "disabled_methods": list(vm.disabled_methods),
            "faults": provoke.provoked_faults(session),
            "vmware_log": log,
        }
    sql, version, guest = _sql(target, vm)
    redactor = Redactor(_names(target, vm) | ({guest: "<guest>"} if guest else {}))
    clean: Document = redactor.all({"vsphere": vsphere, "sql_server": sql})
    # Versions of four parts look like addresses, so they stand apart from what is redacted.
    versions = {"api": about.api_version, "esxi": str(host.release), "sql_server": version or None}
    return {"schema": SCHEMA, "vnuma": __version__, "versions": versions, **clean}


def _sql(target: Target, vm: VmFacts) -> tuple[Document, str, str | None]:
    """SQL Server's part, its version, and the machine's own name, which has to go."""
    if vm.power is not Power.ON:
        return {"not_recorded": "the VM is powered off"}, "", None
    try:
        with connect_sql(sql_server(target)) as connection:
            facts = server.read_server(connection)
            machine = value(connection, "SELECT CAST(SERVERPROPERTY(N'MachineName') AS nvarchar(128))")
            document = {
                "edition": facts.edition,
                "driver": str(sql_server(target).driver),
                "columns": record.columns(connection),
                "answers": record.answers(connection),
            }
    except EnvironmentProblem as error:
        return {"not_recorded": error.what}, "", None
    return document, facts.version, str(machine) if machine else None


def _names(target: Target, vm: VmFacts) -> dict[str, str]:
    """Everything known that names the site, with what stands in its place; domains too."""
    names = {
        target.vcenter.host: "<vcenter>",
        target.vcenter.user: "<user>",
        target.sql.host: "<sql>",
        target.sql.user: "<login>",
        target.name: "<vm>",
        vm.host_name: "<host>",
    }
    names |= {part: "<vm>" for part in (vm.name, *vm.path.split("/")) if part}
    for name in list(names):
        short, dot, domain = name.partition(".")
        if dot and not short.isdigit():
            names |= {short: names[name], domain: "<domain>"}
        user, at, realm = name.partition("@")
        if at:
            names |= {user: "<user>", realm: "<domain>"}
    return {name: word for name, word in names.items() if name not in ("", "vm", "sa")}


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
