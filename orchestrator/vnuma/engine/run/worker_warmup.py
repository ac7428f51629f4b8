"""What a play's parent process prepares once for its workers.

Ansible forks a worker for each task, which inherits the parent's open store, parsed study, pyVmomi types and
ODBC driver.
"""

from __future__ import annotations

from vnuma.collector import collect_rarely
from vnuma.engine.access.connections import driver
from vnuma.engine.access.secrets import Private
from vnuma.engine.lease.context import keep_store, open_run
from vnuma.errors import VnumaError
from vnuma.vsphere.preload import load_types


def prepare() -> None:
    """In a play under `vnuma run`, open its store and read its run.

    Changes nothing and raises nothing: the step that needs an unusable store reports it.
    """
    try:
        private = Private.read()
        if private:
            load_types()
            driver()
            keep_store(private.store_url)
            store, _, _ = open_run(private.run)
            store.disconnect()  # the play's parent has no further use for it, each worker has
            store.connect_in_children()
            collect_rarely()
    except VnumaError:
        return
