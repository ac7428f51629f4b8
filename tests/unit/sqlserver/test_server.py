"""Permissions that the study needs."""

from __future__ import annotations

import pytest

from vnuma.domain.vm.server import Permissions
from vnuma.errors import PrivilegeMissing
from vnuma.sqlserver.instance.server import require_state


@pytest.mark.parametrize(
    ("state", "performance"),
    [(True, None), (True, True), (False, True)],
    ids=["2019", "2022", "2022, narrow"],
)
def test_either_permission_is_enough(state: bool, performance: bool | None) -> None:
    """SQL Server 2022 has the narrower permission; older ones do not know it."""
    require_state(Permissions(state, performance, create_any_database=True, sysadmin=False), "sql16")


@pytest.mark.parametrize(
    ("performance", "grant"),
    [(None, "GRANT VIEW SERVER STATE"), (False, "GRANT VIEW SERVER PERFORMANCE STATE")],
)
def test_the_grant_named_is_one_that_the_version_knows(performance: bool | None, grant: str) -> None:
    """Granting the new name on an old version is a syntax error."""
    permissions = Permissions(False, performance, create_any_database=True, sysadmin=False)

    with pytest.raises(PrivilegeMissing) as caught:
        require_state(permissions, "sql16")

    assert str(caught.value.fix).startswith(grant)
