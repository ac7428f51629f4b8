"""Sentences of whole reports on generated studies: none contradicts the figures."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.conftest import LabFactory
from tests.report.build import GOLDEN_STORY, Load, study_text
from tests.support.cli import vnuma
from tests.support.made_once import made_once
from tests.support.site import SMALL, write_inventory, write_machines
from tests.unit.analysis.data import ARMS, Study, columns_of, study_of
from vnuma.analysis.analyse import analyse
from vnuma.analysis.checks import AaCheck
from vnuma.analysis.records import NotEvaluated
from vnuma.analysis.result import Analysis, ArmResult, RunResult
from vnuma.analysis.verdict import Label
from vnuma.analysis.wording import sentence
from vnuma.assets import asset
from vnuma.domain.study.order import METHOD
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.places import store_url
from vnuma.report.model.methods import methods, scope
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.model.trust import limit_statements
from vnuma.report.model.words import answer
from vnuma.report.terminal.run_text import all_as_text
from vnuma.store.open import open_store

A_SHARE = 100
SHARES = [0, *(pytest.param(share, marks=pytest.mark.long) for share in range(1, 5))]
"""Five hundred studies; the first hundred with every change."""
SCENARIOS: dict[str, tuple[str, dict[str, Any]]] = {
    "paper": ("", {}),
    "null": ("", {}),
    "esxi7-default": ("", {}),
    "esxi8-default": ("", {}),
    "standalone": ("", {}),
    "shea2012": ("shea2012", {"scale_factor": 0.002, "queries_per_stream": 1}),
    "adkin2014": ("adkin2014", {}),
    "chang2005": ("chang2005", {"forms": ["noop"], "sizes": [20]}),
    "closson2009": ("closson2009", {}),
}
"""Those that `vnuma lab up --help` names: a shipped study, or the small one, and what makes it small."""
LIMITS = re.compile(r"\((?:\d+%: )?(-?[\d.]+) to (-?[\d.]+)\)")


def generated(seed: int) -> Study:
    """Any number of arms and blocks, from calm to wild; slow states, coarse clocks, A/A alarms, gaps."""
    rng = np.random.default_rng(seed)
    arms, blocks = int(rng.integers(1, 5)), int(rng.integers(4, 13))
    effects = np.append([0.0, 0.0], rng.choice([0.0, 0.004, -0.015, 0.015, 0.04, -0.04], arms))
    sd = rng.choice([0.0005, 0.002, 0.005, 0.015]) * rng.choice([1.0, 1.0, 2.5], arms + 2)
    ms = 300 * np.exp(effects + rng.normal(0, 1, (blocks, arms + 2)) * sd)
    if rng.random() < 0.3:
        ms[:, -1] *= np.where(rng.random(blocks) < 0.15, 1.11, 1.0)
    if rng.random() < 0.3:
        ms = np.round(ms / 3) * 3
    if rng.random() < 0.05:
        ms[:, 1] *= 1.03
    iterations = (1.0,) if rng.random() < 0.3 else (1.0, 1.001, 0.999)
    sizes = (500, 2000) if rng.random() < 0.5 else (2000,)
    study = study_of(ms, columns_of(ARMS[:arms]), sizes=sizes, iterations=iterations)
    if rng.random() < 0.3:
        gone = {(int(b), int(k)) for b, k in rng.integers(0, blocks, (3, 2))}
        labels = [column.label for column in study.design.columns]
        study.drop(lambda cell: (cell.block, labels.index(cell.label)) in gone)
    return study


def results(factory: pytest.TempPathFactory, share: int) -> list[RunResult]:
    """What a hundred of the studies come to."""
    folder = made_once(factory, f"studies-{share}", partial(analyse_share, share))
    found: list[RunResult] = pickle.loads((folder / "results").read_bytes())
    return found


def analyse_share(share: int, folder: Path) -> None:
    """Analyse a hundred of the studies, and keep what they come to in a file."""
    seeds = range(share * A_SHARE, (share + 1) * A_SHARE)
    found = [analyse(study.series, study.cells, study.design) for study in map(generated, seeds)]
    (folder / "results").write_bytes(pickle.dumps(found))


@dataclass(frozen=True)
class Report:
    """What a report says, and what it says it of."""

    found: Analysis
    reference: str
    answer: str
    text: str
    """The output of `vnuma results --all`, and the page's statements."""


