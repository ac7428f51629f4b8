"""What a site's node has of what a study needs: asked by the controller, looked at on the node."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vnuma import __version__
from vnuma.domain.vm.plain_text import signed_seconds
from vnuma.engine.access.inventory import named_targets
from vnuma.engine.access.places import home_folder, store_url
from vnuma.engine.access.play_inventory import write_play_inventory
from vnuma.engine.access.private_folder import private_folder
from vnuma.engine.access.target import AnyTarget
from vnuma.engine.doctor.diagnose import diagnose
from vnuma.engine.doctor.diagnosis import Diagnosis
from vnuma.engine.mesh.control import ask_node
from vnuma.errors import StoreError, VnumaError
from vnuma.store.open import open_for_reading
from vnuma.store.place import parse_place

_FAR_S = 60.0
"""More than the transport of a question takes."""


def diagnose_site(
    control: Path, node: str, targets: Mapping[str, AnyTarget], inventory: Path
) -> list[Diagnosis]:
    """Have a node look at itself, its store, and these VMs from there. Passwords travel as references."""
    lacking = [found for name, target in targets.items() for found in _not_to_resolve(name, node, target)]
    question: dict[str, Any] = {"version": __version__, "asked_at": datetime.now(UTC).isoformat()}
    if not lacking:
        with private_folder(home_folder()) as folder:
            hosts = write_play_inventory(folder, inventory, targets)
            question |= {"hosts": hosts.read_text(encoding="utf-8"), "names": list(targets)}
    try:
        answer = ask_node(control, node, question)
        found = [Diagnosis(**(item | {"more": tuple(item["more"])})) for item in answer["checks"]]
    except VnumaError as error:
        return [_failed("mesh", error), *lacking]
    except (KeyError, TypeError):
        return [Diagnosis("FAIL", "mesh", f"{node} answers in words of another version of vnuma", _EQUAL)]
    return [Diagnosis("ok", "mesh", f"{node} carried out signed work over TLS"), *found, *lacking]


def answer_doctor(question: Mapping[str, Any]) -> dict[str, Any]:
    """The node's side: what was asked, looked at from here. Changes nothing."""
    return {"checks": [asdict(item) for item in _looked_at(question)]}


def _looked_at(question: Mapping[str, Any]) -> Iterator[Diagnosis]:
    theirs = question.get("version")
    if theirs != __version__:
        yield Diagnosis("FAIL", "version", f"vnuma {__version__} here, {theirs} on the controller", _EQUAL)
        return
    yield Diagnosis("ok", "version", f"vnuma {__version__}, as on the controller")
    yield _clock(str(question.get("asked_at")))
    yield _store()
    names = list(question.get("names", ()))
    text = str(question.get("hosts") or "{}")
    if not _is_literal(text):
        more = ("fix: ask with vnuma doctor --site, which resolves templates on the controller",)
        yield Diagnosis("FAIL", "question", "its hosts have text that Ansible may evaluate: refused", more)
        return
    with private_folder(home_folder()) as folder:
        hosts = folder / "hosts.json"
        hosts.write_text(text, encoding="utf-8")
        targets = named_targets(hosts, names) if names else {}
        refused = [found for name, target in targets.items() for found in _refused(name, target)]
        yield from refused or diagnose(targets, hosts)


def _refused(name: str, target: AnyTarget) -> Iterator[Diagnosis]:
    """Also a machine: variables of its connection name programs to start, such as an SSH proxy command."""
    if target.variables() is None:
        more = ("fix: call vnuma doctor on the node itself",)
        yield Diagnosis("FAIL", name, "a node looks only at VMs for the controller, not at machines", more)
    yield from _programs(name, target)


def _is_literal(text: str) -> bool:
    """Whether no text of this inventory is a template, whose lookups could start programs here."""
    try:
        return _literal(json.loads(text))
    except ValueError:
        return False


def _literal(value: object) -> bool:
    if isinstance(value, dict):
        marked = value.keys() == {"__ansible_unsafe"}
        return marked or all(_literal(item) for item in value.values())
    return all(_literal(item) for item in value) if isinstance(value, list) else not isinstance(value, str)


_EQUAL = ("fix: install the same version on controller and node",)


def _clock(asked_at: str) -> Diagnosis:
    ahead = (datetime.now(UTC) - datetime.fromisoformat(asked_at)).total_seconds()
    what = f"{signed_seconds(ahead)} against the controller's, transport included"
    if abs(ahead) <= _FAR_S:
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
        return _failed("store", error)
    return Diagnosis("ok", "store", f"{place} answers")


def _not_to_resolve(name: str, node: str, target: AnyTarget) -> Iterator[Diagnosis]:
    """A password that only the process that read the inventory knows: it is never sent."""
    yield from _programs(name, target)
    for secret in target.secrets:
        if secret.given:
            what = f"{name}: {secret.given} is a template or vault value, which {node} cannot resolve"
            more = ("fix: give a reference, {env: NAME}, {file: PATH} or {vault: FILE, key: NAME}",)
            yield Diagnosis("FAIL", "password", what, more)


def _programs(name: str, target: AnyTarget) -> Iterator[Diagnosis]:
    """Passwords that a program prints: a node starts none that a question names."""
    for secret in target.secrets:
        if secret.command:
            what = f"{name}: {secret.name} would start a program, which no node does for the controller"
            more = ("fix: give a reference, {env: NAME}, {file: PATH} or {vault: FILE, key: NAME}",)
            yield Diagnosis("FAIL", "password", what, more)


def _failed(subject: str, error: VnumaError) -> Diagnosis:
    return Diagnosis("FAIL", subject, error.what, (f"fix: {error.fix}",) if error.fix else ())
