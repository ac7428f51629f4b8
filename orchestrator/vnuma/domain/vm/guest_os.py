"""Which Windows runs in a guest, from VMware Tools or SQL Server's banner."""

from __future__ import annotations

import re
from functools import lru_cache

from vnuma.domain.vm.server import WindowsFacts

TOOLS_KEY = "guestInfo.detailed.data"
"""The extraConfig key with VMware Tools' (11 and later) description of the guest."""

_FIELD = re.compile(r"(\w+)='([^']*)'")
_BANNER = re.compile(r" on (Windows.+?) [\d.]+ <\w+> \(Build (\d+)")


@lru_cache(1024)  # many VMs have the same guest
def windows_of_tools(detail: str, full_name: str = "") -> WindowsFacts | None:
    """From the text under `TOOLS_KEY`, else from Tools' system name, which has no build.

    `buildNumber='17763' familyName='Windows' prettyName='Windows Server 2019 Standard, 64-bit (Build ...)'`.
    None: unknown, or not Windows.
    """
    told = dict(_FIELD.findall(detail))
    name = told.get("prettyName") or full_name
    if "windows" not in (told.get("familyName") or name).lower():
        return None
    build = told.get("buildNumber", "")
    return WindowsFacts(
        build=int(build) if build.isdecimal() and len(build) <= 9 else None, caption=_caption(name)
    )


def windows_of_banner(version_text: str) -> WindowsFacts | None:
    """From SQL Server's @@VERSION: `... on Windows Server 2019 Standard 10.0 <X64> (Build 17763: )`.

    None for SQL Server on Linux, or another text.
    """
    found = _BANNER.search(version_text)
    return WindowsFacts(build=int(found[2]), caption=found[1]) if found else None


def _caption(name: str) -> str | None:
    """`Windows Server 2019 Standard` of `Windows Server 2019 Standard, 64-bit (Build 17763.2145)`."""
    return re.split(r",| \(", name)[0].strip() or None
