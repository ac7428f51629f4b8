"""What a play's parent process does once, so that its workers need not.

Ansible forks a worker for each task, and what one worker has learnt dies with it. A worker inherits what
its parent knew: the open store, the parsed study, the types that pyVmomi has built, the ODBC driver.
"""

from __future__ import annotations

from vnuma.collector import collect_rarely
from vnuma.engine.access.connections import driver
from vnuma.engine.access.secrets import Private
from vnuma.engine.lease.context import keep_store, open_run
from vnuma.errors import VnumaError
from vnuma.vsphere.preload import load_types


def prepare() -> None:
    """In a play under `vnuma run`: open its store and read its run.

    Changes nothing and raises nothing: a store that cannot be used is for the step that needs it to tell.
    """
    try:
        private = Private.read()
        if private:
            load_types()
            driver()
            keep_store(private.store_url)
            open_run(private.run)
            collect_rarely()
    except VnumaError:
        return
