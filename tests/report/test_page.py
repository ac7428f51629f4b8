"""The page about a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.build import ARMS, GOLDEN_STORY, Lost, Story, noisy, study_text
from tests.report.pages import Outline, page_text, text_of
from vnuma.errors import InputError
from vnuma.report.model.configuration import configuration, settings_rows
from vnuma.report.model.model import LoadedRun
from vnuma.report.page import render
from vnuma.report.page.render import write_report
from vnuma.store.rows import RunState

Load = Callable[[Story], LoadedRun]

HOSTILE = "<script>alert(1)</script>"


def test_the_page_is_one_file_below_three_megabytes(loaded: Load) -> None:
    """Nothing is loaded from anywhere, and the page of a full study stays small."""
    page = page_text(
        loaded(Story(text=study_text(sizes="500, 1000, 2000, 3000", forms="client, server, into")))
    )
    outline = Outline(page)

    assert outline.addresses == []
    assert not re.search(r"https?://|url\((?!#)|@import", page)
    assert len(page.encode()) < 3_000_000
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_every_id_is_unique_and_every_link_leads_somewhere(loaded: Load) -> None:
    """Ids of all charts of all VMs differ, and links and names of pictures point at them."""
    outline = Outline(
        page_text(loaded(Story(text=study_text(vms="sql-a, sql-b"), lost={("4x4", 1): (Lost(),)})))
    )

    assert [name for name, times in Counter(outline.ids).items() if times > 1] == []
    assert {link.removeprefix("#") for link in outline.links} - set(outline.ids) == set()
    assert set(outline.described) - set(outline.ids) == set()
    assert outline.tags["h1"] == 1


def test_every_chart_has_a_title_and_a_description(loaded: Load) -> None:
    """Each picture carries its values in words for those who do not see it; its marks have no role."""
    page = page_text(loaded(Story()))

    assert (
        len(re.findall(r'<svg[^>]* role="img"', page))
        == page.count("<title id=")
        == page.count("<desc id=")
        > 10
    )
    assert page.count('aria-hidden="true"><rect') > 10  # rows, whose cells hold the same in words
    assert "graphics-" not in page
    assert "aria-roledescription" not in page
    assert "lower is faster" in page
    assert "(n = 6)" in page


def test_the_answer_comes_first_then_its_limits_then_figures(loaded: Load) -> None:
    """Sentence, scope, verdicts, limits, Table 1, in this order."""
    text = text_of(page_text(loaded(GOLDEN_STORY)))
    order = [
        "Use 1x16 or 2x8",
        "rows a side",
        "Verdict per arm",
        "How far this goes limits it",
        "Table 1. Elapsed",
    ]

    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert "the two are equivalent within 1%" in text
    assert (
        "4x4 is slower by 1.9% (1.4 to 2.4), 8x2 by 2.2% (1.8 to 2.7) and 16x1 by 3.7% (3.2 to 4.2)." in text
    )
    assert "76,452" in text
    assert "+1,434 ms, +1.9%" in text


def apart(label: str, block: int, size: int, form: str) -> float:
    """2x8 and 4x4 are as the reference at 500 and slower at 1,000; the reference varies most."""
    loud = noisy(0.004, {})
    if label.startswith("1x16"):
        return loud(label, block, size, form)
    slower = 1.06 if size > 500 and label in ("2x8", "4x4") else 1.0
    return noisy(0.0002, {"8x2": 0.05, "16x1": 0.06})(label, block, size, form) * slower


def test_words_at_single_sizes_are_one_plain_sentence_for_all_arms(loaded: Load) -> None:
    """The stress is on what to use; what holds at one size alone follows once, in the same lighter type."""
    page = page_text(loaded(Story(ms=apart)))
    said = "At 500 rows a side 2x8 and 4x4 are equivalent within 1%."

    assert re.search(rf"<p class=\"sentence\">Use <b>1x16</b>[^<]* {re.escape(said)}</p>", page)
    assert text_of(page).count("At 500 rows a side") == 2  # in the answer, and among the warnings


def test_what_preflight_found_is_said_once_where_it_belongs(loaded: Load) -> None:
    """What bounds the result's meaning with the limits, before any table; the rest among the warnings."""
    shipped = {"id": "P24", "severity": "warn", "what": "Its logs are shipped.", "fix": "Pause the job."}
    text = text_of(page_text(loaded(Story(preflight=(*Story().preflight, shipped)))))
    limits = text[text.rindex("How far this goes") : text.index("Table 1. Elapsed")]

    assert "(Q06)" in limits
    assert "Its logs are shipped." not in limits
    assert [text.count(id) for id in ("Q06", "P24")] == [1, 1]
    assert text.count("fit the processor's cache") == text.count("Its logs are shipped.") == 1


