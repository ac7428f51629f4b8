"""The machine that calls: what is said when nothing can be started there, and which driver it uses."""

from __future__ import annotations

import pytest

from vnuma.engine.access.inventory import client_from
from vnuma.errors import DriverMissing, MachineUnreachable
from vnuma.sqlserver.client.driver import Driver
from vnuma.workloads.client import Client, Hello, client_host, driver_on

OWN = Driver("/venv/odbc/libtdsodbc.so", "freetds", "1.3", "/venv/odbc/libtdsodbc.so")


def test_a_missing_ssh_is_named_with_what_to_install() -> None:
    """No traceback: the machine, the program, and the next step."""
    with (
        pytest.raises(MachineUnreachable) as caught,
        client_host(Client("load01", ("/nowhere/ssh", "-T", "load01", "exec python3"))),
    ):
        pass
    assert "openssh-client" in str(caught.value.fix)


def test_a_missing_python_on_this_machine_is_not_taken_for_a_missing_ssh() -> None:
    """A host that Ansible reaches by its local connection is this machine."""
    variables = {"ansible_connection": "local", "ansible_python_interpreter": "/nowhere/python3"}
    with (
        pytest.raises(MachineUnreachable) as caught,
        client_host(client_from("load01", variables)),
    ):
        pass
    assert "ansible_python_interpreter" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("why", "helps"),
    [
        ("libodbc.so.2: cannot open shared object file", "apt install unixodbc"),
        ("No module named 'pyodbc'", "pip install pyodbc"),
    ],
)
def test_what_pyodbc_lacks_there_is_named(why: str, helps: str) -> None:
    """Its library is not a pip package."""
    hello = Hello("3.11.2", 4, (), (), why)

    with pytest.raises(DriverMissing) as caught:
        driver_on(Client("load01", ("ssh",)), hello, OWN)

    assert why in caught.value.what
    assert helps in str(caught.value.fix)


def test_a_driver_unpacked_for_this_python_is_this_machine_s_alone() -> None:
    """Under another name this machine has it too; another machine has only what it reports."""
    hello = Hello("3.11.2", 4, (), ("/usr/lib/odbc/libtdsodbc.so",), None, "1.4")

    assert driver_on(client_from("load01", {"ansible_connection": "local"}), hello, OWN) == OWN
    assert driver_on(Client("load01", ("ssh",)), hello, OWN).name == "/usr/lib/odbc/libtdsodbc.so"
