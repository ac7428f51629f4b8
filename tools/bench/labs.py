"""Labs of the benchmark's own, each with its home, that end with their `with`."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.bench.startup import VNUMA
from vnuma import assets, lab
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.sqlserver.client.driver import discover

Scenario = dict[str, Any]

NO_DELAYS = {"tools_seconds": 0, "sql_seconds": 0, "shutdown_seconds": 0, "task_seconds": 0}
INVENTORY = "inventories/lab/lab.vnuma.yml"


@dataclass(frozen=True)
class BenchLab:
    """A running lab and the empty home that vnuma is given with it."""

    state: lab.LabState
    folder: Path
    ready_s: float

    def sql(self, driver: str = "auto") -> SqlServer:
        """The SQL Server in the lab's first VM. Raises DriverMissing."""
        vm = self.state.vms[0]
        password = self.state.password_file.read_text(encoding="utf-8").strip()
        ca_file = str(self.state.ca_file)
        place = (vm.sql_host, vm.sql_port, vm.sql_user, password)
        return SqlServer(*place, driver=discover(driver), ca_file=ca_file)

    @property
    def environment(self) -> dict[str, str]:
        """For `vnuma` on this lab, with a store of its own."""
        return environment(self.folder)

    def run_study(
        self, study: Mapping[str, Any], inventory: Path | None = None, **extra: str
    ) -> subprocess.Popen[str]:
        """Start `vnuma run` on this lab. What it says goes into `run.log`."""
        file = self.folder / f"{study['name']}.yml"
        file.write_text(json.dumps(study), encoding="utf-8")  # JSON is YAML
        command = [str(VNUMA), "run", str(file), "-i", str(inventory or assets.asset(INVENTORY))]
        with self.log.open("w", encoding="utf-8") as output:
            return subprocess.Popen(
                command,
                env=self.environment | extra,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                text=True,
            )

    @property
    def log(self) -> Path:
        """What `vnuma run` said."""
        return self.folder / "run.log"

    @property
    def store(self) -> str:
        """The store's URL."""
        return f"sqlite:///{self.folder / 'vnuma.db'}"

    def events(self) -> list[dict[str, Any]]:
        """What the lab has told so far."""
        text = (self.folder / "lab" / "events.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def environment(home: Path) -> dict[str, str]:
    """This process's environment with another home."""
    return {**os.environ, "VNUMA_HOME": str(home), "VNUMA_LAB_STATE": str(home / "lab")}


@contextmanager
def running(scenario: str | Scenario = "paper") -> Iterator[BenchLab]:
    """A lab with a built-in scenario, or one given as its file would say it."""
    with tempfile.TemporaryDirectory(prefix="vnuma-bench-") as name:
        folder = Path(name)
        wanted: str | Path = scenario if isinstance(scenario, str) else folder / "scenario.yml"
        if isinstance(wanted, Path):
            wanted.write_text(json.dumps(scenario), encoding="utf-8")
        began = time.perf_counter()
        try:
            state = lab.up(wanted, folder / "lab")
            yield BenchLab(state, folder, time.perf_counter() - began)
        finally:
            lab.down(folder / "lab")


def described(server: SqlServer) -> dict[str, object]:
    """A server as another process of the benchmark is told it; the driver aside."""
    return {name: getattr(server, name) for name in ("host", "port", "user", "password", "ca_file")}