def test_simulated_is_said_in_title_banner_footer_and_file_name(
    loaded: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page about the lab says so wherever a figure may be copied from."""
    monkeypatch.chdir(tmp_path)
    path = write_report(loaded(GOLDEN_STORY), None, "html")[0]
    page = path.read_text(encoding="utf-8")

    assert path == Path("reports/quick.1.simulated.html")
    assert "<title>SIMULATED: quick.1" in page
    assert page.count("SIMULATED (lab, scenario paper): not measured on hardware") == 2
    assert "No hardware was measured." in text_of(page)


def test_a_page_about_real_machines_does_not_say_simulated(
    loaded: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a lab no part of the page speaks of one."""
    monkeypatch.chdir(tmp_path)
    path = write_report(loaded(replace(GOLDEN_STORY, scenario=None)), None, "html")[0]

    assert path == Path("reports/quick.1.html")
    assert "simulated" not in path.read_text(encoding="utf-8").lower()


def test_a_page_that_cannot_be_written_names_the_way_out(loaded: Load, tmp_path: Path) -> None:
    """A folder in the place of the file is an error with the next step."""
    with pytest.raises(InputError, match="cannot be written") as raised:
        write_report(loaded(GOLDEN_STORY), tmp_path, "html")[0]

    assert "-o FILE" in str(raised.value)


def test_hostile_names_are_only_text(loaded: Load) -> None:
    """Names of VMs, arms and hosts, and messages of errors, never become part of the page's code."""
    text = study_text(vms=f"'{HOSTILE}'").replace(
        "arms: [1x16, 2x8,", "arms: [1x16, {topology: 2x8, name: '<b>\"&x</b>'},"
    )
    story = Story(
        text=text.replace("Five topologies of", HOSTILE),
        host=HOSTILE,
        esxi=f"6.0.0 {HOSTILE}",
        lost={("4x4", 1): (Lost(detail=HOSTILE),)},
        preflight=({"id": "Q06", "severity": "warn", "what": HOSTILE, "fix": HOSTILE},),
    )
    page = page_text(loaded(story))
    outline = Outline(page)

    assert HOSTILE not in page
    assert '<b>"&x' not in page
    assert outline.tags["script"] == 1
    assert outline.text.count(HOSTILE) > 8
    assert '<b>"&x</b>' in outline.text


def test_the_first_sentence_says_how_many_declared_blocks_are_complete(loaded: Load) -> None:
    """Of a run before its end, with and without a verdict withheld; of any run, in its scope."""
    stopped = Story(text=study_text(blocks=12), state=RunState.STOPPED)
    texts = [text_of(page_text(loaded(replace(stopped, stop_after=cells)))) for cells in (4 * 6, 7 * 6)]

    assert "4 of 12 declared blocks are complete. Too few boots for a verdict (4 of 6 per arm)" in texts[0]
    assert "not at its declared end, 7 of 12 declared blocks are complete" in texts[1]
    assert "7 of 12 declared blocks in random order" in texts[1]


def test_the_three_topologies_stand_side_by_side(loaded: Load) -> None:
    """Intended, predicted with its confidence, read back and seen, and how many cells count."""
    text = text_of(page_text(loaded(Story())))

    assert "2x8 2x8 2x8 2 (low; else 1) 2, 2 parts on the host 2 2 100% on one node 6 of 6" in text
    assert "1x16 1x16 1x16 1 (high) 1, 1 part on the host 1 2 100% on one node 12 of 12" in text
    assert "1x16 and 16x1 gave the guest the same number of vNUMA nodes (1)." in text


def test_what_was_run_on_what_is_complete(loaded: Load) -> None:
    """Everything that decides comparability is on the page."""
    text = text_of(page_text(loaded(GOLDEN_STORY)))

    for part in (
        *("HP ProLiant DL380 Gen9", "E5-2698 v3", "P89", "6.0.0 build 5050593", "vmx-11", "196,608 MB"),
        *("Windows Server 2016", "15.0.4355.3", "Developer Edition", "FreeTDS", "1.3.17", "113,443 rows"),
        *("Seed of the order 7", "57,344 MB", "31 of 31 settings read back equal", "name: quick"),
    ):
        assert part in text


def test_boots_that_differ_are_said_to_differ(loaded: Load) -> None:
    """When SQL Server changed during the run, the page shows every version."""
    run = loaded(GOLDEN_STORY)
    first = next(fact for fact in run.facts if (fact.scope, fact.key) == ("boot", "server"))
    assert isinstance(first.value, dict)
    other = replace(first, value={**first.value, "version": "15.0.9999.9"})
    text = text_of(page_text(replace(run, facts=(*(f for f in run.facts if f is not first), other))))

    assert re.search(r"differs between boots: 15\.0\.\d+\.\d+; 15\.0\.\d+\.\d+", text)


def test_the_order_of_boots_that_differ_is_no_difference(loaded: Load) -> None:
    """Two runs in different random order see the same values in another order: they may be compared."""
    run = loaded(GOLDEN_STORY)
    (vm,) = run.vms
    servers = [fact for fact in run.facts if (fact.scope, fact.key) == ("boot", "server")]
    values = ("ON", "OFF") * (len(servers) // 2)

    def said(order: tuple[str, ...]) -> str:
        changed = [
            replace(fact, value={"soft_numa": value}) for fact, value in zip(servers, order, strict=True)
        ]
        kept = [fact for fact in run.facts if fact not in servers]
        return str(configuration(replace(run, facts=(*kept, *changed)), vm))

    assert "differs between boots: OFF; ON" in said(values)
    assert said(values) == said(values[::-1])


def test_a_large_fleet_leaves_charts_out_and_says_so(loaded: Load) -> None:
    """Above eight VMs charts by size are left out, with the command that gives all figures."""
    names = ", ".join(f"sql-{number}" for number in range(9))
    page = page_text(loaded(Story(text=study_text(vms=names, blocks=1, sizes="500", forms="client"))))

    assert "since the run has 9 VMs" in text_of(page)
    assert "vm1-client-strip" not in page


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


def test_time_spent_on_sending_rows_is_measured_not_guessed(loaded: Load) -> None:
    """With the server form measured, the join's share is shown, and the general warning is not."""
    text = text_of(page_text(loaded(Story())))
    limits = text[text.rindex("How far this goes") : text.index("Table 1. Elapsed")]

    assert "form server) took 12% of the time of form client (1x16, 1,000 rows a side)" in limits
    assert "(ASYNC_NETWORK_IO) was 93%" in limits
    assert "(Q01)" not in limits


def test_without_the_server_form_waits_tell_what_the_clock_timed(loaded: Load) -> None:
    """Waits that fill most of the time are a limit of the result."""
    text = text_of(page_text(loaded(GOLDEN_STORY)))

    assert "93% of the elapsed time of form client was spent waiting for the network." in text


def test_waits_are_reported_by_arm_too(loaded: Load) -> None:
    """A topology may wait where another does not: one column an arm, in percent of its own time."""
    page = page_text(loaded(Story(text=study_text(sizes="500"))))
    table = page[page.index("<h3>Form client, by arm</h3>") :].partition("</table>")[0]

    assert [table.count(f">{arm}, %</th>") for arm in ARMS] == [1] * len(ARMS)
    assert table.count(">93.0</td>") == len(ARMS)


def test_a_setting_is_shown_as_its_first_change_found_it(loaded: Load) -> None:
    """vSphere reads back the number that it assigned to an automatic setting; the change knows better."""
    run = loaded(Story())
    vm = replace(run.vms[0], baseline={"settings": {"numCoresPerSocket": 16}})

    (row,) = settings_rows(run, vm)

    assert (row.name, row.before) == ("numCoresPerSocket", "4")
