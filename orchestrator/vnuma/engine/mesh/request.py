"""What a work unit transports: the VMs' inventory with references for passwords, and errors as text.

Signing work must not give a shell on a node, so a request can start no program there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError

from vnuma import __version__, errors
from vnuma.domain.vm.plain_text import duration, signed_seconds
from vnuma.engine.access.inventory import named_targets
from vnuma.engine.access.places import home_folder
from vnuma.engine.access.play_input import write_play_inventory
from vnuma.engine.access.private_folder import private_folder
from vnuma.engine.access.secrets import write_private
from vnuma.engine.access.target import Target
from vnuma.errors import EnvironmentProblem, InputError, VnumaError

EQUAL_VERSIONS = "install the same version on controller and node"
_REFERENCES = "give a reference, {env: NAME}, {file: PATH} or {vault: FILE, key: NAME}"
_DRIVER = "give a registered driver's name, or set VNUMA_ODBC_DRIVER in the node's node.env"
_PASSWORD = "password"
FAR_S = 60.0
"""A clock difference in seconds that a request's travel time does not explain."""

_MARKED = "__ansible_unsafe"
"""How the inventory marks text that Ansible must not template."""


class Request(BaseModel):
    """The keys of every request; `hosts` is the inventory of the VMs in `names`, as JSON."""

    node: str
    version: str
    asked_at: AwareDatetime
    hosts: str
    names: list[str]


def validated(given: object, form: Any) -> Any:
    """The value in this form. Raises InputError for any other, however well it is signed."""
    try:
        return TypeAdapter(form).validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise InputError(
            f"the controller's request is not understood: {where}: {first['msg']}", fix=EQUAL_VERSIONS
        ) from None


def bare_request(node: str) -> dict[str, Any]:
    """A request to this node about itself, without the keys that say what is asked."""
    return {
        "node": node,
        "version": __version__,
        "asked_at": datetime.now(UTC).isoformat(),
        "hosts": "{}",
        "names": [],
    }


def request_about(node: str, targets: Mapping[str, Target], inventory: Path) -> dict[str, Any]:
    """A request to this node about these VMs."""
    with private_folder(home_folder()) as folder:
        hosts = write_play_inventory(folder, inventory, targets)
        about = {"hosts": hosts.read_text(encoding="utf-8"), "names": list(targets)}
        return bare_request(node) | about


def send_refusals(node: str, targets: Mapping[str, Target]) -> Iterator[tuple[str, InputError]]:
    """Why these VMs cannot be sent to a node: subjects, each with its error."""
    for name, target in targets.items():
        yield from _programs(name, target)
        for secret in target.secrets:
            if secret.given:
                what = f"{name}: {secret.given} is a template or vault value, which {node} cannot resolve"
                yield _PASSWORD, InputError(what, fix=_REFERENCES)


def node_refusals(targets: Mapping[str, Target]) -> Iterator[tuple[str, InputError]]:
    """The same checks on the node, which trusts no request.

    Machines are refused too: their connection variables can name programs, such as an SSH proxy command.
    """
    for name, target in targets.items():
        if target.variables() is None:
            what = "a node looks only at VMs for the controller, not at machines"
            yield name, InputError(what, fix="call vnuma on the node itself")
        yield from _programs(name, target)


def _programs(name: str, target: Target) -> Iterator[tuple[str, InputError]]:
    """Refuse password commands and libraries: a node runs and loads none that a request names."""
    for server in target.sql_servers:
        if "/" in server.driver:
            what = (
                f"{name}: the ODBC driver {server.driver} is a file, which no node loads for the controller"
            )
            yield name, InputError(what, fix=_DRIVER)
    for secret in target.secrets:
        if secret.command:
            what = f"{name}: {secret.name} would start a program, which no node does for the controller"
            yield _PASSWORD, InputError(what, fix=_REFERENCES)


