"""How many cores an edition of SQL Server or Windows uses in a virtual machine, and how certain that is.

SQL Server: "Compute capacity limits by edition of SQL Server" and "Editions and supported features of SQL
Server 2025" (learn.microsoft.com). For virtual machines Microsoft says that logical processors are limited,
not sockets; published error logs of VMware guests show that sockets do count (Express with 8 sockets of one
core used one). Both readings are given where they differ.

Web's limit, Standard's before 2016 and Windows' socket limits are general knowledge here: low confidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vnuma.domain.topology.prediction import Confidence
from vnuma.domain.topology.topology import Topology
from vnuma.words.plain_text import counted

UNLIMITED = 10_000
SQL_2014, SQL_2016, SQL_2025 = 12, 13, 17
SERVER_CAL_CORES = 20

SQL_2022_CU11 = (16, 0, 4105)
MOST_IN_A_NODE = 64
"""Most logical processors in a NUMA node with which that build and later ones still start (Broadcom KB
374613).
"""


@dataclass(frozen=True)
class SqlLimit:
    """An edition's limit: the lesser of so many sockets and so many cores."""

    edition: str
    sockets: int = UNLIMITED
    cores: int = UNLIMITED
    buffer_pool_mb: int | None = None
    confidence: Confidence = "high"

    @property
    def limited(self) -> bool:
        """Whether the edition limits CPUs at all."""
        return self.cores < UNLIMITED

    def __str__(self) -> str:
        """As text: the lesser of 4 sockets and 24 cores."""
        if self.sockets >= UNLIMITED:
            return f"{self.cores} cores" if self.limited else "no limit of its own"
        return f"the lesser of {counted(self.sockets, 'socket')} and {counted(self.cores, 'core')}"


@dataclass(frozen=True)
class Usable:
    """Cores that are used; `otherwise` is the other reading's number if the documents allow two."""

    cores: int
    confidence: Confidence
    because: str
    otherwise: int | None = None


def most_in_a_node(sql_major: int) -> int:
    """Most vCPUs in a node with which SQL Server of this major version starts, with all its updates."""
    return MOST_IN_A_NODE if sql_major >= SQL_2022_CU11[0] else UNLIMITED


def sql_limit(edition: str, major: int) -> SqlLimit:
    """The limit of an edition, named as in SERVERPROPERTY('Edition') or in one word; `major` is 13 for 2016,
    15 for 2019, 16 for 2022, 17 for 2025.
    """
    words = edition.lower()
    if "express" in words:
        return SqlLimit("Express", 1, 4, 1410 if major >= SQL_2016 else 1024)
    if "web" in words:
        return SqlLimit("Web", 4, 16, 64 * 1024, "low")
    if "standard" in words:  # Standard Developer (2025) has Standard's limits
        if major >= SQL_2025:
            return SqlLimit("Standard", 4, 32, 256 * 1024)
        if major >= SQL_2016:
            return SqlLimit("Standard", 4, 24, 128 * 1024)
        return SqlLimit("Standard", 4, 16, (128 if major >= SQL_2014 else 64) * 1024, "low")
    if "enterprise" in words and not re.search(r"core|eval|developer", words):
        return SqlLimit("Enterprise (Server+CAL)", UNLIMITED, SERVER_CAL_CORES)
    return SqlLimit("Enterprise" if "enterprise" in words else "Developer or Evaluation")


def missing_edition(edition: str, major: int) -> str:
    """Why this release of SQL Server has no such edition, in words; empty if it has.

    "Editions and supported features of SQL Server 2025" (learn.microsoft.com) has no Web edition any more.
    """
    is_web = "web" in edition.lower() and major >= SQL_2025
    return "SQL Server 2025 has no Web edition; 2022 is the last that has one" if is_web else ""


def has_resource_governor(edition: str, major: int) -> bool:
    """Whether the edition has Resource Governor: Enterprise and equivalent ones, Standard since 2025
    ("Editions and supported features of SQL Server 2025", learn.microsoft.com).
    """
    name = sql_limit(edition, major).edition
    return name not in {"Express", "Web"} and (name != "Standard" or major >= SQL_2025)


def usable_by_sql(limit: SqlLimit, shape: Topology) -> Usable:
    """Cores that SQL Server uses of this shape."""
    by_sockets = min(min(shape.sockets, limit.sockets) * shape.cores_per_socket, limit.cores)
    by_cores = min(shape.vcpus, limit.cores)
    if not limit.limited:
        return Usable(shape.vcpus, "high", f"{limit.edition} has no limit of its own")
    if by_sockets == by_cores:
        return Usable(by_sockets, limit.confidence, _limit_words(limit))
    return Usable(
        by_sockets,
        "low",
        (
            f"{_limit_words(limit)}; according to Microsoft's text sockets do not count in a VM, according "
            "to error logs they do"
        ),
        by_cores,
    )


def _limit_words(limit: SqlLimit) -> str:
    return f"{limit.edition} uses {'up to ' if limit.sockets >= UNLIMITED else ''}{limit}"


# The first matching name decides.
_WINDOWS_SOCKETS = (
    (r"server", 64),
    (r"pro for workstations|enterprise|education", 4),
    (r"\bpro\b|professional", 2),
    (r"\bhome\b", 1),
)


def windows_sockets(caption: str) -> int | None:
    """Most sockets that this Windows uses, by its caption; None: unknown. General knowledge."""
    words = caption.lower()
    if "windows" not in words:
        return None
    if "essentials" in words:
        return 2
    return next((sockets for pattern, sockets in _WINDOWS_SOCKETS if re.search(pattern, words)), None)


MOST_CLIENT_SOCKETS = 4
"""Of the editions of client Windows, none uses more."""


def is_windows_client(caption: str) -> bool:
    """Whether this Windows is a client's: Windows 7 to 11, whatever its edition."""
    return bool(re.search(r"\bwindows (7|8|8\.1|10|11)\b", caption, re.IGNORECASE))


def usable_by_windows(caption: str, shape: Topology) -> Usable | None:
    """Cores that Windows uses of this shape; None if its limit is unknown."""
    sockets = windows_sockets(caption)
    if sockets is None:
        return None
    cores = min(shape.sockets, sockets) * shape.cores_per_socket
    return Usable(cores, "low", f"{caption} uses up to {sockets} sockets")
