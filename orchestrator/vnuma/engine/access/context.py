"""What every step of a run needs to know about the run and its VM."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.vm.change import Edit
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.guest_shell import run_at
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.locking import patience_s, vm_lock
from vnuma.engine.access.places import home_folder, store_url
from vnuma.engine.access.secrets import Private, resolve
from vnuma.engine.access.target import Target, is_shaped
from vnuma.errors import InputError, VnumaError
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.store import facts, leases, runs
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Fact, Run, Vm
from vnuma.store.rows import Study as StoredStudy
from vnuma.vsphere.connect import Session, connect
from vnuma.workloads.shell import Shell

try:
    import pwd
except ImportError:  # Windows, where nothing is leased
    pwd = None  # type: ignore[assignment]


@dataclass(frozen=True)
class VmContext:
    """One VM in one run. `token` is this play's fencing token for the VM, 0 before it is taken over.

    `made` lists the changes of steps with this context, in order; their journals append to it.
    """

    store: Store
    run: Run
    study: Study
    vm: Vm
    target: Target
    token: int = 0
    home: Path = field(default_factory=home_folder)
    made: list[Edit] = field(default_factory=list)
    task_shell: Shell | None = None
    """The guest's shell by the connection of a play's task."""
    reached_by: Inventory | None = None
    """The inventory that a restore uses in place of the play's and the run's."""
    vm_only: bool = False
    """Whether a restore leaves what programs of the study made: their machine may be gone."""

    def fence(self) -> None:
        """Raise LeaseLost when the VM's lease has moved to another token."""
        self.store.ask(leases.require_current, self.vm.vm_key, self.token)

    def last_fact(self, scope: str) -> Fact | None:
        """The VM's latest fact of that scope in this run."""
        return self.store.ask(facts.last_of_vm, self.run.id, self.vm.vm_key, scope)

    @contextmanager
    def vsphere(self) -> Iterator[Session]:
        """A vSphere session for one step, with the VM locked and the token checked."""
        with self.locked():
            self.fence()
            with connect(vcenter(self.target)) as session:
                yield session

    def locked(self, say: Callable[[str], None] = lambda _: None) -> AbstractContextManager[None]:
        """Hold the VM's lock; waits for another step as long as one may take. Raises as `vm_lock` does."""
        wait_s = patience_s(self.study.power, self.study.workload.timeout_s)
        return vm_lock(self.home, self.vm.vm_key, self.vm.name, wait_s=wait_s, say=say)

    @property
    def inventory(self) -> Inventory:
        """The given inventory, or else this play's, or else the run's."""
        if self.reached_by:
            return self.reached_by
        private = Private.read()
        return Inventory(Path((private.inventory if private else self.run.inventory) or "inventory"))

    def shell(self) -> Shell:
        """The guest's shell, as root; outside a play, each script is a play of its own."""
        return self.task_shell or partial(run_at, self.vm.name, self.inventory)

    def workload_shell(self) -> Shell:
        """The shell where the workload's programs run: its client's, or the guest's.

        From here on `masked` knows those of the target's secrets that can be read here: programs need none.
        """
        for secret in self.target.secrets:
            with suppress(VnumaError):
                resolve(secret)
        client = self.study.workload.client_host
        return partial(run_at, client, self.inventory) if client else self.shell()

    def sql(self) -> SqlServer:
        """How to reach this VM's SQL Server."""
        return sql_server(self.target)


def open_run(name: str, url: str | None = None) -> tuple[Store, Run, Study]:
    """Open the store and find one of this site's runs by name; `latest` is the newest.

    Raises StoreError, and InputError for an unknown run or an imported one.
    """
    store = _opened(store_url(url))
    with store.read() as connection:
        run = runs.get_run(connection, name)
        runs.refuse_imported(connection, run.id)
        return store, run, _own_study(run, runs.get_study(connection, run.study_id))


def _opened(address: str) -> Store:
    return _kept_stores.get(address) or open_store(address, create=False)