def refuse_other_node(request: Mapping[str, Any]) -> None:
    """Raise EnvironmentProblem where the request is for another node than VNUMA_NODE says this one is."""
    wanted, here = request["node"], os.environ.get("VNUMA_NODE")
    if wanted != here:
        raise EnvironmentProblem(
            f"the controller asked {wanted}, and this node is {here or 'none (VNUMA_NODE is not set)'}",
            fix=f"set VNUMA_NODE={wanted} in node.env and restart the daemon; or move each node's own folder "
            "to it: docs/sites.md",
        )


def refuse_other_version(request: Mapping[str, Any]) -> None:
    """Raise EnvironmentProblem where controller and node have different versions of vnuma."""
    theirs = request.get("version")
    if theirs != __version__:
        raise EnvironmentProblem(f"vnuma {__version__} here, {theirs} on the controller", fix=EQUAL_VERSIONS)


def refuse_other_clock(request: Mapping[str, Any]) -> None:
    """Raise EnvironmentProblem where this clock is far from the controller's, as heartbeats are compared."""
    ahead = seconds_ahead(request)
    if abs(ahead) > FAR_S:
        raise EnvironmentProblem(
            f"its clock is at {signed_seconds(ahead)} against the controller's: a run there would count as "
            "dead, or a dead one as alive",
            fix="Set up NTP on controller and node.",
        )


def refuse_late(request: Mapping[str, Any], what: str) -> None:
    """Raise EnvironmentProblem for a request that travelled longer than FAR_S: nobody waits for the answer.

    Daemons deliver it once the node is reachable again, perhaps days after `what` was decided.
    """
    late = seconds_ahead(request)
    if late > FAR_S:
        raise EnvironmentProblem(
            f"{what} was requested {duration(late)} ago by the clock here, so nothing was changed",
            fix="Ask again. If the clocks differ, set up NTP on controller and node.",
        )


def seconds_ahead(request: Mapping[str, Any]) -> float:
    """How far this clock is ahead of the controller's, including the request's travel time."""
    asked_at: datetime = request["asked_at"]
    return (datetime.now(UTC) - asked_at).total_seconds()


@contextmanager
def asked_about(request: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Target]]]:
    """On the node: the request's inventory in a private folder, and its VMs, not yet checked.

    Raises InputError for hosts with templates: a lookup could start a program here.
    """
    names, text = request["names"], request["hosts"]
    if not _is_literal(text):
        raise InputError(
            "its hosts have text that Ansible may evaluate: refused",
            fix="ask with vnuma doctor --site, which resolves templates on the controller",
        )
    with private_folder(home_folder()) as folder:
        asked = write_private(folder / "asked.json", text)
        targets = named_targets(asked, names) if names else {}
        vms = {name: target for name, target in targets.items() if target.variables() is not None}
        # Other variables of the request, such as connection settings, could name programs for a later step.
        yield write_play_inventory(folder, asked, vms), targets


def _is_literal(text: str) -> bool:
    """Whether the inventory has no templates, whose lookups could start programs here."""
    try:
        return _literal(json.loads(text))
    except ValueError:
        return False


def _literal(value: object) -> bool:
    if isinstance(value, dict):
        if value.keys() == {_MARKED}:  # Ansible leaves only text unevaluated, not text inside a list or dict
            return isinstance(value[_MARKED], str)
        return not any(key.startswith("__ansible") for key in value) and all(map(_literal, value.values()))
    return all(_literal(item) for item in value) if isinstance(value, list) else not isinstance(value, str)


def error_document(error: Exception) -> dict[str, str | None]:
    """An error as text, with the class that has its exit code; a bug with its own message."""
    if isinstance(error, VnumaError):
        return {"kind": type(error).__name__, "what": error.what, "fix": error.fix}
    return {"kind": VnumaError.__name__, "what": f"{type(error).__name__}: {error}", "fix": None}


def error_from(node: str, document: Mapping[str, Any]) -> VnumaError:
    """The error in a node's answer, naming the node."""
    kind = getattr(errors, str(document.get("kind")), None)
    known = kind if isinstance(kind, type) and issubclass(kind, VnumaError) else EnvironmentProblem
    error = known.__new__(known)
    VnumaError.__init__(error, f"{node}: {document.get('what')}", fix=document.get("fix"))
    return error
