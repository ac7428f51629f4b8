"""A wrong study or command line: one clear sentence, exit code 3 or 2, nothing touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import vnuma, vnuma_here
from tests.support.site import write_study
from tests.support.stores import new_store


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"afinity": "none"}, "unknown field 'afinity'."),
        ({"workload": {"sizes": [201]}}, "size 201 is more rows than the smaller table has (200)."),
        *(
            pytest.param(changes, sentence, marks=pytest.mark.long)  # tests/unit/domain has the rules
            for changes, sentence in (
                ({"arms": ["1x16", "3x5"]}, "topology 3x5 makes 15 vCPUs, but vcpus is 16."),
                ({"arms": ["1x16", "4x4", "4x4"]}, "arm '4x4' is already the second arm."),
                ({"reference": "8x2"}, "the reference arm '8x2' is not among the arms."),
            )
        ),
    ],
)
def test_a_wrong_study_is_refused_with_its_line_and_exit_3(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    """File, line and sentence on standard error; standard output stays empty."""
    study = write_study(tmp_path, **changes)

    ran = vnuma_here("run", study)

    assert ran.code == 3
    assert sentence in ran.err
    assert f"{study}:" in ran.err
    assert ran.out == ""


def test_broken_yaml_names_file_and_line(tmp_path: Path) -> None:
    """A typo in YAML is found where it is."""
    study = tmp_path / "broken.yml"
    study.write_text("name: a\narms: [1x16\nvcpus: 16\n", encoding="utf-8")

    ran = vnuma_here("plan", study)

    assert ran.code == 3
    assert f"{study}:3: not valid YAML" in ran.err


def test_a_study_that_is_not_there_says_so() -> None:
    """And shows where an example is."""
    ran = vnuma_here("run", "no-such.yml")

    assert (ran.code, "cannot be read" in ran.err, "studies/quick.yml" in ran.err) == (3, True, True)


def test_neither_study_nor_resume_is_a_sentence() -> None:
    """A run needs one of the two."""
    ran = vnuma_here("run")

    assert ran.code == 2
    assert "--resume RUN" in ran.err


def test_an_unknown_option_is_exit_2() -> None:
    """The command line itself is wrong."""
    assert vnuma_here("run", "--no-such-option").code == 2


def test_without_an_inventory_the_next_step_is_named(tmp_path: Path) -> None:
    """No inventory and no lab: both ways on are in the message."""
    ran = vnuma("run", write_study(tmp_path), cwd=tmp_path)

    assert ran.code == 3
    assert "vnuma init" in ran.err
    assert "vnuma lab up" in ran.err


def test_an_unknown_run_is_named(vnuma_home: Path) -> None:
    """Results of a run that is not in the store."""
    vnuma_home.mkdir()
    new_store(vnuma_home / "vnuma.db")

    ran = vnuma_here("results", "nothing.7")

    assert ran.code == 3
    assert "no run 'nothing.7'" in ran.err
