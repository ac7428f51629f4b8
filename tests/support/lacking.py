"""A test on a machine that lacks a program which the test needs."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def skip_but_in_ci(reason: str) -> NoReturn:
    """A machine may lack what a test needs; CI installs it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
