"""A running lab's control endpoint: its faults, and what it was asked (docs/lab.md)."""

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
    answer: Fault = ask(state, "POST", "/faults", json.dumps(dict(fault)))
    return answer


def listed(state: LabState) -> list[Fault]:
    """Every fault of the lab, with its number and how often it occurred."""
    answer: list[Fault] = ask(state, "GET", "/faults")
    return answer


def clear(state: LabState) -> int:
    """Remove all faults; returns how many."""
    answer: dict[str, int] = ask(state, "DELETE", "/faults")
    return answer["removed"]


def ask(state: LabState, method: str, path: str, body: str | None = None) -> Any:
    """A request to the endpoint. Raises EnvironmentProblem without an answer, InputError if it is refused."""
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
