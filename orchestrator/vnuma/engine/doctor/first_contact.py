"""A first contact with a real vCenter and SQL Server, recorded without names: what the lab then learns from.

Nothing is changed. What is not available is recorded with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from vnuma import __version__
from vnuma.domain.vm.facts import VmFacts
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
        target.hypervisor.host: "<vcenter>",
        target.hypervisor.user: "<user>",
        target.server.host: "<sql>",
        target.server.user: "<login>",
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


_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b", re.I), "<uuid>"),
    (re.compile(r"\b(?:[0-9a-f]{2} ){7}[0-9a-f]{2}-(?:[0-9a-f]{2} ){7}[0-9a-f]{2}\b", re.I), "<uuid>"),
    (re.compile(r"\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b", re.I), "<mac>"),
    (re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\b"), "<user>"),
    (re.compile(r"\b[A-Za-z][\w.-]*\\[\w.$-]+"), "<user>"),
    (re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"), "<address>"),
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}(?![\w:])", re.I), "<address>"),
    (re.compile(r"/vmfs/volumes/[^\s\"']+"), "<path>"),
)
_SHORTEST_NAME = 2


class Redactor:
    """Replaces known names with placeholders, then whatever looks like an address or identifier."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names` maps secrets to placeholders, such as `vcsa01.corp` to `<vcenter>`."""
        known = {name: word for name, word in names.items() if len(name) >= _SHORTEST_NAME}
        longest_first = sorted(known, key=len, reverse=True)
        self._known = {name.casefold(): word for name, word in known.items()}
        self._names = (
            re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in longest_first), re.I)
            if known
            else None
        )

    def text(self, value: str) -> str:
        """A text without anything that identifies a site."""
        if self._names:
            value = self._names.sub(lambda match: self._known[match[0].casefold()], value)
        for pattern, word in _PATTERNS:
            value = pattern.sub(word, value)
        return value

    def all(self, value: Any) -> Any:
        """The same for every text in a document, including keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.all(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.all(item) for item in value]
        return value
