"""One ansible-runner call on the study's playbook: its order of VMs, environment and spare descriptors."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from vnuma.assets import asset
from vnuma.domain.vm.facts import HostKey
from vnuma.engine.access.play_input import clean_environment, write_extra_variables
from vnuma.errors import EnvironmentProblem, StoreAway, StoreError, StoreUnwritable
from vnuma.store.rows import Vm

# A long play grows by half a megabyte per cell, which makes forking slower; a new play takes two seconds.
# Ansible unrolls its loop in advance, so a short run asks for only as many turns as it needs.
MAX_CELLS_PER_PLAY = 50


_KEPT_OUTPUT = 4000

ENDED_BY_SIGNAL = -1
"""The exit status of a killed play, for which the runner has none."""


@dataclass(frozen=True)
class Played:
    """How a play ended: the runner's status, the exit status, and the end of its output.

    `unstored` is the last error of a step that could not store anything.
    """

    status: str
    rc: int
    output: str
    unstored: StoreError | None = None

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
    except BaseException as error:
        # When the runner fails, its play keeps running. Only its frames refer to the child, and pexpect ends
        # an unreferenced one.
        traceback.clear_frames(error.__traceback__)
        if isinstance(error, ValueError):  # an event's file that was cut short
            raise _unreadable(error) from None
        raise
    return Played(str(status), ENDED_BY_SIGNAL if rc is None else int(rc), heard.text, heard.unstored)


_UNSTORED = {kind.__name__: kind for kind in (StoreAway, StoreUnwritable)}


@dataclass
class _Heard:
    """What the play says, in memory: a restore must not need disk space."""

    text: str = ""
    unstored: StoreError | None = None

    def take(self, event: Mapping[str, Any]) -> bool:
        """Called with each event; False keeps the runner from writing it to a file."""
        if event.get("stdout"):
            self.text = f"{self.text}{event['stdout']}\n"[-_KEPT_OUTPUT:]
        result = event.get("event_data", {}).get("res")
        if not isinstance(result, Mapping):
            return False
        if result.get("changed") is True:  # a step that stored what it did
            self.unstored = None
        if result.get("error") in _UNSTORED:
            what, _, fix = str(result.get("msg")).partition("\n")
            self.unstored = _UNSTORED[result["error"]](what, fix=fix.strip() or None)
        return False


def _unreadable(error: ValueError) -> StoreError:
    return StoreError(
        f"The play's output could not be read ({error}).", fix="Free some space in vnuma's home: df -h"
    )


# Each VM in a play costs a process: 25 MB in a small play, 60 MB in one of 200 VMs, whose parent is larger.
# So many stay below 4 GB.
MAX_FORKS = 56

# Two VMs of each host: one is measured, the next waits for its turn.
PER_HOST = 2


@dataclass(frozen=True)
class PlayOrder:
    """VM names in the order in which a play starts them, and how many it works on at once."""

    order: tuple[str, ...]
    forks: int


def play_order(vms: Iterable[Vm], *, together: bool) -> PlayOrder:
    """VMs of different hosts first, then each host's second, and so on.

    With `together`, all at once as far as memory allows; otherwise two of each host.
    """
    by_host: dict[HostKey, list[str]] = {}
    for vm in vms:
        by_host.setdefault(vm.host_key, []).append(vm.name)
    rounds = chain.from_iterable(zip_longest(*by_host.values()))
    order = tuple(name for name in rounds if name is not None)
    useful = len(order) if together else min(len(order), PER_HOST * len(by_host))
    return PlayOrder(order, max(1, min(useful, MAX_FORKS)))


# Six are enough on the lab: three files of the store, the lock, and sockets of vCenter and SQL Server. Name
# lookups, a late-loaded driver or module and folders to remove need some more.
SPARE = 32


@contextmanager
def spare_descriptors() -> Iterator[None]:
    """Hold SPARE descriptors open and free them at the end.

    Raises EnvironmentProblem, before any change, where this process may not open that many.
    """
    with ExitStack() as held:
        try:
            for _ in range(SPARE):
                held.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            raise EnvironmentProblem(
                f"This process may open too few files ({error.strerror}): {SPARE} must be kept free to "
                "restore VMs.",
                fix="ulimit -n 1024",
            ) from error
        yield
