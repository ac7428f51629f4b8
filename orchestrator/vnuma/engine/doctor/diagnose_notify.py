"""Whether notifications of a run, and lines of the audit log, would arrive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from vnuma.engine.access.places import audit_file, store_url
from vnuma.engine.doctor.diagnosis import Diagnosis
from vnuma.engine.lease.audit_forward import forward, unsent
from vnuma.engine.lease.syslog import collector
from vnuma.engine.notify.channels import VARIABLE, ready_channels
from vnuma.engine.notify.message import TEST, event_line
from vnuma.engine.notify.notifier import Notifier
from vnuma.store.place import parse_place

_SUBJECT = "notify"


def diagnose_notify(inventory: Path, names: Iterable[str], *, send: bool) -> Iterator[Diagnosis]:
    """Each channel of these hosts: its secret, and with `send` whether it takes a test. Raises InputError."""
    channels, lacking = ready_channels(inventory, names)
    for words in lacking:
        yield Diagnosis("FAIL", _SUBJECT, words)
    if send and not channels and not lacking:
        yield Diagnosis("FAIL", _SUBJECT, f"the inventory has no {VARIABLE}", ("fix: see docs/notify.md",))
    for ready in channels:
        if not send:
            yield Diagnosis("ok", _SUBJECT, f"{ready.name}, not tested (--notify sends a test message)")
            continue
        notifier = Notifier([ready])
        words = "This is a test. No run started or ended, and no VM was changed."
        notifier.hear(event_line(TEST, None, simulated=False, words=words))
        notifier.wait()
        failed = notifier.failures()
        yield Diagnosis("FAIL" if failed else "ok", _SUBJECT, failed[0] if failed else f"{ready.name}: sent")


def diagnose_forwarding() -> Iterator[Diagnosis]:
    """Whether the audit log's lines reached the collector, if there is one. Raises InputError and OSError."""
    to = collector()
    if to is None:
        return
    log = audit_file(parse_place(store_url()))
    forward(log, now=True)
    words = unsent(log)
    yield Diagnosis("warn" if words else "ok", "audit", words or f"{to}: every line was sent")
