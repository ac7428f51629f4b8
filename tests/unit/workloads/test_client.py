"""The machine that calls: what is said when nothing can be started there, and which driver it uses."""

from __future__ import annotations

import pytest

from vnuma.engine.access.inventory import client_from
from vnuma.errors import DriverMissing, MachineUnreachable
from vnuma.sqlserver.client.driver import Driver
from vnuma.workloads.client import Client, Hello, client_host, driver_on

OWN = Driver("/venv/odbc/libtdsodbc.so", "freetds", "1.3", "/venv/odbc/libtdsodbc.so")


LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "/nowhere/python3"}


@pytest.mark.parametrize(
    ("client", "helps"),
    [
        (Client("load01", ("/nowhere/ssh", "-T", "load01", "exec python3")), "openssh-client"),
        (client_from("load01", LOCAL), "ansible_python_interpreter"),
    ],
    ids=["ssh", "Python"],
)
def test_a_program_that_is_missing_has_its_own_next_step(client: Client, helps: str) -> None:
    """Without SSH or Python no traceback: a host that Ansible reaches by its local connection is this one."""
    with pytest.raises(MachineUnreachable) as caught, client_host(client):
        pass

    assert helps in str(caught.value.fix)


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
