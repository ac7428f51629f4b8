"""An estate in a file: JSON with a format number, no credentials, readable by later versions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from vnuma import __version__
from vnuma.domain.vm.estate import Estate
from vnuma.errors import InputError, reading, writing
from vnuma.estate.design_vm import implausible, json_in

FORMAT = 1
"""Raised when a reader of the previous format would misunderstand the file; optional fields do not
need that.
"""

READABLE_SINCE = "0.1.0"
"""The first version of vnuma that reads this format."""

KIND = "vnuma/inventory"

MOST_BYTES = 64_000_000
"""A VM takes 4 to 8 kB: more VMs than a vCenter supports."""

_HEAD_BYTES = 200
"""The schema is a snapshot's first field."""

_ESTATES = TypeAdapter(tuple[Estate, ...])


def save(estates: Sequence[Estate], path: Path) -> None:
    """Write estates as one snapshot. Raises InputError when the file cannot be written."""
    document = {
        "schema": f"{KIND}/{FORMAT}",
        "readable_since": READABLE_SINCE,
        "written_by": __version__,
        "estates": _ESTATES.dump_python(tuple(estates), mode="json"),
    }
    with writing(path, "The snapshot"):
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def refuse_other_file(path: Path) -> None:
    """Raise InputError for a file with something else than a snapshot, which `save` would overwrite."""
    if not path.is_file():
        return
    with reading(path), path.open("rb") as file:
        begin = file.read(_HEAD_BYTES)
    if begin.strip() and f'"{KIND}/'.encode() not in begin:
        raise InputError(
            f"{path} exists and is not a snapshot, so it is not overwritten.",
            fix="Name another file: vnuma inventory save FILE",
        )


def load(path: Path) -> tuple[Estate, ...]:
    """Read a snapshot of this format or an older one.

    Raises InputError for a file that is not a snapshot, is damaged, or comes from a newer version.
    """
    return from_document(read_json(path), path)


def read_json(path: Path) -> Any:
    """A JSON file's content. Raises InputError."""
    try:
        return json_in(path, MOST_BYTES)
    except ValueError as error:
        raise InputError(
            f"{path} is not a JSON document written by vnuma: {error}.",
            fix="Write a snapshot: vnuma inventory save FILE",
        ) from error


def is_snapshot(document: Any) -> bool:
    """Whether a JSON document declares itself a snapshot."""
    return isinstance(document, dict) and str(document.get("schema", "")).startswith(f"{KIND}/")


def from_document(document: Any, path: Path) -> tuple[Estate, ...]:
    """The estates of a snapshot document. Raises InputError."""
    number = str(document["schema"]).rpartition("/")[2] if is_snapshot(document) else ""
    if not re.fullmatch("[0-9]{1,9}", number):
        raise InputError(
            f"{path} is not a snapshot of an inventory.",
            fix="Write one: vnuma inventory save FILE. An Ansible inventory is given with -i.",
        )
    if int(number) > FORMAT:
        raise InputError(
            f"{path} has format {number}; this vnuma {__version__} reads up to format {FORMAT}.",
            fix=f"Use vnuma {document.get('readable_since', 'of a later version')} or newer.",
        )
    try:
        estates = _ESTATES.validate_python(document.get("estates"), strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise InputError(
            f"{path} is damaged: estates.{where}: {first['msg']}.", fix="Save the snapshot again."
        ) from None
    for why in (why for estate in estates for why in implausible(estate)):
        raise InputError(f"{path} is damaged: {why}.", fix="Save the snapshot again.")
    return estates
