"""A pilot run to plan with: its upper bound, its costs, and what of it is not as in the study."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from scipy import stats

from tests.report.build import Story, build, noisy, study_text
from tests.support.cli import Ran, vnuma_here
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.preflight.pilot import read_pilot
from vnuma.errors import InputError
from vnuma.store.open import Store

PLANNED = parse_study(study_text(blocks=8), "s.yml")


def test_a_pilots_upper_bound_is_planned_with(store: Store) -> None:
    """Three blocks of six columns: 10 degrees of freedom, so the variance is taken 10/chi2_0.05(10) times."""
    pilot = read_pilot(store, build(store, Story(text=study_text(blocks=3))).name, PLANNED)

    assert (pilot.blocks, pilot.df, pilot.differs) == (3, 10, ())
    assert (pilot.upper / pilot.measured) ** 2 == pytest.approx(10 / stats.chi2.ppf(0.05, 10))
    assert pilot.spreads is not None
    assert pilot.costs is not None


def test_two_blocks_are_no_pilot(store: Store) -> None:
    """The spread of so few cells would promise anything."""
    with pytest.raises(InputError):
        read_pilot(store, build(store, Story(text=study_text(blocks=2))).name, PLANNED)


def test_what_is_not_as_in_the_study_is_named(store: Store) -> None:
    """A spread at another size need not hold."""
    pilot = read_pilot(store, build(store, Story(text=study_text(blocks=3, sizes="500"))).name, PLANNED)

    assert pilot.differs == ("sizes",)


def test_the_verb_plans_with_it_and_says_that_it_was_simulated(store: Store, tmp_path: Path) -> None:
    """A row of its own, and the blocks at its spread."""
    run = build(store, Story(text=study_text(blocks=3), ms=noisy(0.003)))
    study = tmp_path / "s.yml"
    study.write_text(study_text(blocks=8).replace("blocks: 8", "precision: 1%"), encoding="utf-8")
    where = f"sqlite:///{tmp_path / 'vnuma.db'}"

    document = json.loads(
        vnuma_here("power", study, "--pilot", "latest", "--store", where, "--format", "json").out
    )

    assert document["allocation"]["choices"][0]["blocks"] >= 6
    assert document["simulated"] is True
    assert document["pilot"]["run"] == run.name
    assert document["needed"][-1]["spread"] == f"pilot {run.name}"


def planned(folder: Path, text: str, *options: str) -> Ran:
    """`vnuma power` of a study."""
    study = folder / "s.yml"
    study.write_text(text, encoding="utf-8")
    return vnuma_here("power", study, *options)


def test_no_effect_is_promised_where_no_verdict_can_be(tmp_path: Path) -> None:
    """In fixed order every verdict is withheld."""
    shown = planned(tmp_path, study_text(blocks=8, order="fixed")).out

    assert re.findall("no verdict|or more are found", shown) == ["no verdict"]


def test_blocks_that_the_hours_do_not_permit_are_not_promised(tmp_path: Path) -> None:
    """A tenth of the time that 20 blocks take is enough for two."""
    text = study_text(blocks=20)
    block = json.loads(planned(tmp_path, text, "--format", "json").out)["block_seconds"]
    hours = text.replace("seed: 7", f"seed: 7, max_hours: {2.5 * block / 3600:.3f}")

    shown = " ".join(planned(tmp_path, hours).out.split())

    assert re.findall(r"If all (\d+) blocks run", shown) == ["20"]
    assert re.findall(r"likely ends it after (\d+) blocks; a verdict needs (\d+)", shown) == [("2", "6")]


def test_the_positive_control_is_one_of_the_comparisons(tmp_path: Path) -> None:
    """Four arms and the control share the 5%: as many comparisons as are simulated."""
    text = study_text().replace("a_a: true", "a_a: true, control: remote")

    assert planned(tmp_path, text).out.startswith("5 comparisons with 1x16 (remote)")


def test_an_effect_is_a_percentage(tmp_path: Path) -> None:
    """A bare number could be meant either way."""
    assert [planned(tmp_path, study_text(), "--effect", effect).code for effect in ("1", "1%")] == [2, 0]
