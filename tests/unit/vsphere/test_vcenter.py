"""The address and account of a vCenter, and what is said of durations."""

from __future__ import annotations

import ssl

import pytest

from vnuma.errors import EnvironmentProblem
from vnuma.vsphere.tls import context_for
from vnuma.vsphere.vcenter import VCenter
from vnuma.vsphere.wait import spell


def test_the_password_never_shows() -> None:
    """A password must not reach a log through repr."""
    assert "hunter2" not in repr(VCenter("vcsa01", "study", "hunter2"))


def test_certificates_are_checked_by_default() -> None:
    """Without a word to the contrary, certificate and name are checked, for localhost too."""
    context = context_for(VCenter("localhost", "study", "x"))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_only_verify_tls_false_turns_the_check_off() -> None:
    """Checks are off only when that is written down."""
    context = context_for(VCenter("localhost", "study", "x", verify_tls=False))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_a_ca_file_that_cannot_be_used_is_named() -> None:
    """A CA file that is missing is named before anything is contacted."""
    with pytest.raises(EnvironmentProblem):
        context_for(VCenter("vcsa01", "study", "x", ca_file="/nowhere/ca.pem"))


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.3, "0.3 s"), (45, "45 s"), (60, "60 s"), (90, "90 s"), (600, "10 min")]
)
def test_durations_are_spelt_for_people(seconds: float, words: str) -> None:
    """Whole minutes are minutes, anything else seconds."""
    assert spell(seconds) == words
