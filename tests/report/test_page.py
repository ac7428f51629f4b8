"""The page about a run."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.build import ARMS, GOLDEN_STORY, Load, Lost, Story, noisy, study_text
from tests.report.pages import Outline, page_text
from vnuma.analysis.verdict import Label
from vnuma.errors import InputError
from vnuma.report.model.arm_topologies import topologies_of, verified
from vnuma.report.model.configuration import UNKNOWN, configuration, settings_rows
from vnuma.report.model.words import answer
from vnuma.report.page import render
from vnuma.report.page.page import vm_parts
from vnuma.report.page.render import contents, write_report
from vnuma.store.rows import RunState

HOSTILE = "<script>alert(1)</script>"
HOSTILE_ARM = '<b>"&x</b>'


def test_the_page_is_one_file_below_three_megabytes(loaded: Load) -> None:
    """Nothing is loaded from anywhere, and the page of a full study stays small."""
    page = page_text(
        loaded(Story(text=study_text(sizes="500, 1000, 2000, 3000", forms="client, server, into")))
    )
    outline = Outline(page)

    assert outline.addresses == []
    assert not re.search(r"https?://|url\((?!#)|@import", page)
    assert len(page.encode()) < 3_000_000
    assert outline.policy.startswith("default-src 'none'; ")


@pytest.mark.parametrize(
    "story",
    [
        Story(text=study_text(vms="sql-a, sql-b"), lost={("4x4", 1): (Lost(),)}),
        Story(),
        Story(stop_after=0, state=RunState.PLANNED),
    ],
    ids=["two VMs", "one VM", "planned"],
)
def test_every_id_is_unique_and_every_link_leads_somewhere(loaded: Load, story: Story) -> None:
    """Ids of all charts of all VMs differ, and links and names of pictures point at them."""
    outline = Outline(page_text(loaded(story)))

    assert [name for name, times in Counter(outline.ids).items() if times > 1] == []
    assert {link.removeprefix("#") for link in outline.links} - set(outline.ids) == set()
    assert set(outline.described) - set(outline.ids) == set()
    assert outline.tags["h1"] == 1


def test_every_chart_has_a_title_and_a_description(loaded: Load) -> None:
    """Each picture carries its values in words for those who do not see it; its marks have no role."""
    page = page_text(loaded(Story()))
    words = re.findall(r"<desc id=[^>]*>([^<]*)</desc>", page)

    assert len(re.findall(r'<svg[^>]* role="img"', page)) == page.count("<title id=") == len(words) > 10
    assert all(words)
    assert page.count('aria-hidden="true"><rect') > 10  # rows, whose cells hold the same in words
    assert not re.search("graphics-|aria-roledescription", page)


def test_sections_stand_in_the_order_of_the_contents(loaded: Load) -> None:
    """The answer first, then its limits, then figures."""
    run = loaded(Story())
    listed = [id for id, _ in contents(vm_parts(run))]

    assert [id for id in Outline(page_text(run)).ids if id in listed] == listed


def apart(label: str, block: int, size: int, form: str) -> float:
    """2x8 and 4x4 are as the reference at 500 and slower at 1,000; the reference varies most."""
    loud = noisy(0.004, {})
    if label.startswith("1x16"):
        return loud(label, block, size, form)
    slower = 1.06 if size > 500 and label in ("2x8", "4x4") else 1.0
    return noisy(0.0002, {"8x2": 0.05, "16x1": 0.06})(label, block, size, form) * slower


def test_the_stress_is_on_what_to_use_and_not_on_single_sizes(loaded: Load) -> None:
    """What holds at one size alone follows in the lighter type."""
    run = loaded(Story(ms=apart))
    (found,) = run.result.primary
    alone = {(item.arm, item.size, item.verdict.label) for item in found.differing_sizes}

    assert [text for text, stress in answer(run, found) if stress] == ["1x16"]
    assert alone == {("2x8", 500, Label.EQUIVALENT), ("4x4", 500, Label.EQUIVALENT)}


@pytest.mark.parametrize(
    ("scenario", "name", "marks"), [("paper", "quick.1.simulated.html", 2), (None, "quick.1.html", 0)]
)
def test_simulated_is_said_in_title_banner_footer_and_file_name(
    loaded: Load,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scenario: str | None,
    name: str,
    marks: int,
) -> None:
    """A page about the lab says so wherever a figure may be copied from; another never speaks of one."""
    monkeypatch.chdir(tmp_path)
    path = write_report(loaded(replace(GOLDEN_STORY, scenario=scenario)), None, "html")[0]
    page = path.read_text(encoding="utf-8")

    assert path == Path("reports", name)
    assert page.count("SIMULATED (lab, scenario paper): not measured on hardware") == marks
    assert page.count("<title>SIMULATED: quick.1") == bool(marks)
    assert bool(re.search("simulated", page, re.IGNORECASE)) is bool(marks)


def test_a_page_that_cannot_be_written_names_the_way_out(loaded: Load, tmp_path: Path) -> None:
    """A folder in the place of the file is an error with the next step."""
    with pytest.raises(InputError) as raised:
        write_report(loaded(GOLDEN_STORY), tmp_path, "html")

    assert raised.value.fix == "Name another file: -o FILE"


def test_hostile_names_are_only_text(loaded: Load) -> None:
    """Names of VMs, arms and hosts, messages of errors and facts never become part of the page's code."""
    text = study_text(vms=f"'{HOSTILE}'").replace(
        "arms: [1x16, 2x8,", f"arms: [1x16, {{topology: 2x8, name: '{HOSTILE_ARM}'}},"
    )
    story = Story(
        text=text.replace("Five topologies of", HOSTILE),
        host=HOSTILE,
        esxi=f"6.0.0 {HOSTILE}",
        lost={("4x4", 1): (Lost(detail=HOSTILE),)},
        preflight=({"id": "Q06", "severity": "warn", "what": HOSTILE, "fix": HOSTILE},),
        verified={"log": HOSTILE},
    )
    page = page_text(loaded(story))
    outline = Outline(page)

    assert not [code for code in (HOSTILE, HOSTILE_ARM) if code in page]
    assert outline.tags["script"] == 1
    assert outline.text.count(HOSTILE) > 9
    assert outline.text.count(HOSTILE_ARM) > 1


