"""Writing an inventory for a site, from a few answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from vnuma.domain.vm.validation import messages
from vnuma.engine.access.target import VCenterTarget
from vnuma.errors import InputError

_HOST_AND_PORT = re.compile(r"(?P<host>[^:]+):(?P<port>[1-9]\d{0,4})")


@dataclass(frozen=True)
class Answers:
    """What a site tells about itself. Passwords are not among it."""

    vcenter: str
    """Its name or address, with a port where that is not 443: vc1:8443."""
    user: str
    ca_file: str
    vm: str
    sql_host: str
    sql_user: str
    test_clone: bool
    sql_ca_file: str = ""
    proxy: str = ""


def write_inventory(folder: Path, answers: Answers) -> Path:
    """Write FOLDER/hosts.yml. Raises InputError when it is there already: it is never overwritten."""
    path = folder / "hosts.yml"
    if path.exists():
        raise InputError(f"{path} is there already.", fix="Edit it, or choose another place: --folder PATH")
    name = answers.vm.rstrip("/").rpartition("/")[2]
    if not name:
        raise InputError("The VM has no name.", fix="vnuma init --vm NAME")
    found = _HOST_AND_PORT.fullmatch(answers.vcenter)
    where: dict[str, Any] = {"host": found["host"], "port": int(found["port"])} if found else {}
    where = where or {"host": answers.vcenter}
    vcenter = where | ({"proxy": answers.proxy} if answers.proxy else {})
    vcenter |= {"user": answers.user, "password": {"env": "VNUMA_VCENTER_PASSWORD"}}
    try:
        VCenterTarget.model_validate(vcenter)
    except ValidationError as error:
        raise InputError(f"vCenter: {messages(error, 'the address')}.", fix="vnuma init --help") from None
    sql = {
        "host": answers.sql_host,
        "user": answers.sql_user,
        "password": {"env": "VNUMA_SQL_PASSWORD"},
    }
    for section, ca_file in ((vcenter, answers.ca_file), (sql, answers.sql_ca_file)):
        if ca_file:
            section["ca_file"] = str(Path(ca_file).expanduser().resolve())
    host = {"vnuma_vm": answers.vm, "vnuma_test_clone": answers.test_clone, "vnuma_sql": sql}
    group = {"vars": {"vnuma_vcenter": vcenter}, "hosts": {name: host}}
    text = StringIO()
    YAML().dump({"all": {"children": {"vnuma_vms": group}}}, text)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text("---\n" + text.getvalue(), encoding="utf-8")
    return path
