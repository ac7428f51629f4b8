"""Retries: only for temporary errors, with growing pauses, and limited. On a fake clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from vnuma.engine.lease.vcenter_retry import HASTE, RETRY, VCenterRetry, retried_now, retry_vcenter
from vnuma.errors import CertificateRejected, LoginRefused, PowerFailed, VCenterUnreachable, VnumaError
from vnuma.store.rows import Fact
from vnuma.store.tables import iso, utc_now
from vnuma.vsphere.connect import SessionExpired
from vnuma.vsphere.faults import NotNow


@dataclass
class Clock:
    """A clock that only sleeping moves."""

    now: float = 100.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.slept.append(seconds)
        self.now += seconds

    def patience(self, total_s: float, draw: float = 0.5) -> VCenterRetry:
        """Patience on this clock; with `draw` 0.5 pauses are neither longer nor shorter."""
        return VCenterRetry(total_s, clock=self, sleep=self.sleep, draw=lambda: draw)


def failing(times: int, error: VnumaError) -> Callable[[int], str]:
    """Work that fails so often, then succeeds, and says at which try."""

    def work(tries: int) -> str:
        if tries <= times:
            raise error
        return f"done at try {tries}"

    return work


@pytest.mark.parametrize("kind", [VCenterUnreachable, SessionExpired, NotNow, CertificateRejected])
def test_what_passes_is_tried_again_and_told(kind: type[VnumaError]) -> None:
    """Each failure is reported with its number and the pause; the work's result is returned."""
    clock, told = Clock(), []

    result = retry_vcenter(failing(3, kind("away.")), clock.patience(60), lambda *heard: told.append(heard))

    assert result == "done at try 4"
    assert [(tries, pause) for tries, _, pause in told] == [(1, 1.0), (2, 2.0), (3, 4.0)]
    assert clock.slept == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("kind", [LoginRefused, PowerFailed])
def test_what_does_not_pass_is_not_tried_again(kind: type[VnumaError]) -> None:
    """A wrong password locks the account if it is repeated; a refused power-on is the cell's failure."""
    clock = Clock()

    with pytest.raises(kind):
        retry_vcenter(failing(1, kind("no.")), clock.patience(60), lambda *_: None)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # a stop that was asked for ends the waiting, too
        retry_vcenter(failing(1, NotNow("busy.")), clock.patience(60), stopped)

    assert clock.slept == []


def test_patience_ends_with_the_last_error() -> None:
    """It keeps its class."""
    clock = Clock()

    with pytest.raises(SessionExpired):
        retry_vcenter(failing(99, SessionExpired("ended.")), clock.patience(20), lambda *_: None)

    assert sum(clock.slept) <= 20


def test_pauses_are_bounded_and_spread() -> None:
    """At most half a minute and a half, and no two controllers ask at the same moment."""
    clock = Clock()

    assert clock.patience(1e9).pause_s(1000) == 30
    assert clock.patience(60, draw=0.0).pause_s(1) == 0.5
    assert clock.patience(60, draw=0.99).pause_s(1) == pytest.approx(1.49)


def test_a_user_in_haste_waits_for_no_further_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause under way ends, nothing is repeated, and the error is the last one."""
    monkeypatch.setattr(HASTE, "asked", False)
    told: list[int] = []

    def tell(tries: int, _error: object, _pause: float) -> None:
        told.append(tries)
        HASTE.asked = True

    with pytest.raises(VCenterUnreachable):
        retry_vcenter(failing(9, VCenterUnreachable("away.")), VCenterRetry(900, first_s=60), tell)

    assert told == [1]


def test_one_bad_answer_to_a_user_in_haste_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while VMs are restored: one must not stay off for it. What fails for long is given up."""
    monkeypatch.setattr(HASTE, "asked", True)
    clock, away = Clock(), VCenterUnreachable("away.")

    done = retry_vcenter(failing(1, away), clock.patience(900), lambda *_: None)

    assert (done, clock.slept) == ("done at try 2", [1.0])
    with pytest.raises(VCenterUnreachable):
        retry_vcenter(failing(99, away), clock.patience(900), lambda *_: None)
    assert clock.now < 100 + 15


@pytest.mark.parametrize(
    ("key", "seconds", "told", "shown"),
    [
        ("restoring", 60, {"words": "vCenter is away."}, "vCenter is away."),
        ("restoring", -60, {"words": "vCenter is away."}, None),
        ("taking over", 60, {"words": "vCenter is away."}, None),
        ("restoring", 60, {"what": "as an earlier version wrote it"}, None),
    ],
)
def test_only_a_wait_that_has_words_and_is_not_over_is_shown(
    key: str, seconds: float, told: dict[str, str], shown: str | None
) -> None:
    """A fact without words shows nothing, not the word None."""
    now = utc_now()
    value = {**told, "until": iso(now + timedelta(seconds=seconds))}

    assert retried_now(Fact(1, 1, 1, None, RETRY, key, value, now), "restoring") == shown
