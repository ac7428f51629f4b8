"""A study that passed its preflight on every VM, as `vnuma run` prepares it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vnuma.domain.study.study import Study
from vnuma.engine.access.target import Target
from vnuma.engine.preflight.findings import Permit
from vnuma.engine.run import start
from vnuma.engine.run.start import Prepared, StudyRequest


def prepare(
    study: Study,
    text: str,
    targets: Mapping[str, Target],
    inventory: Path,
) -> Prepared:
    """As `vnuma run` does. Raises as it does."""
    asking = StudyRequest(study, text, targets, Permit(), inventory)
    return start.prepare(asking)
