"""ansible-playbook, with its tasks' results in the file that VNUMA_TEST_RECORD names."""

from __future__ import annotations

from pathlib import Path

from ansible import constants
from ansible.cli import playbook
from ansible.plugins.loader import callback_loader

CALLBACKS = Path(__file__).parent / "callbacks"


def main() -> None:
    """Run it. The callback is not enabled by a setting, since those are read when Ansible is imported."""
    callback_loader.add_directory(str(CALLBACKS))
    constants.CALLBACKS_ENABLED.append("record")
    playbook.main()
