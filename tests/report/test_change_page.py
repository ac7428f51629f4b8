"""The page for a change board."""

from __future__ import annotations

from typing import Any

from vnuma.report.page.change_page import ArmLine, ChangePage, Risk, SettingLine, VmChange, change_page_text

HOSTILE = "<script>alert(1)</script>"


def page(**changes: str) -> ChangePage:
    """A page whose every text is hostile."""
    vm = VmChange(
        name=HOSTILE,
        path=HOSTILE,
        where=HOSTILE,
        kind=HOSTILE,
        power=HOSTILE,
        boots=HOSTILE,
        duration=HOSTILE,
        settings=[SettingLine(HOSTILE, HOSTILE, HOSTILE)],
        arms=[ArmLine(HOSTILE, HOSTILE, HOSTILE)],
        order=[HOSTILE],
        risks=[Risk("P08", "block", HOSTILE, HOSTILE)],
    )
    fields: dict[str, Any] = {
        "study": HOSTILE,
        "title": HOSTILE,
        "banner": "",
        "study_text": HOSTILE,
        "version": "1",
    } | changes
    return ChangePage(
        facts=((HOSTILE, HOSTILE),),
        steps=[HOSTILE],
        restore_steps=[HOSTILE],
        vms=[vm],
        study_sha256="0" * 64,
        **fields,
    )


def test_no_text_becomes_markup() -> None:
    """Names and studies come from elsewhere: none of them runs in a reader's browser."""
    text = change_page_text(page())
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http" not in text.replace("http-equiv", "")


def test_simulated_is_said_in_title_head_and_foot() -> None:
    """A plan made on the lab is not mistaken for one of real machines."""
    text = change_page_text(page(banner="SIMULATED (lab, scenario paper): not measured on hardware"))
    assert "<title>SIMULATED: " in text
    assert text.count("not measured on hardware") == 2
