"""Drivers are found in the stated order."""

from __future__ import annotations

from pathlib import Path

import pytest

from vnuma.errors import DriverMissing
from vnuma.sqlserver.client.driver import Driver, Machine, discover

MICROSOFT_18 = "ODBC Driver 18 for SQL Server"
MICROSOFT_17 = "ODBC Driver 17 for SQL Server"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VNUMA_ODBC_DRIVER", "ODBCSYSINI"):
        monkeypatch.delenv(name, raising=False)


def _machine(root: Path, *registered: str, wheel: Path | None = None) -> Machine:
    """A machine whose file system is that folder; nothing of the machine that runs the test is in it."""
    return Machine(registered, root, wheel, unpacked=root / "venv" / "odbc")


def _library(root: Path, place: str, content: bytes = b"") -> Path:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _wheel(root: Path) -> Path:
    for family in ("debian_ubuntu", "rhel", "suse"):
        for machine in ("x86_64", "arm64"):
            _library(root, f"wheel/libs/linux/{family}/{machine}/lib/libmsodbcsql-18.6.so.2.1")
            _library(root, f"wheel/libs/macos/{machine}/lib/libmsodbcsql.18.dylib")
    return root / "wheel"


def test_the_order_is_18_17_freetds_registered_freetds_library_wheel(tmp_path: Path) -> None:
    """With everything there, taking away one after the other shows the order."""
    library = _library(tmp_path, "usr/lib64/libtdsodbc.so", b"...freetds v1.4.10\0")
    wheel = _wheel(tmp_path)

    def found(*registered: str) -> Driver:
        return discover(machine=_machine(tmp_path, *registered, wheel=wheel))

    assert found("FreeTDS", MICROSOFT_17, MICROSOFT_18).name == MICROSOFT_18
    assert found("FreeTDS", MICROSOFT_17).name == MICROSOFT_17
    assert found("FreeTDS").name == "FreeTDS"
    assert found() == Driver(
        str(tmp_path / "usr/lib64/libtdsodbc.so"),
        "freetds",
        "1.4.10",
        str(tmp_path / "usr/lib64/libtdsodbc.so"),
    )
    library.unlink()
    assert found().kind == "msodbcsql18"
    assert found().version.startswith("18")


def test_freetds_of_this_environment_comes_before_the_machine_s(tmp_path: Path) -> None:
    """Set-up unpacks it where the machine's does not load; Microsoft's, installed later, is still first."""
    _library(tmp_path, "usr/lib64/libtdsodbc.so")
    own = _library(tmp_path, "venv/odbc/usr/lib/x86_64-linux-gnu/odbc/libtdsodbc.so")

    def found(*registered: str) -> str:
        return discover(machine=_machine(tmp_path, *registered)).name

    assert found("FreeTDS") == str(own)
    assert found("FreeTDS", MICROSOFT_17) == MICROSOFT_17


def test_without_any_driver_the_error_says_what_to_install(tmp_path: Path) -> None:
    """The message lists what was looked for; the fix names a package and a way without root."""
    with pytest.raises(DriverMissing) as caught:
        discover(machine=_machine(tmp_path))

    assert caught.value.what == "No ODBC driver for SQL Server found (looked for msodbcsql18, 17, FreeTDS)."
    assert caught.value.fix == "Debian: apt install tdsodbc. Without root: vnuma setup --odbc wheel."


def test_a_registered_driver_whose_library_is_gone_is_passed_over(tmp_path: Path) -> None:
    """odbcinst.ini outlives an uninstalled package; the next driver is taken."""
    _library(
        tmp_path, "etc/odbcinst.ini", f"[{MICROSOFT_18}]\nDriver={tmp_path}/gone.so\n[FreeTDS]\n".encode()
    )

    assert discover(machine=_machine(tmp_path, MICROSOFT_18, "FreeTDS")).name == "FreeTDS"


def test_versions_come_from_the_library(tmp_path: Path) -> None:
    """Microsoft puts the version in the file name, FreeTDS into the file."""
    library = _library(tmp_path, "opt/libmsodbcsql-18.3.so.3.1")
    _library(tmp_path, "usr/lib/x86_64-linux-gnu/odbc/libtdsodbc.so", b"\0freetds v1.3.17\0")
    _library(
        tmp_path,
        "etc/odbcinst.ini",
        f"[{MICROSOFT_18}]\nDriver={library}\n[FreeTDS]\nDriver=libtdsodbc.so\n".encode(),
    )
    machine = _machine(tmp_path, MICROSOFT_18, "FreeTDS")

    assert discover("msodbcsql18", machine=machine).version == "18.3.3.1"
    assert discover("freetds", machine=machine).version == "1.3.17"


def test_the_environment_names_one_and_an_inventory_overrides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VNUMA_ODBC_DRIVER replaces `auto`; what an inventory names comes before it."""
    machine = _machine(tmp_path, MICROSOFT_18, MICROSOFT_17, "FreeTDS")
    monkeypatch.setenv("VNUMA_ODBC_DRIVER", "FreeTDS")

    assert discover(machine=machine).kind == "freetds"
    assert discover("msodbcsql17", machine=machine).kind == "msodbcsql17"


def test_a_driver_named_but_absent_is_an_error(tmp_path: Path) -> None:
    """A wish that cannot be met is never met by another driver."""
    with pytest.raises(DriverMissing):
        discover("msodbcsql18", machine=_machine(tmp_path, "FreeTDS"))
    with pytest.raises(DriverMissing):
        discover(str(tmp_path / "none.so"), machine=_machine(tmp_path))


def test_a_path_names_its_kind(tmp_path: Path) -> None:
    """A library is known by its file name; one of neither kind is refused."""
    path = _library(tmp_path, "lib/libtdsodbc.so.0")

    assert discover(str(path), machine=_machine(tmp_path)).kind == "freetds"
    with pytest.raises(DriverMissing):
        discover(str(_library(tmp_path, "lib/libsqlite.so")), machine=_machine(tmp_path))
