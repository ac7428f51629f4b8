"""The steps of cells in a bare process without Ansible, killed at many more points per minute."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess

from tests.e2e.steps import Steps
from tools.soak import checks
from tools.soak.ground import ITERATIONS, PATIENCE_S, RUN, STUDY, Ground, Stuck
from tools.soak.points import BARE, Chooser, Point, Stage
from tools.soak.supervised import kill
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.cell.dataset import prepare_cell
from vnuma.engine.cell.measure_cell import measure_cell
from vnuma.engine.cell.shape import shape_cell
from vnuma.engine.lease.attempt import Attempt
from vnuma.engine.run.next_cell import claim_next_cell
from vnuma.errors import VnumaError
from vnuma.store.rows import Claim

STRIKES = 24
"""Strikes per campaign."""

ALL = 10_000
"""More cells than a run has."""


class BareRun:
    """The engine's steps one after the other, each strike at a process forked for them."""

    VMS = ("sql16",)
    VICTIMS = BARE

    def __init__(self, ground: Ground, seed: int) -> None:
        self._ground = ground
        design = {"blocks": 3, "iterations": ITERATIONS, "seed": seed}
        self._steps = Steps.prepared(ground.home, ground.lab, design=design, **STUDY)
        self._worker: BaseProcess | None = None

    def strike(self, chooser: Chooser, deadline: float) -> None:
        """Strike that often, or until all cells are valid or time is over; then finish. Raises Stuck."""
        for _ in range(STRIKES):
            if time.monotonic() > deadline or not checks.unfinished(self._ground.watch.store, RUN):
                break
            self._strike_once(chooser.next())
        last = self._fork(cells=ALL)
        self._ground.wait_until(lambda: not last.is_alive(), "end of its process")
        self._ground.check_end()

    def close(self) -> None:
        """End its remaining processes."""
        if self._worker and self._worker.is_alive():
            self._worker.kill()
            self._worker.join()

    def _strike_once(self, point: Point) -> None:
        """Strike a new process at this point, and check; missed if it had ended."""
        began = time.monotonic()
        restoring = point.stage is Stage.RESTORE
        self._ground.watch.bury()
        worker = self._fork(cells=1 if restoring else ALL)

        def over() -> bool:
            if time.monotonic() - began > PATIENCE_S:
                raise Stuck(f"{self._ground.name} never reached {point.stage}")
            return not worker.is_alive()

        watch = self._ground.watch
        if restoring:
            watch.begins(Stage.STORING, over)
        begun = watch.begins(point.stage, over)
        time.sleep(point.delay_s)
        pid = worker.pid if begun and worker.is_alive() else None
        self._ground.tally.count(point, struck=pid is not None and kill(pid, point.strike.signal))
        self._ground.wait_until(lambda: not worker.is_alive(), "end of its process")
        self._ground.check(point)

    def _fork(self, cells: int) -> BaseProcess:
        """A process that takes the VM over, measures so many cells and restores the VM."""
        self._worker = get_context("fork").Process(target=self._work, args=(cells,))
        self._worker.start()
        return self._worker

    def _work(self, cells: int) -> None:
        log = os.open(self._ground.folder / "steps.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(log, 2)  # where an interrupted process reports it
        context = self._steps.take()
        while cells and isinstance(claimed := claim_next_cell(context), Claim):
            attempt, cells = Attempt.of(claimed), cells - 1
            with suppress(VnumaError):  # stored with the attempt; the cell starts again
                shape_cell(context, attempt)
                boot_cell(context, attempt)
                ready_cell(context, attempt)
                prepare_cell(context, attempt)
                measure_cell(context, attempt)
        self._steps.restore()
