"""Files that vnuma reads: a fuzzer for each of their readers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import cache
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML

from tests.estate.designs import Design
from tests.estate.workbooks import export, rewrite, write
from tests.hostile.documents import SNAPSHOT
from tests.hostile.mutate import changed, mutated, with_other_bytes
from tests.hostile.studies import WELL
from tools.fuzz.tried import tried
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.secrets import Secret, resolve
from vnuma.engine.audit.log import read_audit_file
from vnuma.engine.design_check.check import CheckRequest, run_check
from vnuma.engine.design_check.history import earlier
from vnuma.estate import snapshot, waivers
from vnuma.estate.design import read_design
from vnuma.estate.rvtools import read_rvtools
from vnuma.logs.kinds import read_any
from vnuma.report.check.as_data import as_json
from vnuma.report.check.as_text import lines
from vnuma.report.published.published import read_publication
from vnuma.sqlserver.client.statistics_time import parse_messages

ROOT = Path(__file__).resolve().parents[2]


def study(dice: random.Random, _folder: Path) -> str:
    """A study file."""
    folder = ROOT / "studies"
    text = mutated(dice.choice([WELL, *(one.read_text() for one in sorted(folder.glob("*.yml")))]), dice)
    return tried(text, lambda: parse_study(text, "study.yml"))


def inventory(dice: random.Random, folder: Path) -> str:
    """A snapshot: read, checked by every rule, and shown."""
    text = SNAPSHOT.read_text(encoding="utf-8")
    text = json.dumps(changed(json.loads(text), dice)) if dice.random() < 0.8 else mutated(text, dice)
    path = folder / "estate.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))

    return tried(text, lambda: _checked(path))


def waiver_file(dice: random.Random, folder: Path) -> str:
    """A waivers file."""
    valid = "waivers:\n" + "- {rule: T11, object: sql-*, reason: 'CR 17', until: 2027-03-31}\n" * 3
    text, path = mutated(valid, dice), folder / "waivers.yml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return tried(text, lambda: waivers.load(path))


def log(dice: random.Random, _folder: Path) -> str:
    """A vmware.log or what a tool printed."""
    text = mutated(dice.choice(_texts("vmware_log", "host_tools", "guest_tools", "sql_errorlog")), dice)
    return tried(text, lambda: read_any(text))


def timing(dice: random.Random, _folder: Path) -> str:
    """The text of message 3612."""
    text = mutated(dice.choice(_texts("statistics_time")), dice)
    return tried(text, lambda: parse_messages([("[01000] (3612)", text)]))


def _checked(path: Path) -> None:
    result = run_check(snapshot.load(path), CheckRequest())
    list(lines(result))
    as_json(result)


def earlier_check(dice: random.Random, folder: Path) -> str:
    """An earlier check, to compare with."""
    text = (
        json.dumps(changed(json.loads(_earlier()), dice))
        if dice.random() < 0.8
        else mutated(_earlier(), dice)
    )
    return _read(folder / "earlier.json", text, lambda path: earlier(path, CheckRequest()))


def workbook(dice: random.Random, folder: Path) -> str:
    """An export of RVTools: the XML of one of its parts, or bytes of its zip."""
    path = write(folder / "export.xlsx", export())
    if dice.random() < 0.3:
        path.write_bytes(with_other_bytes(path.read_bytes(), dice))
        what = "bytes of the zip"
    else:
        part = dice.choice(("xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml", "xl/workbook.xml"))
        texts: list[str] = []

        def change(data: bytes) -> bytes:
            texts.append(mutated(data.decode(), dice))
            return texts[0].encode("utf-8", "surrogatepass")

        rewrite(path, part, change)
        what = f"{part}: {texts[0]}"
    return tried(what, lambda: _judged(path))


def _judged(path: Path) -> None:
    list(lines(run_check((read_rvtools(path),), CheckRequest())))


def design(dice: random.Random, folder: Path) -> str:
    """A .vmx, an OVF descriptor, or a Terraform plan."""
    of = Design(keys={"numa.vcpu.min": "9"})
    path = dice.choice((of.vmx, of.ovf, of.terraform))(folder)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json" and dice.random() < 0.7:
        text = json.dumps(changed(json.loads(text), dice))
    else:
        text = mutated(text, dice)
    return _read(path, text, lambda path: list(lines(run_check((read_design(path),), CheckRequest()))))


def table(dice: random.Random, folder: Path) -> str:
    """A published table."""
    text = dice.choice([one.read_text() for one in sorted((ROOT / "studies/published").glob("*.csv"))])
    return _read(folder / "table.csv", mutated(text, dice), read_publication)


def password(dice: random.Random, folder: Path) -> str:
    """A file with a password."""
    text = mutated("p\u2028a\u00e4ss word\n", dice)
    return _read(folder / "password", text, lambda path: resolve(Secret(file=str(path))))


def audit(dice: random.Random, folder: Path) -> str:
    """An audit log, which `vnuma restore --from-audit` follows."""
    line = {"at": "2026-11-17T20:45:10Z", "who": "ann@site", "vm": "sql16", "vm_key": "u/v", "run": "small.1"}
    edit = {"setting": "numCPUs", "before": 16, "after": 8}
    made = {**line, "action": "shape", "change": [edit], "detail": None, "ticket": None}
    text = "".join(json.dumps(changed(dict(made), dice)) + "\n" for _ in range(3))
    text = mutated(text, dice) if dice.random() < 0.5 else text
    return _read(folder / "vnuma.audit.jsonl", text, lambda path: list(read_audit_file(path)))


def site(dice: random.Random, folder: Path) -> str:
    """A site's inventory, in YAML; every variable of its VMs is read."""
    with redirect_stderr(StringIO()):  # what Ansible warns of
        return _read(folder / "hosts.yml", mutated(_SITE, dice), lambda file: Inventory(file).targets())


_SITE = """
all:
  children:
    vnuma_vms:
      vars:
        vnuma_vcenter: {host: vcenter.example.org, port: 443, user: study, password: {env: VNUMA_PASSWORD}}
      hosts:
        sql16:
          vnuma_vm: /DC1/vm/sql16
          vnuma_test_clone: true
          vnuma_sql: {host: "{{ inventory_hostname }}", port: 1433, user: sa, password: {file: /tmp/none},
                      node_ports: [1501, 1502], encrypt: mandatory, driver: freetds}
"""


def _read(path: Path, text: str, read: Callable[[Path], object]) -> str:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return tried(text, lambda: read(path))


@cache
def _earlier() -> str:
    return as_json(run_check(snapshot.load(SNAPSHOT), CheckRequest()))


@cache
def _texts(*names: str) -> tuple[str, ...]:
    """What servers and tools printed, out of the tests' data."""
    files = [(ROOT / "tests/data/logs" / f"{name}.yml").read_text(encoding="utf-8") for name in names]
    cases = [case for file in files for case in YAML(typ="safe").load(file)]
    return tuple(one["text"] for case in cases for one in (case, *case.get("messages", ())) if "text" in one)
