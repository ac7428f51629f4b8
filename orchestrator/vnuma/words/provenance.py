"""What a run's figures were measured on, from the stored word. Pure.

None is hardware; `emulated: ...` is a machine emulated by software; anything else is the lab's scenario.
"""

from __future__ import annotations

import re

_SIMULATED = re.compile(r"simulated by vnuma-lab(?:, scenario ([\w.-]+))?")
_EMULATED = "emulated: "


def scenario_of(about: str) -> str | None:
    """The lab's scenario in a server's or machine's description of itself; a lab always includes it."""
    match = _SIMULATED.search(about)
    return (match[1] or "unnamed") if match else None


def emulated_by(program: str) -> str:
    """The word for a machine emulated by this program."""
    return f"{_EMULATED}{program}"


def kind(word: str) -> str:
    """`emulated` or `simulated`, for file names and short labels."""
    return "emulated" if word.startswith(_EMULATED) else "simulated"


def mark(word: str | None) -> str:
    """The part of a file's name before its ending: `.simulated`; empty for real figures."""
    return f".{kind(word)}" if word else ""


def banner(word: str | None) -> str:
    """The first line of every output with figures not from hardware; empty for real ones."""
    if not word:
        return ""
    if word.startswith(_EMULATED):
        return f"EMULATED ({word.removeprefix(_EMULATED)}): not measured on hardware"
    return f"SIMULATED (lab, scenario {word}): not measured on hardware"


def measured_on(word: str | None) -> str:
    """Table text: what was measured on."""
    if not word:
        return "real machines"
    if word.startswith(_EMULATED):
        return f"a machine emulated by {word.removeprefix(_EMULATED)}"
    return f"the lab, scenario {word}"


def in_json(word: str | None) -> dict[str, bool | str | None]:
    """The keys in every JSON document: whether hardware was measured, and the lab's scenario."""
    return {"simulated": word is not None, "scenario": word}


def why_no_hardware(word: str) -> str:
    """Why figures of the lab or of an emulator apply to no machine."""
    if word.startswith(_EMULATED):
        return (
            f"The machine is emulated by {word.removeprefix(_EMULATED)}, where local and remote memory "
            "cost the same: the times say nothing about any real machine."
        )
    model = f"the cost model of the lab's scenario {word}"
    return f"The times come from {model}: they say nothing about any real machine."
