"""Options of the actions as Ansible reads them, once for all tests."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.unit.ansible.content import ACTIONS, Options

_PROGRAM = """
import json, sys
from ansible.plugins.loader import action_loader, init_plugin_loader
init_plugin_loader()
plugins = {name: action_loader.get(f"vnuma.vnuma.{name}", class_only=True) for name in sys.argv[1:]}
print(json.dumps({name: plugin.spec for name, plugin in plugins.items()}))
"""


@pytest.fixture(scope="session")
def specs() -> dict[str, Options]:
    """Argument specs by action. A process of its own, since Ansible's loader changes how Python imports."""
    command = [sys.executable, "-c", _PROGRAM, *ACTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Options] = json.loads(done.stdout)
    return found
