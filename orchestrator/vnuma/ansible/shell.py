"""A machine's shell inside a play: the task's own connection and privilege escalation."""

from __future__ import annotations

from dataclasses import dataclass

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from vnuma.engine.access.machine_shell import Output, command, output_of, refused


@dataclass(frozen=True)
class ConnectionShell:
    """`workloads.shell.Shell` for a task's host."""

    action: ActionBase
    name: str

    def run(self, script: str) -> Output:
        """Run a script, as root if the task has `become`. Raises MachineUnreachable."""
        try:
            return output_of(self.action._low_level_execute_command(command(script)))
        except AnsibleError as error:  # a failed connection, or a missing SSH client
            raise refused(self.name, error.message) from error
