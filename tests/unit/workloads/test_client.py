"""The machine that calls: what is said when nothing can be started there."""

from __future__ import annotations

import pytest

from vnuma.errors import MachineUnreachable
from vnuma.workloads.client import Client, client_host


def test_a_missing_ssh_is_named_with_what_to_install() -> None:
    """No traceback: the machine, the program, and the next step."""
    with (
        pytest.raises(MachineUnreachable, match=r"^load01 .*/nowhere/ssh") as caught,
        client_host(Client("load01", ("/nowhere/ssh", "-T", "load01", "exec python3"))),
    ):
        pass
    assert "openssh-client" in str(caught.value)
