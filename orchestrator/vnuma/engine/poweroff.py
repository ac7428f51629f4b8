"""Shutting a guest down the way an administrator would: through Tools, and never behind the guest's back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from vnuma.domain.study import Study
from vnuma.vsphere import power
from vnuma.vsphere.connect import Session
from vnuma.vsphere.refs import VmRef

Fence = Callable[[], None]


@dataclass(frozen=True)
class PowerRules:
    """Deadlines of a power-cycle in seconds, and what happens when a guest does not shut down."""

    shutdown_s: float = 600
    on_timeout: Literal["fail", "power_off"] = "fail"
    tools_s: float = 600
    task_s: float = 300

    @classmethod
    def of(cls, study: Study) -> PowerRules:
        """As the study says."""
        limits = study.power
        return cls(
            limits.shutdown_timeout_s,
            limits.on_shutdown_timeout,
            limits.tools_timeout_s,
            limits.task_timeout_s,
        )


def shut_down(session: Session, ref: VmRef, rules: PowerRules, fence: Fence) -> None:
    """Shut the guest down under these rules. Raises ShutdownTimeout; the VM then runs on."""
    power.shut_down(session, ref, timeout_s=rules.shutdown_s, on_timeout=rules.on_timeout, fence=fence)
