"""Answers of a vCenter that turns hostile once we are logged in: the lab's own, changed on their way."""

from __future__ import annotations

import atexit
import random
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from tests.hostile.mutate import mutated
from tests.support.lab import start_lab
from tests.support.proxy import Proxy, proxy_before
from tools.fuzz.tried import Failed, tried
from vnuma import lab
from vnuma.vsphere.connect import Session, VCenter, connect
from vnuma.vsphere.estate import read_estate
from vnuma.vsphere.read import find_vm, read_vm, read_vm_on_host
from vnuma.vsphere.run_mark import read_mark
from vnuma.vsphere.surroundings import read_surroundings
from vnuma.vsphere.wait import wait_for


def answer(dice: random.Random, _folder: Path) -> str:
    """One reader, each of whose answers is changed or not."""
    session, proxy = _session()
    shown: list[str] = []

    def alter(body: bytes) -> bytes:
        if dice.random() < 0.3:
            return body
        shown.append(mutated(body.decode(), dice))
        return shown[-1].encode("utf-8", "surrogatepass")

    def read() -> None:
        proxy.alter = alter
        try:
            _read(session, dice)
        finally:
            proxy.alter = lambda body: body

    try:
        return tried("", read)
    except Failed as failure:
        raise Failed("\n".join(shown)) from failure.__cause__


def _read(session: Session, dice: random.Random) -> None:
    ref = session.vm(_moid())
    dice.choice(
        (
            lambda: read_vm(session, ref),
            lambda: read_vm_on_host(session, ref),
            lambda: read_mark(session, ref),
            lambda: read_surroundings(session, ref),
            lambda: read_estate(session),
            lambda: find_vm(session, "sql16"),
            lambda: wait_for(session, ref, ("name",), lambda seen: "name" in seen, 0.5, "it was not seen"),
        )
    )()


@cache
def _session() -> tuple[Session, Proxy]:
    after = ExitStack()
    atexit.register(after.close)
    folder = Path(after.enter_context(tempfile.TemporaryDirectory()))
    running = start_lab(lab.ready_program(), folder / "lab", "paper", {})
    after.callback(running.stop)
    proxy = after.enter_context(proxy_before(running, folder))
    end = running.vcenter
    there = VCenter(end.host, end.user, end.password, port=proxy.port, ca_file=proxy.ca_file)
    return after.enter_context(connect(there)), proxy


@cache
def _moid() -> str:
    return str(find_vm(_session()[0], "sql16")._GetMoId())
