"""A study that passed its preflight on every VM, planned from here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vnuma.domain.study.study import Study
from vnuma.engine.access.target import AnyTarget
from vnuma.engine.preflight.permit import Permit
from vnuma.engine.preflight.plan import plan_all
from vnuma.engine.run.start import Prepared, checked, client_of


def prepare(
    study: Study, text: str, targets: Mapping[str, AnyTarget], inventory: Path = Path("inventory")
) -> Prepared:
    """Raises as `checked` does."""
    plans = plan_all(study, targets, Permit(), inventory)
    return checked(Prepared(study, text, dict(targets), plans, Permit(), client=client_of(targets)))
