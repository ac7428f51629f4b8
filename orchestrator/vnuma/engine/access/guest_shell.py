"""Run scripts in a guest outside a play: each is a short play over Ansible's own connection."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any

from vnuma.assets import asset
from vnuma.domain.vm.linux import LinuxFacts, linux_facts
from vnuma.domain.workloads.settings import WorkloadSettings
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.play_input import clean_environment, write_extra_variables, write_play_inventory
from vnuma.errors import EnvironmentProblem, InputError, MachineUnreachable, PreflightBlocked
from vnuma.workloads.shell import LONGEST_S as LONGEST_S
from vnuma.workloads.shell import Output as Output
from vnuma.workloads.shell import Shell as Shell
from vnuma.workloads.shell import linux_question

_MEMORY = "/dev/shm"
"""Keep such a play's files in memory where possible, so that restoring a machine needs no disk space."""


def command(script: str, within_s: float) -> str:
    """Encode a script as one command that any remote shell can run, ended after that time."""
    return f"timeout {math.ceil(within_s)} /bin/sh -c {quote(script)}"


def output_of(result: Mapping[str, Any]) -> Output:
    """Ansible's result of a command. Becoming root uses a terminal, which ends lines with CR LF."""
    text = {name: str(result.get(name) or "").replace("\r\n", "\n") for name in ("stdout", "stderr", "msg")}
    return Output(int(result.get("rc", 1)), text["stdout"], text["stderr"] or text["msg"])


def refused(name: str, why: object) -> MachineUnreachable:
    """The error for a connection that failed."""
    words = " ".join(str(why).split()).rstrip(". ")[:300]
    return MachineUnreachable(
        f"{name} cannot be reached by Ansible: {words}.",
        fix=f"Test it: ansible {name} -i INVENTORY -m raw -a id",
    )


_NO_SSH = "Unable to execute ssh command line on a controller"
"""Ansible's message when this machine has no ssh."""


def run_on(
    names: Sequence[str], inventory: Inventory, script: str, within_s: float = LONGEST_S
) -> dict[str, Output | MachineUnreachable]:
    """Run one script as root on machines in parallel: each one's output, or why it could not be reached."""
    import ansible_runner  # noqa: PLC0415 - half a second that only a study of machines pays

    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with TemporaryDirectory(prefix="vnuma-ask-", dir=place) as folder:
        try:
            hosts = write_play_inventory(Path(folder), inventory, {}, names)
        except (InputError, EnvironmentProblem) as error:
            return {name: refused(name, error.what) for name in names}
        write_extra_variables(Path(folder), vnuma_hosts=names, vnuma_script=command(script, within_s))
        with clean_environment(Path(folder)):
            done = ansible_runner.interface.run(
                private_data_dir=folder,
                playbook=str(asset("playbooks/shell.yml")),
                inventory=str(hosts),
                settings={"suppress_ansible_output": True},
                quiet=True,
            )
        answers = {name: answer for event in done.events for name, answer in _answer(event)}
    silent = refused("the play", "it ended without an answer")
    return {name: answers.get(name, silent) for name in names}


def _answer(event: Mapping[str, Any]) -> list[tuple[str, Output | MachineUnreachable]]:
    told = event.get("event_data", {})
    name, result = str(told.get("host", "")), told.get("res", {})
    if event.get("event") == "runner_on_unreachable":
        return [(name, refused(name, result.get("msg", "no reason given")))]
    if _NO_SSH in str(result.get("msg")):
        missing = MachineUnreachable(
            f"{name} cannot be reached by Ansible: ssh is not installed on this machine.",
            fix="Install it: apt-get install openssh-client (dnf: openssh-clients).",
        )
        return [(name, missing)]
    if event.get("event") in ("runner_on_ok", "runner_on_failed"):
        return [(name, output_of(result))]
    return []


def refuse_windows(name: str, variables: Mapping[str, object]) -> None:
    """Raise PreflightBlocked for a machine that Ansible reaches as Windows, by its connection or its shell.

    https://docs.ansible.com/ansible/latest/os_guide/intro_windows.html
    """
    connection = str(variables.get("ansible_connection", "")).rpartition(".")[2]
    shell = str(variables.get("ansible_shell_type", "")).rpartition(".")[2]
    if connection in ("winrm", "psrp") or shell in ("powershell", "cmd"):
        raise PreflightBlocked(
            f"{name} runs Windows, and this workload needs a Linux machine.",
            fix="Name a Linux guest, or a Linux machine as workload.client where the workload has one.",
        )


def linux_facts_of(
    names: Collection[str], inventory: Inventory, work: WorkloadSettings
) -> dict[str, LinuxFacts]:
    """Ask every machine once what that workload needs to know. Raises as `refuse_windows` and `facts_of`."""
    for name in names:
        refuse_windows(name, inventory.hosts.get(name, {}))
    question = linux_question(getattr(work, "folder", "/var/tmp"), work.looks_at())
    answers = run_on(list(names), inventory, question) if names else {}
    return {name: facts_of(name, answer) for name, answer in answers.items()}


def facts_of(name: str, answer: Output | MachineUnreachable) -> LinuxFacts:
    """Parse a guest's facts. Raises MachineUnreachable, or PreflightBlocked without an answer."""
    if isinstance(answer, MachineUnreachable):
        raise answer
    try:
        return linux_facts(answer.stdout)
    except ValueError:
        if "@@ uid" not in answer.stdout:
            raise PreflightBlocked(
                f"{name}: Ansible cannot become root there: {answer.last_words.rstrip('.')}.",
                fix="Log in as root, or let the user run sudo without a password or with "
                "ansible_become_password (in a vault).",
            ) from None
        raise PreflightBlocked(
            f"{name} did not report its NUMA nodes: {answer.last_words}.",
            fix="It must run Linux with /sys/devices/system/node (a kernel with CONFIG_NUMA).",
        ) from None


_LOOK_AGAIN_S = 1.0


def answering(shell: Shell, within_s: float, heed: Callable[[], None] = lambda: None) -> Shell:
    """The shell, once it answers; `heed` may raise between tries. Raises MachineUnreachable at the end."""
    until = time.monotonic() + within_s
    while True:
        try:
            shell("true")
        except MachineUnreachable:
            if time.monotonic() >= until:
                raise
            heed()
            time.sleep(_LOOK_AGAIN_S)
        else:
            return shell


def run_at(name: str, inventory: Inventory, script: str, within_s: float = LONGEST_S) -> Output:
    """Run a script as root on one machine, as a play of its own. Raises MachineUnreachable."""
    said = run_on([name], inventory, script, within_s)[name]
    if isinstance(said, MachineUnreachable):
        raise said
    return said
