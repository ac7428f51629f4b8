"""Write an inventory for a site from a few answers."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from io import StringIO
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from vnuma.engine.access.target import SqlTarget, VCenterTarget
from vnuma.errors import InputError, reading, writing
from vnuma.words.validation import messages

_HOST = r"(?P<host>\[[^\s\[\]]+\]|[^\s/{}@?#\\,:\[\]]+|(?:[0-9A-Fa-f]*:){2,}[0-9A-Fa-f.:]*)"  # the last: IPv6
_PORT = r"(?P<port>[1-9]\d{0,4})"
_VCENTER_ADDRESS = re.compile(rf"{_HOST}(?::{_PORT})?")
_SQL_ADDRESS = re.compile(rf"{_HOST}(?:[:,]{_PORT}|\\(?P<instance>[^\s\\:,]{{1,16}}))?")
_LAST_PORT = 65535
_MORE = """\
# Remove each line's first # for a VM with a Linux guest, and a client (docs/workloads/command.md).
#        linux16:
#          vnuma_test_clone: true
#          ansible_host: linux16.example.com
#          ansible_user: root
#  hosts:
#    loadgen:
#      ansible_host: loadgen.example.com
#      ansible_user: root
"""
_ELSEWHERE = "Choose another folder: --folder PATH"


@dataclass(frozen=True)
class Answers:
    """What the user answers about the site; passwords are not included."""

    vcenter: str
    """Host name or address, with the port unless it is 443: vc1:8443."""
    user: str
    ca_file: str
    vm: str
    sql_host: str
    r"""Host name or address, with a port or a named instance: sql16:1434, sql16\PROD."""
    sql_user: str
    test_clone: bool
    sql_ca_file: str = ""
    proxy: str = ""


def vcenter_address(text: str) -> dict[str, Any]:
    """A vCenter's host and optional port, from HOST or HOST:PORT; IPv6 with a port is [V6]:PORT.

    Raises InputError for anything else, such as a URL.
    """
    where = _read(_VCENTER_ADDRESS, text)
    if not where:
        raise InputError(f"'{text}' is not a valid address of a vCenter.", fix="Give HOST or HOST:PORT.")
    _validated(VCenterTarget, where | {"user": "u", "password": {"env": "P"}}, "vCenter")
    return where


def sql_address(text: str) -> dict[str, Any]:
    r"""SQL Server's host with its port or instance, from HOST:PORT, HOST,PORT or HOST\INSTANCE.

    IPv6 with a port is [V6]:PORT. Raises InputError for anything else.
    """
    where = _read(_SQL_ADDRESS, text)
    if not where:
        raise InputError(
            f"'{text}' is not a valid address of a SQL Server.", fix="Give HOST, HOST:PORT or HOST\\INSTANCE."
        )
    _validated(SqlTarget, where | {"kerberos": True}, "SQL Server")
    return where


def _read(pattern: re.Pattern[str], text: str) -> dict[str, Any]:
    """The host without brackets, and its port or instance; empty for an invalid address."""
    found = pattern.fullmatch(text)
    if not found:
        return {}
    where: dict[str, Any] = {name: part for name, part in found.groupdict().items() if part}
    where["host"] = found["host"].strip("[]")
    if "port" in where:
        where["port"] = int(where["port"])
    is_v6 = where["host"] != found["host"] or ":" in where["host"]
    valid = where.get("port", 0) <= _LAST_PORT and (not is_v6 or _is_ipv6(where["host"]))
    return where if valid else {}


def _is_ipv6(text: str) -> bool:
    try:
        return ip_address(text).version == 6
    except ValueError:
        return False


def _validated(kind: type[VCenterTarget | SqlTarget], fields: dict[str, Any], name: str) -> None:
    try:
        kind.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"{name}: {messages(error, 'the address')}.", fix="vnuma init --help") from None


def require_ca_file(text: str) -> None:
    """Raise InputError for a file without a certificate; an empty answer means the system's CAs."""
    if not text:
        return
    path = Path(text).expanduser().resolve()
    fix = "Name another file."
    with reading(path, fix=fix):
        try:
            ssl.create_default_context(cafile=path)
        except ssl.SSLError as error:
            raise InputError(f"{path} contains no certificate in PEM format.", fix=fix) from error


def free_place(folder: Path) -> Path:
    """FOLDER/hosts.yml. Raises InputError if it exists, as it is never overwritten, or is not accessible."""
    path = folder / "hosts.yml"
    with writing(path, "The inventory", fix=_ELSEWHERE):
        exists = path.exists()
    if exists:
        raise InputError(f"{path} already exists.", fix="Edit it, or choose another folder: --folder PATH")
    return path


def write_inventory(folder: Path, answers: Answers) -> Path:
    """Write FOLDER/hosts.yml. Raises InputError as `free_place` does, and for an invalid answer."""
    path = free_place(folder)
    name = answers.vm.rstrip("/").rpartition("/")[2]
    if not name:
        raise InputError("The VM has no name.", fix="vnuma init --vm NAME")
    vcenter = vcenter_address(answers.vcenter) | ({"proxy": answers.proxy} if answers.proxy else {})
    vcenter |= {"user": answers.user, "password": {"env": "VNUMA_VCENTER_PASSWORD"}}
    _validated(VCenterTarget, vcenter, "vCenter")
    sql = sql_address(answers.sql_host)
    sql |= {"user": answers.sql_user, "password": {"env": "VNUMA_SQL_PASSWORD"}}
    for section, ca_file in ((vcenter, answers.ca_file), (sql, answers.sql_ca_file)):
        if ca_file:
            section["ca_file"] = str(Path(ca_file).expanduser().resolve())
    host = {"vnuma_vm": answers.vm, "vnuma_test_clone": answers.test_clone, "vnuma_sql": sql}
    group = {"vars": {"vnuma_vcenter": vcenter}, "hosts": {name: host}}
    text = StringIO()
    YAML().dump({"all": {"children": {"vnuma_vms": group}}}, text)
    with writing(path, "The inventory", fix=_ELSEWHERE):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text("---\n" + text.getvalue() + _MORE, encoding="utf-8")
    return path
