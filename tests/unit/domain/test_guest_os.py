"""Which Windows runs in a guest, from what Tools and SQL Server say of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.vm.server import WindowsFacts, windows_of_banner, windows_of_guest_id, windows_of_tools

TOOLS = (
    "architecture='X86' bitness='64' buildNumber='17763' distroName='Windows' distroVersion='10.0' "
    "familyName='Windows' kernelVersion='17763.2145' "
    "prettyName='Windows Server 2019 Standard, 64-bit (Build 17763.2145)'"
)


@pytest.mark.parametrize(
    ("detail", "full_name", "told"),
    [
        (TOOLS, "", WindowsFacts(17763, "Windows Server 2019 Standard")),
        ("", "Microsoft Windows Server 2022 (64-bit)", WindowsFacts(20348, "Microsoft Windows Server 2022")),
        (
            "",
            "Microsoft Windows Server 2012 R2 (64-bit)",
            WindowsFacts(9600, "Microsoft Windows Server 2012 R2"),
        ),
        (
            "",
            "Microsoft Windows Server 2016 or later (64-bit)",
            WindowsFacts(None, "Microsoft Windows Server 2016 or later"),
        ),
        ("familyName='Linux' prettyName='Ubuntu 22.04.3 LTS' buildNumber=''", "", None),
        ("", "Ubuntu Linux (64-bit)", None),
        ("", "", None),
        ("familyName='Windows'", "", WindowsFacts(None, None)),
    ],
)
def test_tools_tell_build_and_edition(detail: str, full_name: str, told: WindowsFacts | None) -> None:
    """As far as reported; another system is not Windows."""
    assert windows_of_tools(detail, full_name) == told


@pytest.mark.parametrize(
    ("banner", "told"),
    [
        (
            "Developer Edition on Windows Server 2019 Standard 10.0 <X64> (Build 17763: ) (Hypervisor)",
            WindowsFacts(17763, "Windows Server 2019 Standard"),
        ),
        (
            "Standard Edition (64-bit) on Windows NT 6.3 <X64> (Build 9600: ) (Hypervisor)",
            WindowsFacts(9600, "Windows NT"),
        ),
        ("Developer Edition (64-bit) on Linux (Ubuntu 20.04.6 LTS) <X64>", None),
        ("", None),
    ],
)
def test_sql_servers_banner_tells_windows(banner: str, told: WindowsFacts | None) -> None:
    """Edition and build are in @@VERSION, as is SQL Server on Linux."""
    assert windows_of_banner(banner) == told


@pytest.mark.parametrize(
    ("guest_id", "build"),
    [
        ("windows2019srv_64Guest", 17763),
        ("windows2019srvNext_64Guest", 20348),
        ("windows2022srvNext_64Guest", 26100),
        ("windows8Server64Guest", 9200),
        ("windows9Server64Guest", None),
        ("windows2019srvnext-64", 20348),
        ("windows9srv-64", None),
    ],
)
def test_a_configured_system_names_a_windows_server(guest_id: str, build: int | None) -> None:
    """As the API and a .vmx file write it; 2016 or later is several builds."""
    told = windows_of_guest_id(guest_id)

    assert told
    assert told.build == build
    assert windows_of_guest_id("ubuntu64Guest") is None


@given(st.text())
def test_no_text_breaks_them(text: str) -> None:
    """What cannot be understood is not known."""
    for told in (windows_of_tools(text), windows_of_tools("", text), windows_of_banner(text)):
        assert told is None or told.caption is None or told.caption in text
