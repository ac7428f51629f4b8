"""A private lab for a test: started in a moment, gone with the test."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vnuma.lab import LabState, faults

READY_S = 120.0
"""How long a lab may take to come up on a busy machine (it needs less than a second)."""

_TICK_S = 0.02

Event = dict[str, Any]


@dataclass(frozen=True)
class VCenterEndpoint:
    """Where the lab's vCenter answers, and its account."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    ca_file: Path


@dataclass(frozen=True)
class SqlEndpoint:
    """Where SQL Server in a VM answers while the VM is on, and its account."""

    name: str
    path: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    node_ports: tuple[int, ...] = ()


class LabHandle:
    """A running lab. It ends with `stop()`, or when this process ends."""

    def __init__(self, program: Path, folder: Path, arguments: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._output = folder / "events.jsonl"
        self._errors = folder / "lab.log"
        password_file = folder / "password"
        command = [str(program), *arguments, "--state-dir", str(folder)]
        command += ["--password-file", str(password_file), "--until-stdin-closes"]
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=errors)
        try:
            ready = self.wait_for("ready", timeout_s=READY_S)
        except BaseException:
            self.stop()
            raise
        password = password_file.read_text(encoding="utf-8").strip()
        vcenter = ready["vcenter"]
        self.ready = ready
        self.pid = self._process.pid
        self.state = LabState.from_ready(ready, password_file, started="")
        self.vcenter = VCenterEndpoint(
            vcenter["host"], vcenter["port"], vcenter["user"], password, Path(vcenter["ca_file"])
        )
        self.vms: Mapping[str, SqlEndpoint] = _by_name(
            [_sql_endpoint(vm, password) for vm in ready["vms"] if "sql" in vm]
        )

    def __repr__(self) -> str:
        return f"LabHandle(pid={self.pid}, vms={sorted(self.vms)})"

    @property
    def events(self) -> list[Event]:
        """The lab's events so far, oldest first."""
        lines = self._output.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    @property
    def log(self) -> str:
        """What the lab wrote on standard error."""
        return self._errors.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, kind: str, *, count: int = 1, timeout_s: float = READY_S) -> Event:
        """The `count`-th event of a kind, as soon as the lab tells it."""
        found: list[Event] = []

        def told() -> bool:
            found[:] = [event for event in self.events if event["event"] == kind]
            return len(found) >= count

        self.wait_until(told, what=f"event {kind!r} number {count}", timeout_s=timeout_s)
        return found[count - 1]

    def wait_until(self, condition: Callable[[], bool], *, what: str, timeout_s: float = READY_S) -> None:
        """Come back as soon as `condition` holds; fail when it never does, or when the lab ends."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            ended = self._tick()
            if ended is not None and not condition():
                raise AssertionError(f"the lab ended with {ended} before {what}:\n{self.log}")
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what} within {timeout_s} s; events: {self.events}\n{self.log}")

    def fault(self, kind: str, **fields: Any) -> None:
        """Make the lab fail from now on; the fields are those of a scenario's faults."""
        faults.add(self.state, {"kind": kind, **fields})

    def audit(self, vm: str) -> dict[str, Any]:
        """What the SQL Server of a VM was asked since the lab began: `logins`, `requests`, `changes`."""
        found: dict[str, Any] = faults.ask(self.state, "GET", "/audit")[self.vms[vm].path]
        return found

    def logins(self) -> Event:
        """Logins of the administrator at vCenter so far: how many succeeded and failed."""
        counted: Event = self._logins()["vcenter"].get(self.vcenter.user, {})
        return {"succeeded": 0, "failed": 0, "locked": 0} | counted

    def open_sessions(self) -> int:
        """The administrator's sessions that are open at vCenter now."""
        return int(self._logins()["sessions"].get(self.vcenter.user, 0))

    def sql_logins(self, vm: str = "sql16") -> Event:
        """Logins of the study's account at a VM's SQL Server so far."""
        end = self.vms[vm]
        counted: Event = self._logins()["sql"][end.path].get(end.user, {})
        return {"succeeded": 0, "failed": 0, "locked": 0} | counted

    def _logins(self) -> Any:
        """Of `vcenter` by account, of `sql` by VM and account; open `sessions` by account."""
        return faults.ask(self.state, "GET", "/logins")

    def clear_faults(self) -> None:
        """Clear all faults."""
        faults.clear(self.state)

    def stop(self) -> None:
        """Close the lab's standard input, which ends it, and wait for the end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=60)
            raise AssertionError(f"the lab did not end when its standard input closed:\n{self.log}") from None

    def _tick(self) -> int | None:
        """Wait a moment, or until the lab ends: then its exit code."""
        try:
            return self._process.wait(timeout=_TICK_S)
        except subprocess.TimeoutExpired:
            return None


def _sql_endpoint(vm: Event, password: str) -> SqlEndpoint:
    sql = vm["sql"]
    return SqlEndpoint(
        vm["name"], vm["path"], sql["host"], sql["port"], sql["user"], password, tuple(sql["node_ports"])
    )


def _by_name(vms: list[SqlEndpoint]) -> Mapping[str, SqlEndpoint]:
    """VMs by name; those that share a name, by inventory path."""
    times = Counter(vm.name for vm in vms)
    return MappingProxyType({vm.name if times[vm.name] == 1 else vm.path: vm for vm in vms})


def start_lab(
    program: Path, folder: Path, scenario: str | dict[str, Any], overrides: dict[str, Any]
) -> LabHandle:
    """Start a lab with a built-in scenario, or with one given as its YAML file would say it.

    `overrides` are fields of the scenario (docs/lab.md) that replace those of `scenario`; a
    scenario given by name must be the default one, `paper`, to be changed that way.
    """
    if isinstance(scenario, str) and not overrides:
        return LabHandle(program, folder, ["--scenario", scenario])
    base = {"name": scenario} if isinstance(scenario, str) else dict(scenario)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scenario.yml"
    file.write_text(json.dumps({**base, **overrides}), encoding="utf-8")  # JSON is YAML
    return LabHandle(program, folder, ["--scenario", str(file)])
