"""The page for a change board: what a study changes on which VM, when, and how it is restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vnuma.report.page.template import filled, write_file

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SettingLine:
    """A setting that the study changes: its present value, every value it takes, and `now` again."""

    name: str
    now: str
    during: str


@dataclass(frozen=True)
class ArmLine:
    """One arm as text: what the guest is predicted to see, or why the arm is impossible; and how sure.

    For a machine: whose CPUs read, and where the pages are.
    """

    label: str
    prediction: str
    confidence: str


@dataclass(frozen=True)
class Risk:
    """A finding of preflight: `severity` is block or warn."""

    id: str
    severity: str
    what: str
    help: str


@dataclass(frozen=True)
class VmChange:
    """Everything that happens to one VM."""

    name: str
    path: str
    where: str
    kind: str
    power: str
    boots: str
    duration: str
    settings: Sequence[SettingLine]
    arms: Sequence[ArmLine]
    order: Sequence[str]
    risks: Sequence[Risk]


@dataclass(frozen=True)
class ChangeWords:
    """Texts that differ between VMs and machines that are not reshaped."""

    kind: str
    """The kind of study in the page's heading: `vNUMA study`."""
    each: str
    """What happens to each VM or machine, after `Nothing has been changed yet.`"""
    cycle: str
    """What is repeated: `power-cycle`."""
    cycles: str
    columns: tuple[str, str]
    """Headings of an arm's columns, in ArmLine's order."""
    no_setting: str


VMS = ChangeWords(
    "vNUMA study",
    "Each VM below is reconfigured, power-cycled and measured again and again, and then restored to "
    "what it was.",
    "power-cycle",
    "power-cycles",
    ("The guest is predicted to see", "Confidence"),
    "No setting; the VM is power-cycled only.",
)
MACHINES = ChangeWords(
    "Page cache study",
    "Each machine below is measured again and again as it is, with its page cache dropped before each pass; "
    "it is neither reconfigured nor booted.",
    "pass",
    "passes",
    ("Reads from", "Pages lie"),
    "No setting.",
)


@dataclass(frozen=True)
class ChangePage:
    """The whole page. `banner` is empty for real machines."""

    study: str
    title: str
    banner: str
    facts: Pairs
    steps: Sequence[str]
    restore_steps: Sequence[str]
    vms: Sequence[VmChange]
    study_text: str
    study_sha256: str
    version: str
    words: ChangeWords = VMS


def write_change_page(page: ChangePage, path: Path) -> Path:
    """Write the page: one file that works offline and without scripts. Raises InputError."""
    write_file(path, change_page_text(page), "The document", fix="Name another file.")
    return path


def change_page_text(page: ChangePage) -> str:
    """The page as text."""
    return filled("change.html.j2", "style.css", "page.js", page=page)
