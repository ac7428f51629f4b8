"""Supervise a run: play its cells, show progress, restore every VM at the end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from vnuma.domain.study.study import Study
from vnuma.engine.access.connections import api_versions, shared_logins
from vnuma.engine.access.context import VmContext, digest_of
from vnuma.engine.access.guest_shell import PlayedShell
from vnuma.engine.access.places import home_folder
from vnuma.engine.access.play_input import write_play_inventory
from vnuma.engine.access.private_folder import private_folder
from vnuma.engine.access.secrets import Private, remember, remembered_secrets, resolve_all
from vnuma.engine.access.target import Target
from vnuma.engine.lease.hours import Closed, closed
from vnuma.engine.lease.supervision import claim_supervision, heartbeat, require_supervision
from vnuma.engine.restore.restore import Restoration, possibly_changed, restore_abandoned
from vnuma.engine.restore.restore_vm import Restored
from vnuma.engine.run.oversight import Oversight, Watch, Work, stop_signals
from vnuma.engine.run.play import Played, PlayOrder, play_order, play_study, spare_descriptors
from vnuma.engine.run.progress import Progress, progress_of, progress_of_part, restoring
from vnuma.engine.run.run_outcome import RunOutcome, naming_all, restore_command, state_at_end, worst_of
from vnuma.engine.run.sites import end_of_part, open_sites
from vnuma.engine.run.start import take_over_targets
from vnuma.errors import LeaseLost, NotAtBaseline, StoreAway, StoreError, VnumaError, from_os_error
from vnuma.store import attempts, leases, runs, vms
from vnuma.store.open import Store
from vnuma.store.rows import Run
from vnuma.store.sites import set_end
from vnuma.store.types import utc_now

# How often a launch that ended no further cell is repeated before the run gives up.
MAX_FRUITLESS_LAUNCHES = 3


def supervise(work: Work, watch: Watch) -> RunOutcome:
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
        away = [problem for problem in problems if isinstance(problem, NotAtBaseline)]
        raise (naming_all(away) if away else worst_of([*problems, error])) from error
    return RunOutcome(progress, tuple(restored), tuple(problems), asked.count > 0, output, shut)


def restore_vms(work: Work, watch: Watch = lambda _: None) -> tuple[list[Restored], list[Exception]]:
    """Restore every VM whose lease the run still has; a failure with one does not stop the others.

    `watch` gets the VM being restored, and each retry where vCenter does not answer.
    """
    store, run, targets = work.store, work.run, work.targets
    restored: list[Restored] = []
    problems: list[Exception] = []
    try:
        with store.read() as connection:
            ours = [row for row in vms.vms_of_run(connection, run.id) if row.name in targets]
            rows = [row for row in ours if leases.token_of(connection, row.vm_key, run.id)]
    except Exception as error:  # noqa: BLE001 - the VMs are named, whatever keeps them from being known
        lost = possibly_changed(", ".join(targets), error)
        first = error.fix if isinstance(error, VnumaError) else None
        lost.fix = f"{first or 'Fix the store.'} Otherwise: {restore_command(run)}"
        return [], [lost]
    for row in rows:
        say = partial(_show_restoring, store, run, row.name, watch)
        say("")
        try:
            shell = PlayedShell(row.name, work.inventory)
            context = VmContext(store, run, work.study, row, targets[row.name], task_shell=shell)
            restored.append(Restoration(context, say=say).restore())
        except LeaseLost as error:
            if not _was_restored(store, run, row.vm_key):
                problems.append(error)
        except VnumaError as error:
            problems.append(error)
    return restored, problems


def _was_restored(store: Store, run: Run, vm_key: str) -> bool:
    """Whether the process that took the VM over meanwhile, often this run's own play, has restored it."""
    try:
        with store.read() as connection:
            return leases.token_of(connection, vm_key, run.id) is None
    except StoreError:
        return False


def _show_restoring(store: Store, run: Run, name: str, watch: Watch, _words: str) -> None:
    """Show that a VM is being restored. Failing to show it must not prevent the restore."""
    with suppress(StoreError, OSError):
        seen = progress_of_part(store, run)
        vms = (restoring(vm) if vm.name == name else vm for vm in seen.vms)
        watch(replace(seen, vms=tuple(vms)))


