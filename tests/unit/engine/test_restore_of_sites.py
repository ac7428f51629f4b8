"""`vnuma restore` where VMs belong to sites."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.build import new_run, new_vm
from tests.support.stores import new_store
from vnuma.engine.restore.restore_leftovers import RestoreRequest, restore_leftovers, show_leftovers
from vnuma.errors import NotAtBaseline
from vnuma.store import sites
from vnuma.store.open import Store


@pytest.fixture
def left(tmp_path: Path) -> Store:
    """A run whose process at site-b died, and left a VM of the name that the controller's has too."""
    store = new_store(tmp_path / "vnuma.db")
    run = new_run(store)
    with store.write() as connection:
        sites.add_sites(connection, run.id, ["site-b"])
    new_vm(store, run, key="vc-b/1", name="sql-b", node="site-b")
    return store


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (RestoreRequest(), True),
        (RestoreRequest(run="quick.1"), True),
        (RestoreRequest(site="site-c"), False),
    ],
    ids=["everything", "its run", "another site"],
)
def test_a_vm_of_a_site_is_restored_there(left: Store, wanted: RestoreRequest, named: bool) -> None:
    """The controller says which site may have a changed VM; another site has nothing to do with it."""
    report = restore_leftovers(left, wanted)

    told = [problem.what for problem in report.problems if isinstance(problem, NotAtBaseline)]
    assert [("sql-b" in what, "site-b" in what) for what in told] == [(True, True)] * named
    assert len(show_leftovers(left, wanted)) == named
    assert report.done == []
