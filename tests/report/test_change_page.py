"""The page for a change board."""

from __future__ import annotations

from types import SimpleNamespace

from vnuma.report.page.template import filled

HOSTILE = "<script>alert(1)</script>"


def page(banner: str = "") -> str:
    """A page whose every text is hostile."""
    texts = dict.fromkeys(("study", "each", "cycle", "cycles", "no_setting"), HOSTILE)
    vm = dict.fromkeys(("name", "path", "where", "kind", "power", "boots", "duration"), HOSTILE)
    lines = {"settings": [(HOSTILE,) * 3], "arms": [(HOSTILE,) * 3], "order": [HOSTILE]}
    risk = SimpleNamespace(id="P08", severity="block", what=HOSTILE, fix=HOSTILE)
    return filled(
        "change.html.j2",
        "style.css",
        "page.js",
        **dict.fromkeys(("study", "title", "study_text"), HOSTILE),
        banner=banner,
        kind=SimpleNamespace(**texts, columns=(HOSTILE, HOSTILE), restore_steps=[HOSTILE]),
        facts=((HOSTILE, HOSTILE),),
        steps=[HOSTILE],
        vms=[{**vm, **lines, "risks": [risk]}],
        study_sha256="0" * 64,
        version="1",
    )


def test_no_text_becomes_markup() -> None:
    """Names and studies come from elsewhere: none of them runs in a reader's browser."""
    text = page()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http" not in text.replace("http-equiv", "")


def test_simulated_is_said_in_title_head_and_foot() -> None:
    """A plan made on the lab is not mistaken for one of real machines."""
    text = page(banner="SIMULATED (lab, scenario paper): not measured on hardware")
    assert "<title>SIMULATED: " in text
    assert text.count("not measured on hardware") == 2
