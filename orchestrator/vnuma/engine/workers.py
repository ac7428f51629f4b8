"""What a play's parent process does once, so that its workers need not.

Ansible forks a worker for each task, and what one worker has learnt dies with it. A worker inherits what
its parent knew: the open store, the parsed study, the statements that SQLAlchemy has compiled, and the
types that pyVmomi has built, the ODBC driver.
"""

from __future__ import annotations

from vnuma.engine.claim import next_cell, why_no_more
from vnuma.engine.connections import driver
from vnuma.engine.context import keep_store, open_run, vm_of_run
from vnuma.engine.secrets import Private
from vnuma.errors import VnumaError
from vnuma.store import attempts, leases
from vnuma.vsphere.preload import load_types


def prepare() -> None:
    """In a play under `vnuma run`: open its store, read its run, and put the questions of every step once.

    Changes nothing and raises nothing: a store that cannot be used is for the step that needs it to tell.
    """
    try:
        private = Private.read()
        if private:
            load_types()
            driver()
            _ask_once(private)
    except VnumaError:
        return


def _ask_once(private: Private) -> None:
    """For one VM, and with nothing changed: the statements are the same for every VM."""
    keep_store(private.store_url)
    store, run, study = open_run(private.run)
    for name, token in list(private.tokens.items())[:1]:
        vm = vm_of_run(store, run, name)
        why_no_more(store, run, study, vm)
        next_cell(store, run, study, vm)
        with store.read() as connection:
            attempts.changes_of_vm(connection, vm.id)
            leases.require_current(connection, vm.vm_key, token)
        with store.write() as connection:
            attempts.rehearse(connection)