def report(run: LoadedRun, result: RunResult) -> Report:
    """As if the run had measured that study."""
    design = result.design
    arms = dict.fromkeys(column.arm for column in design.columns)
    text = study_text(blocks=design.blocks, sizes=", ".join(map(str, design.sizes)), forms="client")
    text = text.partition("published:")[0].replace("[1x16, 2x8, 4x4, 8x2, 16x1]", f"[{', '.join(arms)}]")
    return report_of(replace(run, study=parse_study(text, "study.yml"), result=result))


def report_of(told: LoadedRun) -> Report:
    """The text about a run."""
    (found,), (vm,) = told.result.primary, told.vms
    said = "".join(text for text, _ in answer(told, found))
    page = [f"{item.what} {item.text}" for item in limit_statements(told, vm, found)]
    everything = [all_as_text(told), said, *page, methods(told, vm, found), scope(told, vm, found)]
    return Report(found, told.study.reference, said, " ".join(" ".join(everything).split()))


def wrong_in(said: Report) -> list[str]:
    """Every sentence of a report that its own figures contradict."""
    verdicts = [text for arm in said.found.arms for text in contradictions(arm)]
    return [*verdicts, *advice(said), *blocks_to_run(said), *statements(said)]


def contradictions(arm: ArmResult) -> Iterator[str]:
    """What a verdict's own figures, as they are shown, say against its sentence."""
    verdict, text = arm.verdict, sentence(arm.verdict)
    if verdict.withheld or verdict.interval is None or verdict.label is Label.TOO_FEW:
        return
    shown = LIMITS.search(text)
    low, high = map(float, shown.groups()) if shown else (0.0, 0.0)
    band = verdict.margin * 100
    wrong = {
        "a direction whose shown limits hold 0": verdict.label in (Label.SLOWER, Label.FASTER) and low <= 0,
        "undecided although the shown limits exclude 0": verdict.label is Label.UNDECIDED
        and not low <= 0 <= high,
        "equivalent beyond the band": verdict.label is Label.EQUIVALENT and not -band < low <= high < band,
        "at least the band, and a limit inside it": "by at least" in text and low < band,
        "decided by blocks that were run": verdict.blocks_needed is not None
        and verdict.blocks_needed <= arm.contrast.boots,
        "not detectable, and 0 outside": verdict.label is Label.EQUIVALENT
        and "detectable" not in text
        and not verdict.interval.contains(1.0),
        "nothing unseen beside equivalent": verdict.label is Label.EQUIVALENT
        and "do not exclude" not in text,
        "unseen, and seen": ", unseen" in text and "stand" in text and not verdict.reference_odd_boots,
        "no limits": shown is None,
    }
    yield from (f"{arm.arm}: {what}: {text}" for what, holds in wrong.items() if holds)


def advice(said: Report) -> Iterator[str]:
    """No arm that is surely slower, and not the reference where an arm is faster by more than the band."""
    words = {arm.arm: arm.verdict.label for arm in said.found.arms}
    open_arms = [arm for arm, word in words.items() if word in (Label.UNDECIDED, Label.TOO_FEW)]
    advised = re.search(r"Use (.+?):", said.answer)
    if advised:
        names = re.split(", | or ", advised[1])
        far = [arm for arm in said.found.arms if arm.verdict.beyond_margin]
        if any(words.get(name) is Label.SLOWER for name in names):
            yield f"advice of a slower arm: {said.answer}"
        if said.reference in names and any(arm.verdict.label is Label.FASTER for arm in far):
            yield f"advice of the reference, which is far behind: {said.answer}"
    elif not said.found.withheld and not (open_arms and all(arm in said.answer for arm in open_arms)):
        yield f"no advice, and not why: {said.answer}"


def blocks_to_run(said: Report) -> Iterator[str]:
    """What would decide is said once, of the arm that needs most, and is more than what was run."""
    told = [
        int(blocks) for blocks in re.findall(r"about (\d+) blocks would probably distinguish", said.answer)
    ]
    needed = [arm.verdict.blocks_needed for arm in said.found.arms if arm.verdict.blocks_needed]
    if (
        len(told) > 1
        or told != ([max(needed)] if needed else [])
        or min(told, default=99) <= said.found.blocks
    ):
        yield f"not once, not the most, or too few of {needed}: {said.answer}"


