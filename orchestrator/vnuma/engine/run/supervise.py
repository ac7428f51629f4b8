"""Supervise a run: play its cells, show progress, restore every VM at the end."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from vnuma.assets import asset
from vnuma.domain.vm.facts import HostKey
from vnuma.engine.access.connections import api_versions, shared_logins
from vnuma.engine.access.context import VmContext, digest_of
from vnuma.engine.access.places import home_folder
from vnuma.engine.access.play_input import clean_environment, write_extra_variables, write_play_inventory
from vnuma.engine.access.private_folder import private_folder
from vnuma.engine.access.secrets import Private, remember, remembered_secrets, resolve_all
from vnuma.engine.access.target import Target
from vnuma.engine.lease.hours import Closed, closed
from vnuma.engine.lease.supervision import claim_supervision, heartbeat, require_supervision
from vnuma.engine.restore.restore import (
    naming_all,
    possibly_changed,
    restore_abandoned,
    restore_each,
    restore_target,
)
from vnuma.engine.restore.restore_vm import Restored
from vnuma.engine.run.oversight import Oversight, SupervisedRun, Watch, stop_signals
from vnuma.engine.run.progress import Progress, progress_of, progress_of_part, restoring
from vnuma.engine.run.run_outcome import RunOutcome, restore_command, state_at_end
from vnuma.engine.run.sites import end_of_part, open_sites
from vnuma.engine.run.start import take_over_targets
from vnuma.errors import (
    EnvironmentProblem,
    LeaseLost,
    StoreAway,
    StoreError,
    StoreUnwritable,
    VnumaError,
    from_os_error,
)
from vnuma.store import attempts, leases, runs
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.sites import set_end
from vnuma.store.tables import utc_now

# A long play grows by half a megabyte per cell, which makes forking slower; a new play takes two seconds.
# Ansible unrolls its loop in advance, so a short run asks for only as many turns as it needs.
MAX_CELLS_PER_PLAY = 50


_KEPT_OUTPUT = 4000

_UNSTORED = {kind.__name__: kind for kind in (StoreAway, StoreUnwritable)}


@dataclass
class Played:
    """The end of a play's output, in memory: a restore must not need disk space. `ok`: it reports success.

    `unstored` is the last error of a step that could not store anything.
    """

    ok: bool = False
    output: str = ""
    unstored: StoreError | None = None

    def take(self, event: Mapping[str, Any]) -> bool:
        """Called with each event; False keeps the runner from writing it to a file."""
        if event.get("stdout"):
            self.output = f"{self.output}{event['stdout']}\n"[-_KEPT_OUTPUT:]
        result = event.get("event_data", {}).get("res")
        if not isinstance(result, Mapping):
            return False
        if result.get("changed") is True:  # a step that stored what it did
            self.unstored = None
        if result.get("error") in _UNSTORED:
            what, _, fix = str(result.get("msg")).partition("\n")
            self.unstored = _UNSTORED[result["error"]](what, fix=fix.strip() or None)
        return False


def play_study(
    run: str,
    order: list[str],
    forks: int,
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
    played = Played()
    cells = min(max_cells, MAX_CELLS_PER_PLAY)
    write_extra_variables(folder, vnuma_run=run, vnuma_hosts=order, vnuma_max_cells=cells)
    import ansible_runner  # noqa: PLC0415 - half a second that only a run pays

    with clean_environment(private.parent, private):
        runner = ansible_runner.interface.init_runner(
            private_data_dir=str(folder),
            playbook=str(asset("playbooks/study.yml")),
            inventory=str(inventory.resolve()),
            forks=forks,
            settings={"pexpect_timeout": 1, "suppress_ansible_output": True, "suppress_output_file": True},
            quiet=True,
            cancel_callback=watch,
            event_handler=played.take,
        )
    try:
        status, rc = runner.run()
    except BaseException as error:
        # When the runner fails, its play keeps running. Only its frames refer to the child, and pexpect ends
        # an unreferenced one.
        traceback.clear_frames(error.__traceback__)
        if isinstance(error, ValueError):  # an event's file that was cut short
            raise StoreError(
                f"The play's output could not be read ({error}).",
                fix="Free some space in vnuma's home: df -h",
            ) from None
        raise
    played.ok = str(status) == "successful" and rc == 0
    return played


# Each VM in a play costs a process: 25 MB in a small play, 60 MB in one of 200 VMs, whose parent is larger.
# So many stay below 4 GB.
MAX_FORKS = 56

# Two VMs of each host: one is measured, the next waits for its turn.
PER_HOST = 2


def play_order(vms: Iterable[Vm], *, together: bool) -> tuple[list[str], int]:
    """VM names in the order in which a play starts them, and how many it works on at once.

    VMs of different hosts first, then each host's second, and so on. With `together`, all at once as far as
    memory allows; otherwise two of each host.
    """
    by_host: dict[HostKey, list[str]] = {}
    for vm in vms:
        by_host.setdefault(vm.host_key, []).append(vm.name)
    rounds = chain.from_iterable(zip_longest(*by_host.values()))
    order = [name for name in rounds if name is not None]
    useful = len(order) if together else min(len(order), PER_HOST * len(by_host))
    return order, max(1, min(useful, MAX_FORKS))


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


# How often a launch that ended no further cell is repeated before the run gives up.
MAX_FRUITLESS_LAUNCHES = 3


def supervise(work: SupervisedRun, watch: Watch) -> RunOutcome:
    """Run every cell that is left and always restore every VM; then wait for other sites.

    Raises VmHeld when another process supervises the run, and NotAtBaseline as `stop_signals` does.
    """
    store, run, targets = work.store, work.run, work.targets
    claim_supervision(store, run)
    with (
        stop_signals(run, targets) as asked,
        store.kept_open(),
        remembered_secrets(),
    ):
        over = Oversight(work, watch, asked)
        store.while_away(over.show_store_away)
        return _to_its_end(over)


def _to_its_end(over: Oversight) -> RunOutcome:
    work, asked = over.work, over.asked
    output = ""
    failure: list[Exception] = []
    tokens: dict[str, int] = {}
    try:
        if not work.run.site:
            open_sites(work.store, work.run)
        output = _launch_until_done(over, tokens)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported once the VMs are safe
        failure.append(from_os_error(error) if isinstance(error, OSError) else error)
    lost = [error for error in failure if isinstance(error, LeaseLost)]
    ours, others = _still_ours(work, tokens, lost[0]) if lost else (work.targets, [])
    with heartbeat(work.store, work.run):
        restored, problems = restore_vms(replace(work, targets=ours), over.watch)
    problems += [*others, *failure]
    try:
        if not lost:
            followed = over.follow()
            lost = [problem for problem in followed if isinstance(problem, LeaseLost)]
            problems += followed
        shut = None if asked.count else _closed(work)
        progress = over.look() if lost else _close(over, problems)
    except Exception as error:
        raise naming_all([*problems, error]) from error
    return RunOutcome(progress, tuple(restored), tuple(problems), asked.count > 0, output, shut)


def restore_vms(work: SupervisedRun, watch: Watch = lambda _: None) -> tuple[list[Restored], list[Exception]]:
    """Restore every VM whose lease the run still has; a failure with one does not stop the others.

    `watch` gets the VM being restored, and each retry where vCenter does not answer. What it raises is among
    the problems, and prevents no restore.
    """
    store, run, targets, unshown = work.store, work.run, work.targets, list[Exception]()
    try:
        with store.read() as connection:
            ours = [row for row in leases.vms_of_run(connection, run.id) if row.name in targets]
            rows = [row for row in ours if leases.token_of(connection, row.vm_key, run.id)]
    except Exception as error:  # noqa: BLE001 - the VMs are named, whatever keeps them from being known
        lost = possibly_changed(", ".join(targets), error)
        first = error.fix if isinstance(error, VnumaError) else None
        lost.fix = f"{first or 'Fix the store.'} Otherwise: {restore_command(run)}"
        return [], [lost]

    inventory = work.inventory.anew()

    def restored(row: Vm) -> Restored | None:
        say = partial(_show_restoring, store, run, row.name, watch, unshown)
        say("")
        context = VmContext(store, run, work.study, row, targets[row.name], reached_by=inventory)
        try:
            return restore_target(context, say=say)
        except LeaseLost:
            # Another process that took the VM over meanwhile may have restored it.
            with suppress(StoreError), store.read() as connection:
                if leases.token_of(connection, row.vm_key, run.id) is None:
                    return None
            raise

    done, problems = restore_each([partial(restored, row) for row in rows])
    return [one for one in done if one], [*problems, *unshown[:1]]


def _show_restoring(
    store: Store, run: Run, name: str, watch: Watch, unshown: list[Exception], _words: str
) -> None:
    """Show that a VM is being restored. Failing to show it must not prevent the restore: a bug is added to
    `unshown`.
    """
    try:
        with suppress(StoreError, OSError):
            seen = progress_of_part(store, run)
            vms = (restoring(vm) if vm.name == name else vm for vm in seen.vms)
            watch(replace(seen, vms=tuple(vms)))
    except Exception as error:  # noqa: BLE001 - it is reported once the VMs are safe
        unshown.append(error)


def _still_ours(
    work: SupervisedRun, tokens: Mapping[str, int], lost: LeaseLost
) -> tuple[dict[str, Target], list[Exception]]:
    """The VMs that nobody else has taken since, and those that were taken and given up.

    Also an error for VMs that somebody else may be restoring: they may not be at their baseline.
    """
    run, targets = work.run, work.targets
    try:
        with work.store.read() as connection:
            rows = {row.name: row for row in leases.vms_of_run(connection, run.id) if row.name in targets}
            held = {name: leases.get_lease(connection, row.vm_key) for name, row in rows.items()}
    except Exception as error:  # noqa: BLE001 - the VMs are named, whatever keeps them from being known
        return {}, [possibly_changed(", ".join(targets), error)]
    leased = {name: lease for name, lease in held.items() if lease and lease.run_id == run.id}
    ours = {
        name
        for name, lease in leased.items()
        if lease.token == tokens.get(name) or restore_abandoned(rows[name], lease)
    }
    others: list[Exception] = [possibly_changed(name, lost) for name in leased if name not in ours]
    return {name: targets[name] for name in ours}, others


def _launch_until_done(over: Oversight, tokens: dict[str, int]) -> str:
    """Launch plays, limited in size and number, until every VM has no more cells.

    A VM that needs a person is left out of later ones. `tokens` are the fencing tokens by VM. Raises
    LeaseLost when another process has taken the run, StoreAway for a store that does not come back, and
    StoreUnwritable.
    """
    run, fruitless, output, going = over.work.run, 0, "", dict(over.work.targets)
    while going and fruitless < MAX_FRUITLESS_LAUNCHES and not over.asked.count:
        try:
            before = over.look().at(run.site)
            require_supervision(over.work.store, run)
            left = max((vm.total - vm.valid for vm in before.vms), default=0)
            # Attempts that a VM may take: its cells left, half as many retries, and the end.
            played = _launch(over, going, tokens, left + left // 2 + 2)
            output = played.output
            seen = over.look()
            over.watch(seen)
            after = seen.at(run.site)
            if after.run.stop_requested or any(vm.restore_failed for vm in after.vms):
                break
            if played.ok and all(vm.at_baseline for vm in after.vms if vm.name in going):
                break
            if played.unstored and not over.asked.count:
                raise played.unstored
        except StoreAway as error:
            fruitless += 1
            if fruitless == MAX_FRUITLESS_LAUNCHES:
                raise
            over.await_store(error)
            continue
        # Without those that failed for good in this launch; an earlier one's cause may be repaired by now.
        known = {None, *(vm.lasting for vm in before.vms)}
        for name in [vm.name for vm in after.vms if vm.lasting not in known]:
            going.pop(name, None)
        fruitless = 0 if after.done > before.done else fruitless + 1
    return output


def _launch(over: Oversight, going: Mapping[str, Target], tokens: dict[str, int], turns: int) -> Played:
    """Take over the VMs, adding to `tokens`, and launch one play on them."""
    store, run, study = over.work.store, over.work.run, over.work.study
    with store.read() as connection:
        digest = digest_of(connection, run, study)
    with private_folder(home_folder()) as folder, spare_descriptors():
        secrets = resolve_all([secret for target in going.values() for secret in target.secrets])
        remember(secrets)
        with heartbeat(store, run):
            tokens |= take_over_targets(store, run, study, going)
        versions = api_versions(going.values())
        # Ansible's own connection reaches SQL Server's client, and guests used by a shell.
        client, shells = study.workload.client_host, "shell" in study.workload.needs
        reached = [*([client] if client else []), *(going if shells else [])]
        hosts = write_play_inventory(folder, over.work.inventory.anew(), going, reached)
        logins = shared_logins()
        private = Private(
            over.work.url,
            str(home_folder()),
            run.name,
            secrets,
            tokens=dict(tokens),
            api_versions=versions,
            logins=str(logins.folder) if logins and logins.folder else None,
            inventory=str(hosts),
            study=digest,
        ).write(folder)
        over.play_folder = folder
        try:
            with store.read() as connection:
                rows = [vm for vm in leases.vms_of_run(connection, run.id) if vm.name in going]
            order, forks = play_order(rows, together=study.design.neighbours == "together")
            return play_study(run.name, order, forks, hosts, private, folder / "runner", turns, over.tick)
        finally:
            if over.asked.broken:  # it ended the play, whatever the runner met then
                raise over.asked.broken


def _closed(work: SupervisedRun) -> Closed | None:
    """Why the allowed hours permit no further cell now; None if they do, or none is left."""
    with work.store.read() as connection:
        past = attempts.lines_of_run(connection, work.run.id)
    left = progress_of_part(work.store, work.run).has_cells_left
    return closed(work.study, past, utc_now()) if left else None


def _close(over: Oversight, problems: list[Exception]) -> Progress:
    """Store the run's final state, or how the site's part ended."""
    store, run = over.work.store, over.work.run
    try:
        with store.write() as connection:
            if run.site:
                set_end(connection, run.id, run.site, end_of_part(problems))
            else:
                state = state_at_end(progress_of(connection, run.name), problems)
                runs.set_run_state(connection, run.id, state)
            runs.clear_supervisor(connection, run)
    except StoreError as error:
        problems.append(error)
    return over.look()