def _still_ours(
    work: Work, tokens: Mapping[str, int], lost: LeaseLost
) -> tuple[dict[str, Target], list[Exception]]:
    """The VMs that nobody else has taken since, and those that were taken and given up.

    Also an error for VMs that somebody else may be restoring: they may not be at their baseline.
    """
    run, targets = work.run, work.targets
    try:
        with work.store.read() as connection:
            rows = {row.name: row for row in vms.vms_of_run(connection, run.id) if row.name in targets}
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
            played = _launch(over, going, tokens, _turns_needed(before))
            output = played.output
            seen = over.look()
            over.watch(seen)
            after = seen.at(run.site)
            if _over(after, played, going):
                break
            if played.unstored and not over.asked.count:
                raise played.unstored
        except StoreAway as error:
            fruitless += 1
            if fruitless == MAX_FRUITLESS_LAUNCHES:
                raise
            over.await_store(error)
            continue
        going = _without_lasting(going, before, after)
        fruitless = 0 if after.done > before.done else fruitless + 1
    return output


def _launch(over: Oversight, going: Mapping[str, Target], tokens: dict[str, int], turns: int) -> Played:
    """Take over the VMs, adding to `tokens`, and launch one play on them."""
    store, run, study = over.work.store, over.work.run, over.work.study
    with store.read() as connection:
        digest = digest_of(connection, run, study)
    with private_folder(home_folder()) as folder, spare_descriptors():
        secrets = resolve_all(secret for target in going.values() for secret in target.secrets)
        remember(secrets)
        with heartbeat(store, run):
            tokens |= take_over_targets(store, run, study, going)
        versions = api_versions(going.values())
        hosts = write_play_inventory(folder, over.work.inventory, going, _reached(study, going))
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
            order = _play_order(store, run, study, going)
            return play_study(run.name, order, hosts, private, folder / "runner", turns, over.tick)
        finally:
            if over.asked.broken:  # it ended the play, whatever the runner met then
                raise over.asked.broken


def _reached(study: Study, going: Mapping[str, Target]) -> list[str]:
    """The hosts that Ansible's own connection reaches: SQL Server's client, and guests used by a shell."""
    client = study.workload.client_host
    return [*([client] if client else []), *(going if "shell" in study.workload.needs else [])]


def _without_lasting(going: Mapping[str, Target], before: Progress, after: Progress) -> dict[str, Target]:
    """The VMs without a new permanent failure in this launch; an earlier run's may be repaired by now."""
    known = {None, *(vm.lasting for vm in before.vms)}
    ended = {vm.name for vm in after.vms if vm.lasting not in known}
    return {name: target for name, target in going.items() if name not in ended}


def _play_order(store: Store, run: Run, study: Study, going: Collection[str]) -> PlayOrder:
    with store.read() as connection:
        rows = [vm for vm in vms.vms_of_run(connection, run.id) if vm.name in going]
    return play_order(rows, together=study.design.neighbours == "together")


def _turns_needed(progress: Progress) -> int:
    """Attempts that a VM may take in a play: its cells left, half as many retries, and the end."""
    left = max((vm.total - vm.valid for vm in progress.vms), default=0)
    return left + left // 2 + 2


def _over(progress: Progress, played: Played, going: Collection[str]) -> bool:
    """Whether nothing is left to launch: all VMs are restored, one cannot be, or a stop was requested."""
    if progress.run.stop_requested or any(vm.restore_failed for vm in progress.vms):
        return True
    return played.ok and all(vm.at_baseline for vm in progress.vms if vm.name in going)


def _closed(work: Work) -> Closed | None:
    """Why the allowed hours permit no further cell now; None if they do, or none is left."""
    with work.store.read() as connection:
        past = attempts.lines_of_run(connection, work.run.id)
    progress = progress_of_part(work.store, work.run)
    left = progress.done < progress.total or progress.unplanned
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
