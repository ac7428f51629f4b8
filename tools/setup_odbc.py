"""The ODBC step of set-up: unixODBC and a driver for SQL Server, from the machine or into .venv."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tools.setup_shell import (
    ROOT,
    VENV,
    SetupFailed,
    Step,
    apt_install,
    ask,
    explained,
    pip_install,
    root_on_debian,
    run,
)

LOCK = ROOT / "tools" / "odbc.lock"
FOLDER = VENV / "odbc"
"""Where `vnuma.sqlserver.client.odbc` looks: the prefix of the virtual environment."""

PACKAGES = ("tdsodbc", "libodbc2")
_ALONE = ("tdsodbc", "libodbc2", "libodbcinst2", "libltdl7")
"""What to unpack where apt cannot tell what the machine lacks."""

FIND = """
import ctypes, json
from vnuma.errors import DriverMissing

def why_not(driver, pyodbc):
    if driver.path:
        try:
            ctypes.CDLL(driver.path)
        except OSError as error:
            return str(error)
        return ""
    try:
        pyodbc.connect(f"DRIVER={{{driver.name}}};SERVER=127.0.0.1,1", timeout=1).close()
    except pyodbc.Error as error:
        return str(error.args[-1]) if error.args[0] in ("01000", "IM002", "IM003", "IM004") else ""
    return ""

try:
    from vnuma.sqlserver.client.driver import discover
    from vnuma.sqlserver.client.odbc import pyodbc
    driver = discover()
    names = {"freetds": "FreeTDS", "msodbcsql17": "msodbcsql 17", "msodbcsql18": "msodbcsql"}
    print(json.dumps([f"{names[driver.kind]} {driver.version}", driver.name, why_not(driver, pyodbc)]))
except DriverMissing as error:
    print(json.dumps(["", "", error.what]))
"""
LICENCE = "proprietary, under Microsoft's licence terms for ODBC Driver 18 (in the wheel)"


class Found:
    """The driver that vnuma would take: what it is called, and why it does not load (empty: it does)."""

    def __init__(self) -> None:
        self.title, self.name, self.why_not = json.loads(ask(FIND))

    @property
    def loads(self) -> bool:
        """Whether it can be used as it is."""
        return bool(self.title) and not self.why_not


def odbc_step(number: int) -> None:
    """A driver that loads: an installed one, else FreeTDS (by apt, or into .venv), else Microsoft's wheel."""
    step = Step(number, "ODBC")
    found = Found()
    if found.loads:
        step.done(f"{found.title} found; nothing installed")
        return
    named = os.environ.get("VNUMA_ODBC_DRIVER")
    if named:
        raise SetupFailed(
            f"VNUMA_ODBC_DRIVER names {named}, which does not load: {found.why_not}\n"
            "  Correct it, or take a driver that set-up finds: unset VNUMA_ODBC_DRIVER && make setup"
        )
    if found.name:
        step.note(f"{found.name} does not load: {found.why_not}")
    if root_on_debian() and apt_install(step, *PACKAGES) and Found().loads:
        step.done(f"{Found().title} installed by apt (LGPL)")
        return
    why = _try_unpacking(step)
    found = Found()
    if found.loads:
        step.done(f"{found.title} in .venv (Debian's tdsodbc, LGPL)")
        return
    _take_the_wheel(step, why)


def _take_the_wheel(step: Step, why: str) -> None:
    """Microsoft's driver, which needs unixODBC on the machine."""
    step.note("No ODBC driver for SQL Server loads here. Debian: apt install tdsodbc (LGPL).")
    step.note("Until then .venv gets the wheel mssql-python-odbc.")
    step.note(f"It is {LICENCE}.")
    pip_install("--require-hashes", "-r", LOCK, what="Installing mssql-python-odbc")
    found = Found()
    if not found.loads:
        which = f"{found.name} does not load" if found.name else "unixODBC and a driver are missing"
        raise SetupFailed(
            f"No ODBC driver works here: {which}: {found.why_not}{why}\n"
            "  Debian and Ubuntu: sudo apt-get install tdsodbc unixodbc. A driver of your own:\n"
            "  VNUMA_ODBC_DRIVER=/path/to/libtdsodbc.so make setup"
        )
    step.done(f"{found.title} in .venv (wheel mssql-python-odbc)")


def _try_unpacking(step: Step) -> str:
    """Unpack the distribution's packages into .venv; why that could not be, for a later message."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return ""
    step.say("unpacking the distribution's unixODBC and FreeTDS into .venv (no root needed)")
    try:
        _unpack(FOLDER.with_name("odbc.partial"))
    except SetupFailed as error:
        first = str(error).splitlines()[0]
        step.note(first)
        return f"\n  {first}"
    return ""


def _unpack(partial: Path) -> None:
    """Download and unpack in a folder of its own, which takes its name when all is there."""
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "debs").mkdir(parents=True)
    options, packages = _what_is_missing(partial)
    what = "Downloading unixODBC and FreeTDS with apt-get"
    run("apt-get", *options, "download", *packages, what=what, cwd=partial / "debs")
    for deb in sorted((partial / "debs").glob("*.deb")):
        run("dpkg-deb", "-x", deb, partial / "tree", what=f"Unpacking {deb.name}")
    shutil.rmtree(FOLDER, ignore_errors=True)
    (partial / "tree").rename(FOLDER)
    shutil.rmtree(partial)


def _what_is_missing(partial: Path) -> tuple[list[str], list[str]]:
    """The packages that apt would install here, and its options: with lists of our own if it has none."""
    options: list[str] = []
    status, said = _simulated(options)
    if status:
        for folder in ("lists/partial", "cache/archives/partial"):
            (partial / folder).mkdir(parents=True)
        options = [f"-oDir::State::lists={partial}/lists", f"-oDir::Cache={partial}/cache"]
        options += ["-oAcquire::Languages=none", "-oAcquire::Retries=1"]
        update = run("apt-get", *options, "update", what="Reading the distribution's package lists")
        status, said = _simulated(options)
        if "Unable to locate" in said:
            raise SetupFailed(f"The distribution's packages were not found: {explained(update, status)}")
    missing = [line.split()[1] for line in said.splitlines() if line.startswith("Inst ")]
    return options, missing or list(_ALONE)


def _simulated(options: list[str]) -> tuple[int, str]:
    command = ["apt-get", *options, "--simulate", "install", "--no-install-recommends", *PACKAGES]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout
