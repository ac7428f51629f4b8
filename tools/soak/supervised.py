"""A study under `vnuma run`, whose processes are killed again and again; resumed, and brought to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from tests.support.cli import command
from tests.support.site import write_inventory, write_study
from tools.soak import checks
from tools.soak.ground import ITERATIONS, PATIENCE_S, RUN, STUDY, Ground, Stuck
from tools.soak.points import PLAYED, Chooser, Point, Stage, Victim
from tools.soak.watch import gone, process_of


class SupervisedRun:
    """`vnuma run` on two VMs, and the blows that it gets."""

    VMS = ("a", "b")
    VICTIMS = PLAYED
    SHARE = 0.4

    def __init__(self, ground: Ground, seed: int) -> None:
        self._ground = ground
        self._engine: subprocess.Popen[str] | None = None
        self._inventory = write_inventory(ground.folder, ground.lab)
        design = {"blocks": 4, "iterations": ITERATIONS, "seed": seed}
        self._study = write_study(ground.folder, vms=list(self.VMS), design=design, **STUDY)

    def strike(self, chooser: Chooser, deadline: float) -> None:
        """Strike until the run is complete or time is over; then let it come to its end. Raises Stuck."""
        while time.monotonic() < deadline and not self._complete():
            self._begin()
            self._strike_once(chooser.next())
        for _ in range(4):
            if self._complete():
                break
            self._wait_for_the_end(self._begin())
        self._ground.check_end()

    def close(self) -> None:
        """End what still runs of it."""
        if self._engine and self._engine.poll() is None:
            self._engine.send_signal(signal.SIGTERM)
            try:
                self._engine.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self._engine.kill()
                self._engine.wait()

    def _begin(self) -> subprocess.Popen[str]:
        """A run that is under way: the first one, or resumed after its end."""
        if self._engine is not None and self._engine.poll() is None:
            return self._engine
        resume = ("run", "--resume", RUN)
        words = resume if self._ground.watch.knows_run() else ("run", self._study, "-i", self._inventory)
        with (self._ground.folder / "run.log").open("a", encoding="utf-8") as log:
            self._engine = subprocess.Popen(
                command(*words),
                env={**os.environ, "VNUMA_HOME": str(self._ground.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        return self._engine

    def _strike_once(self, turn: dict[Stage, Point]) -> None:
        """Strike at the first of these points that comes, and check; missed if the process was over."""
        engine, began, watch = self._begin(), time.monotonic(), self._ground.watch

        def over() -> bool:
            if time.monotonic() - began > PATIENCE_S:
                raise Stuck(f"{self._ground.name} reached none of {', '.join(turn)}")
            return engine.poll() is not None

        if Stage.RESTORE in turn and watch.begins(Stage.WAITING, over):
            engine.send_signal(signal.SIGINT)  # a stop: the VMs are put back
        stage = watch.first_of(turn, over)
        point = turn[stage or next(iter(turn))]
        time.sleep(point.delay_s)
        victim = process_of(point.victim, engine.pid) if stage else None
        struck = victim is not None and kill(victim, point.signal)
        self._ground.tally.count(point, struck=struck)
        if struck and victim:
            self._wait_for(point, victim, engine)
        self._ground.check(point)

    def _wait_for(self, point: Point, victim: int, engine: subprocess.Popen[str]) -> None:
        """Until the blow has had its effect."""
        if point.victim is Victim.ENGINE:
            self._wait_for_the_end(engine)
        elif point.signal is signal.SIGKILL:
            self._ground.wait_until(
                lambda: gone(victim) or engine.poll() is not None, f"end of {point.victim}"
            )

    def _complete(self) -> bool:
        over = self._engine is not None and self._engine.poll() == 0
        return over and not checks.unfinished(self._ground.watch.store, RUN)

    def _wait_for_the_end(self, engine: subprocess.Popen[str]) -> None:
        try:
            engine.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            raise Stuck(f"{self._ground.name} did not end") from error


def kill(pid: int, number: signal.Signals) -> bool:
    """Send a signal; False when the process was gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