def test_the_three_topologies_of_an_arm_stand_side_by_side(loaded: Load) -> None:
    """Intended, predicted with its confidence, read back and seen, and how many cells count."""
    run = loaded(Story())
    arms = {arm.arm: arm for arm in topologies_of(run, run.vms[0])}
    two = arms["2x8"]

    assert (str(two.intended), two.read_back, two.seen, two.sql_nodes) == (
        "2x8",
        ("2x8",),
        ((2, 6),),
        ((2, 6),),
    )
    assert (two.predicted_words, two.log_words) == ("2 (low; else 1)", "2, 2 parts on the host")
    assert (two.pages, two.counted, two.planned) == ((1.0,) * 6, 6, 6)
    assert (arms["1x16"].predicted_words, arms["1x16"].counted) == ("1 (high)", 12)


def test_what_was_run_on_what_is_complete(loaded: Load) -> None:
    """Of everything that decides comparability only what the story does not store is unknown."""
    run = loaded(GOLDEN_STORY)
    shown = {(group, name): text for group, pairs in configuration(run, run.vms[0]) for name, text in pairs}

    unknown = {place for place, text in shown.items() if text == UNKNOWN}
    assert unknown == {("Timed executions", "Form client"), ("Time of a cell", "Stages")}
    assert shown["Host", "Memory"] == "196,608 MB"
    assert shown["SQL Server", "max server memory"] == "57,344 MB"


def test_boots_that_differ_are_said_to_differ_whatever_their_order(loaded: Load) -> None:
    """Two runs in different random order see the same values: they may be compared."""
    run = loaded(GOLDEN_STORY)
    (vm,) = run.vms
    servers = [fact for fact in run.facts if (fact.scope, fact.key) == ("boot", "server")]
    values = ("ON", "OFF") * (len(servers) // 2)

    def said(order: tuple[str, ...]) -> str:
        changed = [
            replace(fact, value={"soft_numa": value}) for fact, value in zip(servers, order, strict=True)
        ]
        kept = [fact for fact in run.facts if fact not in servers]
        groups = dict(configuration(replace(run, facts=(*kept, *changed)), vm))
        return dict(groups["SQL Server"])["Automatic soft-NUMA"]

    assert said(values) == said(values[::-1]) == "differs between boots: OFF; ON"


def test_a_large_fleet_leaves_charts_out(loaded: Load) -> None:
    """Above eight VMs charts by size are left out."""
    names = ", ".join(f"sql-{number}" for number in range(9))
    parts = vm_parts(loaded(Story(text=study_text(vms=names, blocks=1, sizes="500", forms="client"))))

    assert {(part["forms"][0]["by_size"], part["forms"][0]["strips"]) for part in parts} == {((), ())}


def test_the_same_run_gives_the_same_page(loaded: Load) -> None:
    """A page depends on the store alone, so that two of them can be compared."""
    run = loaded(GOLDEN_STORY)

    assert render.page_text(run) == render.page_text(run)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(scheme: str) -> None:
    """Every colour of text has a contrast of at least 4.5 to the page (WCAG 2, level AA)."""
    style = (Path(__file__).parents[2] / "templates" / "style.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    if scheme == "dark":
        colours |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark))

    for name in ("ink", "muted", "link", "ours", "less", "slower", "faster", "equivalent", "warn"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
    assert contrast(colours["banner-ink"], colours["banner"]) >= 4.5


def contrast(one: str, other: str) -> float:
    """Contrast of two colours as WCAG 2 defines it."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_arms_keep_the_order_of_the_study(loaded: Load) -> None:
    """No chart or table sorts 16x1 before 2x8."""
    page = page_text(loaded(Story()))
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        shown = [text for text in re.findall(r"<text[^>]*>([^<]+)</text>", drawing) if text in ARMS]
        assert shown == [arm for arm in ARMS if arm in shown]


def test_a_setting_is_shown_as_its_first_change_found_it(loaded: Load) -> None:
    """vSphere reads back the number that it assigned to an automatic setting; the change knows better."""
    run = loaded(Story())
    vm = replace(run.vms[0], baseline={"settings": {"numCoresPerSocket": 16}})

    ((name, before, _),) = settings_rows(run, vm)

    assert (name, before) == ("numCoresPerSocket", "4")


def test_what_the_workload_verified_is_shown_and_long_ones_folded(loaded: Load) -> None:
    """Each fact with the boots that had it."""
    run = loaded(Story(verified={"placement": {"node": "1", "pages": {"0": 7}}, "log": "line; " * 60}))
    log, placement = verified(run, run.vms[0])
    ((boots, text),) = placement.values
    count, _, arms = boots.partition(" boots of ")

    assert (count, set(arms.split(", ")), text) == ("36", set(ARMS), "node: 1; pages: 0: 7")
    assert [(one.key, one.folded) for one in (log, placement)] == [("log", True), ("placement", False)]