def _own_study(run: Run, stored: StoredStudy) -> Study:
    """The study that this play's supervisor has started. Raises InputError for another one."""
    private = Private.read()
    if private and private.study and private.study != stored.digest:
        raise study_altered(run)
    return parse_study(stored.yaml, f"study of {run.name}")


def study_of(connection: Connection, run: Run) -> Study:
    """The study as stored with the run."""
    return parse_study(runs.get_study(connection, run.study_id).yaml, f"study of {run.name}")


def digest_of(connection: Connection, run: Run, study: Study) -> str:
    """The hash of the study's text, which is still this study's. Raises InputError otherwise."""
    if study_of(connection, run) != study:
        raise study_altered(run)
    return runs.get_study(connection, run.study_id).digest


def study_altered(run: Run) -> InputError:
    """The store has another text than the one that the run was started with."""
    return InputError(
        f"The study of {run.name} in the store is another one than {run.name} was started with: "
        "somebody altered the store.",
        fix="Find out who can write to the store. vnuma audit verify compares the audit log with it. "
        "Then start a new run.",
    )


_kept_stores: dict[str, Store] = {}


def keep_run(private: Private) -> Store:
    """Open a play's store once for this process and its forks, which share no connection.

    Asks each step's first question once, so that no worker parses the study or compiles the question again.
    """
    store = _kept_stores[private.store_url] = open_store(private.store_url)
    for name in [*private.tokens][:1]:
        _at_work(store, private.run, name)
    return store


def vm_of_run(store: Store, run: Run, target: Target) -> Vm:
    """The run's VM with the target's name. Raises InputError when there is none, and as `refuse_unshaped`."""
    with store.read() as connection:
        vm = leases.vm_named(connection, run.id, target.name)
        names = [row.name for row in leases.vms_of_run(connection, run.id)] if vm is None else []
    if vm is None:
        raise InputError(
            f"{run.name} has no VM named {target.name} (it has: {', '.join(names)}).",
            fix="vnuma status lists them.",
        )
    refuse_unshaped(run, vm, target)
    return vm


def refuse_unshaped(run: Run, vm: Vm, target: Target) -> None:
    """Raise InputError where only one of run and inventory has a vCenter for it.

    A missing variable must not turn a VM into a machine that is only reached by SSH.
    """
    known, now = is_shaped(vm.vm_key), target.vcenter is not None
    if known is not now:
        words = {True: "a VM in a vCenter", False: "a machine without one"}
        raise InputError(
            f"{vm.name} is {words[known]} in {run.name}, but {words[now]} in this inventory.",
            fix="Correct its vnuma_vcenter in the inventory.",
        )


def open_context(
    name: str, target: Target, token: int | None = None, shell: Shell | None = None
) -> VmContext:
    """The context of one VM in a run, for the play with this fencing token.

    Its run is as seen by the process that supervises this VM: the site's part, if a site has it. Raises as
    `open_run` and `vm_of_run` do.
    """
    store = _opened(store_url(None))
    found = _at_work(store, name, target.name)
    if found is None:
        _, known, _ = open_run(name)
        vm_of_run(store, known, target)
        return open_context(known.name, target, token, shell)  # `name` is `latest` or a number
    run, study, vm = found
    refuse_unshaped(run, vm, target)
    return VmContext(store, run, study, vm, target, token or 0, task_shell=shell)


def _at_work(store: Store, name: str, vm: str) -> tuple[Run, Study, Vm] | None:
    """As `vm_at_work`, with the study parsed. Raises as `_own_study`."""
    found = store.ask(leases.vm_at_work, name, vm)
    return found and (found[0], _own_study(*found[:2]), found[2])


def supervisor_token(name: str) -> int | None:
    """The token that this play's supervisor took for the VM; None without a supervisor."""
    private = Private.read()
    return private.tokens.get(name) if private else None


def holder() -> str:
    """Who holds a lease, as USER@HOST: the process's real user, by number where it has no name."""
    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return f"{user}@{os.uname().nodename}"
