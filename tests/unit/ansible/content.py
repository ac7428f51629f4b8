"""The collection's files as the tests compare them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]

Options = dict[str, dict[str, Any]]

ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())
ACTIONS = sorted(path.stem for path in (ROOT / "plugins" / "action").glob("*.py"))


def load(path: str) -> Any:
    """A YAML file of the repository."""
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def role_options(role: str) -> Options:
    """The options of a role's argument_specs."""
    options: Options = load(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    return options


def stub_block(action: str, name: str) -> Any:
    """DOCUMENTATION, EXAMPLES or RETURN of an action's documentation stub, parsed."""
    text = (ROOT / "plugins" / "modules" / f"{action}.py").read_text(encoding="utf-8")
    found = re.search(rf'^{name} = r"""\n(.*?)^"""', text, re.MULTILINE | re.DOTALL)
    assert found, f"{action} has no {name}"
    return yaml.safe_load(found.group(1))
