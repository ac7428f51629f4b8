"""A first contact with a real vCenter and SQL Server, recorded without names: what the lab then learns from.

Nothing is changed. What is not available is recorded with its reason.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from vnuma import __version__
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.target import Target
from vnuma.errors import EnvironmentProblem, writing
from vnuma.sqlserver.client.connect import connect as connect_sql
from vnuma.sqlserver.instance import record, server
from vnuma.vsphere import read
from vnuma.vsphere.connect import connect
from vnuma.vsphere.recording import recorded_objects
from vnuma.words.provenance import in_json, scenario_of

SCHEMA = "vnuma/first-contact/2"

MOST_BYTES = 2_000_000
"""The largest recording."""

_CUTS = (1000, 100, 10)
"""How many entries of each list are recorded: the first that keeps the file small enough."""

Document = dict[str, Any]


def record_contact(target: Target, path: Path) -> None:
    """Write what vCenter and SQL Server of one VM answer, without names, to a file.

    Raises InputError if it cannot be written, EnvironmentProblem if the answers do not fit MOST_BYTES.
    """
    for most in _CUTS:
        text = StringIO()
        YAML().dump(_contact(target, most), text)
        if len(text.getvalue().encode()) <= MOST_BYTES:
            with writing(path, "The recording"):
                path.write_text(text.getvalue(), encoding="utf-8")
            return
    raise EnvironmentProblem(
        f"The answers about {target.name} are larger than {MOST_BYTES // 1_000_000} MB.",
        fix="Record another VM: vnuma doctor VM --record FILE",
    )


def _contact(target: Target, most: int) -> Document:
    with connect(vcenter(target)) as session:
        ref = read.find_vm(session, target.vm)
        vm = read.read_vm(session, ref)
        objects, name = recorded_objects(session, ref, most)
        about = session.about
    return {
        "schema": SCHEMA,
        "vnuma": __version__,
        **in_json(scenario_of(about.name)),
        "vsphere": {
            "version": about.release.version,
            "build": about.release.build,
            "api": about.api_version,
            "vm": name,
            "objects": LiteralScalarString(objects.replace("><propSet", ">\n<propSet")),
        },
        "sql_server": _sql(target, vm),
    }


def _sql(target: Target, vm: VmFacts) -> Document:
    """SQL Server's part; an error by its type, whose text names the server."""
    if target.sql is None:
        return {"not_recorded": "no SQL Server in the inventory"}
    if vm.power is not Power.ON:
        return {"not_recorded": "the VM is powered off"}
    try:
        with connect_sql(sql_server(target)) as connection:
            facts = server.read_server(connection)
            return {
                "version": facts.version,
                "edition": facts.edition,
                "driver": sql_server(target).driver.kind,
                **record.recorded(connection),
            }
    except EnvironmentProblem as error:
        return {"not_recorded": type(error).__name__}
