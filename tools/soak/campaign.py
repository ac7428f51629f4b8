"""A study on two VMs under `vnuma run`: struck repeatedly, resumed, and finished."""

from __future__ import annotations

import json
import random
import signal
import time
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from threading import Event, Thread

from tests.support.site import write_inventory, write_machines, write_study
from tools.bench.processes import descendants
from tools.soak.faults import CODES, FaultTarget, fault
from tools.soak.ground import (
    ITERATIONS,
    PATIENCE_S,
    PROGRAMS,
    RUN,
    STUDY,
    VMS,
    Ground,
    Stuck,
    start_engine,
    unfinished,
)
from tools.soak.points import Chooser, Point, Stage, Strike, Victim
from tools.soak.watch import found_process, gone, signalled

STRIKES = 16
"""Of one campaign. Cells have ten attempts, and one that is struck in its worker costs one."""

DYING_S = 30.0
"""Time limit for a play to die of a signal that it may handle."""


class Campaign:
    """One run, and the strikes that it gets."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self._ground = ground
        self._engine: ForkServerProcess | None = None
        self._unjudged: ForkServerProcess | None = None
        self._stopping = False
        self._strikes: list[Point] = []
        self._dice = random.Random(seed)
        ports = {name: relay.port for name, relay in ground.sql_relays.items()}
        self._inventory = write_inventory(ground.home, ground.lab, sql_ports=ports, **ground.proxy.vcenter)
        if ground.programs:
            hosts = json.loads(self._inventory.read_text("utf-8"))
            hosts["all"] |= json.loads(write_machines(ground.folder, ground.lab).read_text("utf-8"))["all"]
            self._inventory.write_text(json.dumps(hosts), "utf-8")
        self._begun = 0.0
        self._ended = Event()
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()
        design = {"blocks": 2, "iterations": ITERATIONS, "seed": seed}
        about = PROGRAMS if ground.programs else STUDY
        self._study = write_study(ground.folder, vms=list(VMS), design=design, **about)

    def strike(self, chooser: Chooser, deadline: float) -> None:
        """Strike that often, or until all cells are valid or time is over; then finish. Raises Stuck."""
        for _ in range(STRIKES):
            if time.monotonic() > deadline or self._complete():
                break
            self._strike_once(chooser, self._begin())
        for _ in range(4):
            if self._complete():
                break
            self._wait_for_the_end(self._begin())
        self._ground.check_end()

    def close(self) -> None:
        """End what still runs of it."""
        self._ended.set()
        if self._engine and self._engine.is_alive():
            self._engine.terminate()
            self._engine.join(60)
            if self._engine.is_alive():
                self._engine.kill()
                self._engine.join()

    def _listen(self) -> None:
        """Measure how long the run says nothing while it lives."""
        log, tally = self._ground.folder / "run.log", self._ground.tally
        while not self._ended.wait(0.5):
            with suppress(FileNotFoundError, ValueError):  # no run yet, or its process was closed
                if self._engine and self._engine.is_alive():
                    spoke = max(self._begun, log.stat().st_mtime)
                    tally.silence_s = max(tally.silence_s, time.time() - spoke)

    def _begin(self) -> ForkServerProcess:
        """A run in progress: the first one, or resumed after its end."""
        if self._engine is not None and self._engine.is_alive():
            return self._engine
        self._judge()
        known, ground = self._ground.watch.knows_run(), self._ground
        what = ["--resume", RUN] if known else [str(self._study), "-i", str(self._inventory)]
        ground.watch.bury()
        self._begun = time.time()
        self._engine = start_engine(["run", "-v", *what], ground.home, ground.folder / "run.log")
        self._unjudged, self._stopping, self._strikes = self._engine, False, []
        return self._engine

    def _judge(self) -> None:
        """Check what an engine that was not killed says about its VMs by its exit code."""
        engine, self._unjudged = self._unjudged, None
        code = engine.exitcode if engine else None
        if code is None or code < 0 or not self._ground.watch.knows_run():
            return
        missing = bool(unfinished(self._ground.watch.store, RUN))
        felt = [
            point for point in self._strikes if point.victim in (Victim.ENGINE, Victim.ALL, Victim.AROUND)
        ]
        codes = {6 if missing else 0}.union(*(CODES.get(point.strike, ()) for point in felt))
        words = "; ".join(point.words for point in self._strikes) or "nothing struck it"
        self._ground.check_code(code, frozenset(codes), words)

    def _strike_once(self, chooser: Chooser, engine: ForkServerProcess) -> None:
        """Strike at a point once it comes, and check; missed if the process had ended."""
        point = chooser.at_restore() if self._stopping else chooser.next()
        if point is None:
            self._wait_for_the_end(engine)
            return
        began, watch = time.monotonic(), self._ground.watch

        def over() -> bool:
            if time.monotonic() - began > PATIENCE_S:
                raise Stuck(f"{self._ground.name} never reached {point.stage}")
            return not engine.is_alive()

        if point.stage is Stage.RESTORE and not self._stopping and watch.begins(Stage.WAITING, over):
            signalled(_pid(engine), signal.SIGINT)  # a stop: the VMs are restored
            self._stopping = True
            self._strikes.append(Point(Stage.WAITING, Victim.ENGINE, Strike.INT, 0))
        begun = watch.begins(point.stage, over)
        time.sleep(point.delay_s)
        self._strikes.append(point)
        struck = begun and self._struck(point, engine)
        self._ground.tally.count(point, struck=struck)
        self._ground.check(point)

    def _struck(self, point: Point, engine: ForkServerProcess) -> bool:
        """Strike, and wait for the effect; False if there was nothing to strike any more."""
        if point.victim is Victim.AROUND:
            struck = engine.is_alive() and fault(point.strike)(FaultTarget(self._ground, engine, self._dice))
            if not engine.is_alive():
                self._ground.watch.bury()
            return struck
        victim = found_process(point.victim, _pid(engine))
        below = descendants(_pid(engine)) if point.victim is Victim.ALL else []
        if victim is None or not signalled(victim, point.strike.signal):
            return False
        for pid in below:
            signalled(pid, point.strike.signal)
        self._wait_for(point, victim, engine)
        return True

    def _wait_for(self, point: Point, victim: int, engine: ForkServerProcess) -> None:
        """Wait until the strike has had its effect. A run told to stop may be struck again."""
        mortal = point.strike is Strike.KILL
        if point.victim in (Victim.ENGINE, Victim.ALL):
            self._stopping = True
            if mortal:
                self._wait_for_the_end(engine)
        elif mortal:
            self._ground.wait_until(lambda: gone(victim) or not engine.is_alive(), f"end of {point.victim}")
        elif point.victim is Victim.PLAYBOOK:
            until = time.monotonic() + DYING_S
            while not gone(victim) and engine.is_alive() and time.monotonic() < until:
                time.sleep(0.01)
        if mortal or (point.victim is Victim.PLAYBOOK and gone(victim)):
            self._ground.watch.bury()

    def _complete(self) -> bool:
        if self._engine and not self._engine.is_alive():
            self._judge()
        over = self._engine is not None and self._engine.exitcode == 0
        return over and not unfinished(self._ground.watch.store, RUN)

    def _wait_for_the_end(self, engine: ForkServerProcess) -> None:
        engine.join(PATIENCE_S)
        if engine.is_alive():
            raise Stuck(f"{self._ground.name} did not end")


def _pid(engine: ForkServerProcess) -> int:
    assert engine.pid is not None, "it was started"
    return engine.pid
