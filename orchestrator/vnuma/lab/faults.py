"""A running lab's control endpoint: its faults, and the requests to its SQL Servers."""

from __future__ import annotations

import http.client
import json
import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from vnuma.errors import EnvironmentProblem, InputError
from vnuma.lab.process import LabState

Fault = dict[str, Any]

_TIMEOUT_S = 10.0


def add(state: LabState, fault: Mapping[str, Any]) -> Fault:
    """Add a fault in a scenario's notation (docs/lab.md); returns it with its number.

    Raises InputError with the lab's own message when it cannot simulate it.
    """
    answer: Fault = _ask(state, "POST", "/faults", json.dumps(dict(fault)))
    return answer


def listed(state: LabState) -> list[Fault]:
    """Every fault of the lab, with its number and how often it occurred."""
    answer: list[Fault] = _ask(state, "GET", "/faults")
    return answer


def clear(state: LabState) -> int:
    """Remove all faults; returns how many."""
    answer: dict[str, int] = _ask(state, "DELETE", "/faults")
    return answer["removed"]


def audit(state: LabState) -> dict[str, dict[str, Any]]:
    """By inventory path: logins and requests at a VM's SQL Server, and every change requested of it."""
    answer: dict[str, dict[str, Any]] = _ask(state, "GET", "/audit")
    return answer


def logins(state: LabState) -> dict[str, Any]:
    """Logins so far: of `vcenter` by account, of `sql` by VM and account; open `sessions` by account."""
    answer: dict[str, Any] = _ask(state, "GET", "/logins")
    return answer


def _ask(state: LabState, method: str, path: str, body: str | None = None) -> Any:
    password = state.password_file.read_text(encoding="utf-8").strip()
    account = b64encode(f"{state.user}:{password}".encode()).decode()
    connection = http.client.HTTPSConnection(
        state.host,
        state.control_port,
        timeout=_TIMEOUT_S,
        context=ssl.create_default_context(cafile=str(state.ca_file)),
    )
    try:
        connection.request(method, path, body, {"Authorization": f"Basic {account}"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise EnvironmentProblem(
            f"The lab's control at {state.host}:{state.control_port} does not answer ({error}).",
            fix="vnuma lab status",
        ) from error
    finally:
        connection.close()
    if response.status >= http.HTTPStatus.BAD_REQUEST:
        raise InputError(
            f"The lab refuses this fault: {answer['error']}.", fix="docs/lab.md lists its faults."
        )
    return answer
