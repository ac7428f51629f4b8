"""The newest reading of each vCenter, kept so that the next check reads only what changed since.

It is a snapshot beside the store. One that is lost, or cannot be read, costs a full reading and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vnuma import __version__, assets
from vnuma.domain.vm.estate import Estate
from vnuma.errors import InputError
from vnuma.estate import snapshot
from vnuma.vsphere.vcenter import VCenter

FULL_EVERY = timedelta(days=7)
"""After that long every VM is read in full again, whatever vCenter says of changes."""


def last_reading(vcenter: VCenter, now: datetime | None = None) -> Estate | None:
    """The newest reading by this account and this version; None where the next one has to be full."""
    file = _file(vcenter)
    try:
        document = snapshot.read_json(file)
        if not isinstance(document, dict) or document.get("written_by") != __version__:
            return None
        (estate,) = snapshot.from_document(document, file)
        full_at = datetime.fromisoformat(estate.full_at)
    except (InputError, ValueError):
        return None
    age = (now or datetime.now(UTC)) - full_at
    return estate if timedelta() <= age < FULL_EVERY else None


def keep(vcenter: VCenter, estate: Estate) -> None:
    """Keep a reading for the next check. Raises InputError where it cannot be written."""
    file = _file(vcenter)
    new = file.with_suffix(f".{os.getpid()}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        snapshot.save([estate], new)
        new.replace(file)
    except OSError as error:
        raise InputError(
            f"The reading cannot be kept in {file.parent} ({error.strerror}).",
            fix="Name a folder that can be written: VNUMA_HOME=FOLDER",
        ) from error
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def _file(vcenter: VCenter) -> Path:
    """One file for each vCenter and account: another account may see other VMs."""
    whose = hashlib.sha256(vcenter.account.encode()).hexdigest()[:12]
    name = re.sub(r"[^A-Za-z0-9.-]", "_", vcenter.host)[:60]
    return assets.home() / "readings" / f"{name}-{whose}.json"
