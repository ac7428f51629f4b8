"""A running lab: start it, query it, stop it.

The lab outlives the command that started it; `lab.json` has what is needed to find it again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from vnuma import assets
from vnuma.errors import EnvironmentProblem
from vnuma.lab.program import ready_program, tail

_TICK_S = 0.02

_READY_S = 30.0
_GONE_S = 10.0
"""Time limits for a lab to answer, and for its process to end, in seconds."""


@dataclass(frozen=True)
class LabVm:
    """A VM of a running lab and the SQL Server inside it."""

    name: str
    path: str
    sql_host: str
    sql_port: int
    sql_user: str
    node_ports: tuple[int, ...] = ()


@dataclass(frozen=True)
class LabMachine:
    """A Linux machine of a running lab, reached by SSH with the key in `key_file`.

    `vm` is the path of the VM whose guest it is; None for one outside vCenter.
    """

    name: str
    host: str
    port: int
    user: str
    key_file: Path
    known_hosts: Path
    vm: str | None = None


@dataclass(frozen=True)
class LabState:
    """A running lab. `started` distinguishes its process from a later one with the same number."""

    pid: int
    started: str
    scenario: str
    esxi: str
    host: str
    port: int
    control_port: int
    user: str
    ca_file: Path
    password_file: Path
    vms: tuple[LabVm, ...]
    machines: tuple[LabMachine, ...] = ()

    @classmethod
    def from_ready(cls, event: dict[str, Any], password_file: Path, started: str) -> LabState:
        """The state in the lab's `ready` line."""
        vcenter = event["vcenter"]
        vms = (
            LabVm(vm["name"], vm["path"], sql["host"], sql["port"], sql["user"], tuple(sql["node_ports"]))
            for vm in event["vms"]
            if (sql := vm.get("sql"))
        )
        return cls(
            pid=event["pid"],
            started=started,
            scenario=event["scenario"],
            esxi=event["esxi"],
            host=vcenter["host"],
            port=vcenter["port"],
            control_port=event["control"]["port"],
            user=vcenter["user"],
            ca_file=Path(vcenter["ca_file"]),
            password_file=password_file,
            vms=tuple(vms),
            machines=TypeAdapter(tuple[LabMachine, ...]).validate_python(event.get("machines", ())),
        )


def up(
    scenario: str | Path = "paper",
    state_dir: Path | None = None,
    *,
    time_scale: float | None = None,
    seed: int | None = None,
) -> LabState:
    """Start a lab that outlives this process, and wait until it answers.

    `scenario` is the name of a built-in one or a file; `state_dir` has its certificate, password and state
    (default: `lab` in vnuma's home). Raises EnvironmentProblem when a lab runs there already, or this one
    does not start.
    """
    folder = _folder(state_dir)
    running = status(folder)
    if running is not None:
        raise EnvironmentProblem(
            f"A lab is already running: scenario {running.scenario}, process {running.pid}.",
            fix="Use it (vnuma lab status), or stop it first: vnuma lab down",
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password_file = folder / "password"
    command = [str(ready_program()), "--scenario", str(scenario), "--state-dir", str(folder)]
    command += ["--password-file", str(password_file)]
    command += [] if time_scale is None else ["--time-scale", str(time_scale)]
    command += [] if seed is None else ["--seed", str(seed)]
    (folder / "events.jsonl").unlink(missing_ok=True)
    pid = _spawn(command, folder)
    event = _wait_ready(pid, folder)
    state = LabState.from_ready(event, password_file, started=_started(pid) or "")
    _write_state(folder, state)
    return state


def status(state_dir: Path | None = None) -> LabState | None:
    """The lab running with this state folder, or None."""
    state = _read_state(_folder(state_dir))
    return state if state is not None and _started(state.pid) == state.started else None


def down(state_dir: Path | None = None) -> bool:
    """Stop the lab of this state folder; False when none runs.

    Stops the process only if it is the one that was started: same number and same start time.
    """
    folder = _folder(state_dir)
    state = status(folder)
    if state is not None:
        os.kill(state.pid, signal.SIGTERM)
        if not _gone(state):
            os.kill(state.pid, signal.SIGKILL)
            if not _gone(state):
                raise EnvironmentProblem(
                    f"The lab's process {state.pid} does not stop.", fix=f"Inspect it: ps -p {state.pid}"
                )
    (folder / "lab.json").unlink(missing_ok=True)
    return state is not None


def _folder(state_dir: Path | None) -> Path:
    """The state folder: the given one, else VNUMA_LAB_STATE, else `lab` in vnuma's home."""
    named = os.environ.get("VNUMA_LAB_STATE")
    return (state_dir or (Path(named) if named else assets.home() / "lab")).absolute()


def _spawn(command: list[str], folder: Path) -> int:
    """Start the lab in its own session, handed over to init at once: no terminal, no zombie."""
    script = 'umask 077; "$@" </dev/null >"$0/events.jsonl" 2>"$0/lab.log" & echo $!'
    answer = subprocess.run(
        ["/bin/sh", "-c", script, str(folder), *command],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        start_new_session=True,
    )
    return int(answer.stdout)


def _wait_ready(pid: int, folder: Path) -> dict[str, Any]:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        alive = _started(pid) is not None
        event = _ready_event(folder / "events.jsonl")
        if event is not None:
            return event
        if not alive:
            log = tail((folder / "lab.log").read_text(encoding="utf-8", errors="replace"))
            raise EnvironmentProblem(
                f"The lab ended before it was ready:\n{log}", fix=f"Its log is {folder / 'lab.log'}"
            )
        time.sleep(_TICK_S)
    if _started(pid) is not None:
        os.kill(pid, signal.SIGKILL)
    raise EnvironmentProblem(
        f"The lab was not ready after {_READY_S:.0f} s.", fix=f"Its log is {folder / 'lab.log'}"
    )


def _ready_event(output: Path) -> dict[str, Any] | None:
    """The `ready` line of a lab's output, once it is complete."""
    text = output.read_text(encoding="utf-8") if output.exists() else ""
    events = (json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n"))
    return next((event for event in events if event.get("event") == "ready"), None)


def _write_state(folder: Path, state: LabState) -> None:
    partial = folder / "lab.json.partial"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(state), file, default=str, indent=1)
    partial.replace(folder / "lab.json")


def _read_state(folder: Path) -> LabState | None:
    path = folder / "lab.json"
    try:
        return TypeAdapter(LabState).validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise EnvironmentProblem(
            f"{path} is not a valid lab state file ({error}).", fix="If no lab is running, delete the file."
        ) from error


def _gone(state: LabState) -> bool:
    deadline = time.monotonic() + _GONE_S
    while _started(state.pid) == state.started:
        if time.monotonic() > deadline:
            return False
        time.sleep(_TICK_S)
    return True


def _started(pid: int) -> str | None:
    """When the process started, in the system's notation; None when it does not run."""
    if sys.platform != "linux":
        answer = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        words = answer.stdout.split(maxsplit=1)
        return None if not words or words[0].startswith("Z") else words[1].strip()
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name, in brackets, may contain spaces; fields are counted after it (proc(5)).
    fields = text.rpartition(")")[2].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return None if fields[0] == "Z" else f"{boot}/{fields[19]}"
