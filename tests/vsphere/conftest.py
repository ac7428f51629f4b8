"""Sessions at a lab's vCenter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.lab import LabHandle
from tests.vsphere.support import Login, vcenter_of
from vnuma.vsphere.connect import Session, connect


@pytest.fixture
def login() -> Iterator[Login]:
    """A factory of sessions that are logged out when the test ends."""
    with ExitStack() as open_sessions:

        def log_in(lab: LabHandle, **account: Any) -> Session:
            return open_sessions.enter_context(connect(vcenter_of(lab, **account)))

        yield log_in


@pytest.fixture
def session(shared_lab: LabHandle, login: Login) -> Session:
    """A session at the module's lab, for tests that only read."""
    return login(shared_lab)
