"""What a run declares before its first boot, with a hash: study, method and stopping rule."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vnuma.domain.study.order import columns
from vnuma.domain.study.study import Study

METHOD = 6
"""The version of docs/statistics.md's method; raised by every change that can alter a verdict.

2: squares with the place as a factor, the place as a declared covariate. 3: verdicts wait for the last
declared cell. 4: and for a failed cell that is tried again. 5: a clock's steps are compared on the ln scale.
6: a column that scatters far more takes the pooled error from every arm.
"""
SCOPE = "declared"
"""Scope of the run's facts `plan` and `sha256`."""

_NAMES = {
    "study_sha256": "the study file",
    "method": "the method of analysis",
    "stopping": "the stopping rule",
    "order": "the order of arms",
    "covariate": "the covariate",
    "seed": "the seed of the order",
    "equivalence": "the band of equivalence",
    "reference": "the reference arm",
}


@dataclass(frozen=True)
class Declared:
    """A stored declaration: `plan` comes from `declaration`, `sha256` is its hash at that time."""

    plan: Mapping[str, Any]
    sha256: str

    @property
    def earlier_runs(self) -> tuple[str, ...]:
        """Earlier runs of the study, whose outcome may have been known."""
        named = self.plan.get("earlier_runs")
        return tuple(map(str, named)) if isinstance(named, list) else ()


def declaration(study: Study, study_sha256: str, earlier_runs: Sequence[str]) -> dict[str, Any]:
    """The plan as a storable value; `study_sha256` is the hash of the study file's text."""
    design = study.design
    return {
        **({"covariate": design.covariate} if design.covariate != "none" else {}),
        "study_sha256": study_sha256,
        "method": METHOD,
        "stopping": {
            "blocks": design.most_blocks,
            "precision": design.precision,
            "max_hours": design.max_hours,
            **(_decided(study) if design.stop == "decided" else {}),
        },
        "order": design.order,
        "seed": design.seed,
        "equivalence": design.equivalence,
        "reference": study.reference,
        "earlier_runs": list(earlier_runs),
    }


def _decided(study: Study) -> dict[str, Any]:
    """The rule by which arms leave; its levels follow from these figures."""
    arms = sum(arm != study.reference for arm, _ in columns(study))
    return {"stop": "decided", "rule": "group-sequential, power family 1.5, looks from block 4", "arms": arms}


def hash_of(plan: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON: sorted keys, no spaces, ASCII."""
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def deviations(declared: Declared, now: Mapping[str, Any]) -> tuple[str, ...]:
    """Deviations from the declaration, as text; `now` is the declaration recomputed from the store."""
    if hash_of(declared.plan) != declared.sha256:
        return ("the stored plan does not match its hash: it was altered",)
    return tuple(f"{name} differs" for key, name in _NAMES.items() if declared.plan.get(key) != now.get(key))
