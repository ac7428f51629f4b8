"""One ansible-runner call on the study's playbook, in a clean environment."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnuma.assets import asset
from vnuma.engine.access.environment import clean_environment, write_extra_variables
from vnuma.engine.run.play_order import PlayOrder
from vnuma.errors import StoreError

# A long play grows by half a megabyte per cell, which makes forking slower; a new play takes two seconds.
# Ansible unrolls its loop in advance, so a short run asks for only as many turns as it needs.
MAX_CELLS_PER_PLAY = 50


_KEPT_OUTPUT = 4000

ENDED_BY_SIGNAL = -1
"""The exit status of a killed play, for which the runner has none."""


@dataclass(frozen=True)
class Played:
    """How a play ended: the runner's status, the exit status, and the end of its output."""

    status: str
    rc: int
    output: str

    @property
    def ok(self) -> bool:
        """Whether the play itself reports success."""
        return self.status == "successful" and self.rc == 0


def play_study(
    run: str,
    wanted: PlayOrder,
    inventory: Path,
    private: Path,
    folder: Path,
    max_cells: int,
    watch: Callable[[], bool],
) -> Played:
    """Run playbooks/study.yml on these VMs, with at most `max_cells` attempts for each.

    `inventory` is the play's own, from `write_play_inventory`. `watch` is called about once a second and
    cancels the play by returning True. `folder` must be new and private: a stale one would override
    variables.
    """
    folder.mkdir(mode=0o700)
    heard = _Heard()
    cells = min(max_cells, MAX_CELLS_PER_PLAY)
    write_extra_variables(folder, vnuma_run=run, vnuma_hosts=wanted.order, vnuma_max_cells=cells)
    import ansible_runner  # noqa: PLC0415 - half a second that only a run pays

    with clean_environment(private.parent, private):
        runner = ansible_runner.interface.init_runner(
            private_data_dir=str(folder),
            playbook=str(asset("playbooks/study.yml")),
            inventory=str(inventory.resolve()),
            forks=wanted.forks,
            settings={"pexpect_timeout": 1, "suppress_ansible_output": True, "suppress_output_file": True},
            quiet=True,
            cancel_callback=watch,
            event_handler=heard.take,
        )
    try:
        status, rc = runner.run()
    except Exception as error:
        # When the runner fails, its play keeps running. Only its frames refer to the child, and pexpect ends
        # an unreferenced one.
        traceback.clear_frames(error.__traceback__)
        if isinstance(error, ValueError):  # an event's file that was cut short
            raise _unreadable(error) from None
        raise
    return Played(str(status), ENDED_BY_SIGNAL if rc is None else int(rc), heard.text)


@dataclass
class _Heard:
    """The end of the play's output, in memory: a restore must not need disk space."""

    text: str = ""

    def take(self, event: Mapping[str, Any]) -> bool:
        """Called with each event; False keeps the runner from writing it to a file."""
        if event.get("stdout"):
            self.text = f"{self.text}{event['stdout']}\n"[-_KEPT_OUTPUT:]
        return False


def _unreadable(error: ValueError) -> StoreError:
    return StoreError(
        f"The play's output could not be read ({error}).", fix="Free some space in vnuma's home: df -h"
    )
