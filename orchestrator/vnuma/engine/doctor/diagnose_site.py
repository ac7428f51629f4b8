"""What a site's node has of what a study needs: asked by the controller, looked at on the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vnuma import __version__
from vnuma.domain.vm.plain_text import signed_seconds
from vnuma.engine.access.places import store_url
from vnuma.engine.access.target import Target
from vnuma.engine.doctor.diagnose import diagnose
from vnuma.engine.doctor.diagnosis import Diagnosis
from vnuma.engine.mesh.control import ask_node
from vnuma.engine.mesh.request import (
    EQUAL_VERSIONS,
    FAR_S,
    asked_about,
    bare_request,
    error_from,
    node_refusals,
    request_about,
    seconds_ahead,
    send_refusals,
)
from vnuma.errors import InputError, StoreError, VnumaError
from vnuma.store.open import open_for_reading
from vnuma.store.place import parse_place


def diagnose_site(
    control: Path, node: str, targets: Mapping[str, Target], inventory: Path
) -> list[Diagnosis]:
    """Have a node look at itself, its store, and these VMs from there. Passwords travel as references."""
    lacking = [Diagnosis.failed(subject, error) for subject, error in send_refusals(node, targets)]
    request = bare_request(node) if lacking else request_about(node, targets, inventory)
    try:
        answer = ask_node(control, node, request | {"ask": "doctor"})
        if "error" in answer:
            return [Diagnosis.failed("node", error_from(node, answer["error"])), *lacking]
        found = [Diagnosis(**(item | {"more": tuple(item["more"])})) for item in answer["checks"]]
    except VnumaError as error:
        return [Diagnosis.failed("mesh", error), *lacking]
    except (KeyError, TypeError):
        return [
            Diagnosis("FAIL", "mesh", f"{node} answers in the format of another version of vnuma", _EQUAL)
        ]
    return [Diagnosis("ok", "mesh", f"{node} carried out signed work over TLS"), *found, *lacking]


def answer_doctor(request: Mapping[str, Any]) -> dict[str, Any]:
    """The node's side: what was asked, looked at from here. Changes nothing."""
    return {"checks": [asdict(item) for item in _looked_at(request)]}


def _looked_at(request: Mapping[str, Any]) -> Iterator[Diagnosis]:
    yield Diagnosis("ok", "version", f"vnuma {__version__}, as on the controller")
    yield _clock(seconds_ahead(request))
    yield _store()
    try:
        with asked_about(request) as (hosts, targets):
            refused = [Diagnosis.failed(subject, error) for subject, error in node_refusals(targets)]
            yield from refused or diagnose(targets, hosts)
    except InputError as error:
        yield Diagnosis.failed("request", error)


_EQUAL = (f"fix: {EQUAL_VERSIONS}",)


def _clock(ahead: float) -> Diagnosis:
    what = f"{signed_seconds(ahead)} against the controller's, transport included"
    if abs(ahead) <= FAR_S:
        return Diagnosis("ok", "clock", what)
    more = (
        "times of samples and heartbeats are the node's; far apart, a run counts as dead",
        "fix: set up NTP",
    )
    return Diagnosis("FAIL", "clock", what, more)


def _store() -> Diagnosis:
    """The node's own, of which only the place is shown; a file there would be another store."""
    try:
        place = parse_place(store_url())
        if place.is_sqlite:
            more = ("fix: set VNUMA_STORE in the node's node.env, then restart its daemon",)
            return Diagnosis(
                "FAIL", "store", f"{place} is a file on the node: sites share one PostgreSQL", more
            )
        open_for_reading(store_url())
    except StoreError as error:
        return Diagnosis.failed("store", error)
    return Diagnosis("ok", "store", f"{place} answers")