def statements(said: Report) -> Iterator[str]:
    """The statements about the verdicts, compared with their figures."""
    found, text = said.found, said.text
    for at, low, high in re.findall(r"by ([\d.]+)% \((-?[\d.]+) to (-?[\d.]+)\)", text):
        if not 0 < float(low) <= float(at) <= float(high):
            yield f"outside its limits: by {at}% ({low} to {high})"
    for at, low, high in re.findall(r"([+-][\d.]+)% \((?:\d+%: )?(-?[\d.]+) to (-?[\d.]+)\)", text):
        if not float(low) <= float(at) <= float(high):
            yield f"outside its limits: {at}% ({low} to {high})"
    for at, low, high in re.findall(r"\(([+-][\d.]+)%, (-?[\d.]+) to (-?[\d.]+)[;)]", text):
        if not float(low) <= float(at) <= float(high) or not float(low) <= 0 <= float(high):
            yield f"undecided, and outside its limits or not around 0: {at}% ({low} to {high})"
    check, floor = found.a_a, re.search(r"columns differ by ([\d.]+)% at most", text)
    if isinstance(check, AaCheck) and floor:
        beyond = abs(check.ratio - 1) * 100 > float(floor[1]) + 0.1
        if beyond and check.state == "no alarm":
            yield f"more than equal columns differ by, and no alarm: {floor[0]}"
    widths = [arm.verdict.half_width or 0.0 for arm in found.arms]
    for effect in re.findall(r"\(80%\) detect a difference of ([\d.]+)%", text):
        if found.blocks < 6:
            yield f"{found.blocks} blocks detect {effect}%, and give no verdict"
        if not found.missing and float(effect) < max(widths) * 100 * 0.99:
            yield f"detects {effect}%, which its own intervals do not exclude: {max(widths)}"
    differ = any(len(set(times)) > 1 for point in found.points for times in point.iterations)
    if "two iterations that differ" in text and differ:
        yield "no iterations that differ, and some do"
    if "every column passed the variance gate" in text and any(flag.flagged for flag in found.gate):
        yield "every column passed the gate, and one did not"
    for low, high in re.findall(r"size is undecided: \S+ points[\w ]+ \((\S+) to (\S+)\)", text):
        if not float(low) <= 0 <= float(high):
            yield f"whether the gap changes is undecided, and {low} to {high}"


@pytest.mark.parametrize("share", SHARES)
def test_no_sentence_is_contradicted_by_the_figures_next_to_it(
    loaded: Load, tmp_path_factory: pytest.TempPathFactory, share: int
) -> None:
    """Verdicts, advice, statements and methods of a hundred reports."""
    run, found = loaded(GOLDEN_STORY), results(tmp_path_factory, share)
    assert [text for result in found for text in wrong_in(report(run, result))] == []


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_sentence_of_a_scenarios_report_is_contradicted(
    tmp_path: Path, lab: LabFactory, scenario: str
) -> None:
    """A small study of each built-in scenario of the lab, in the fewest blocks that verdicts need."""
    running = lab(scenario)
    shipped, changed = SCENARIOS[scenario]
    text = asset(f"studies/{shipped}.yml").read_text(encoding="utf-8") if shipped else json.dumps(SMALL)
    study: dict[str, Any] = yaml.safe_load(text)
    study["design"] |= {"blocks": 6, "warmups": 0}
    study["workload"] |= changed
    if running.state.machines:
        study["vm"] = running.state.machines[0].name
    else:
        study |= {"quiet": {"for_s": 0}, "power": SMALL["power"]}
    path = tmp_path / "study.yml"
    path.write_text(json.dumps(study), encoding="utf-8")
    write = write_machines if running.state.machines else write_inventory

    ran = vnuma("run", path, "-i", write(tmp_path, running))

    assert ran.code == 0, ran.text
    said = report_of(load_run(open_store(store_url()), "latest"))
    assert wrong_in(said) == [], said.text


def test_no_verdict_changes_without_a_new_number_of_the_method(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Runs store the number before their first boot. Raise METHOD together with this hash.

    Every word is among them, and words that are withheld: else nothing would be held, here or above.
    """
    found = [result.primary[0] for result in results(tmp_path_factory, 0)]
    words = [f"{arm.arm} {arm.verdict.label} {arm.verdict.withheld}" for one in found for arm in one.arms]

    assert {arm.verdict.label for one in found for arm in one.arms} == set(Label)
    assert any(one.withheld for one in found)
    assert any(one.recommended for one in found)
    assert not all(isinstance(one.detectable_effect, NotEvaluated) for one in found)
    assert (METHOD, hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]) == (7, "85743e1fb66678c9")
