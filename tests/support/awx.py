"""AWX without its server: what it would make of `awx/`, and a job as it launches one.

A job's private data folder has the project, the inventory as a script and the survey's answers as extra
variables. With the credentials' injected environment it is streamed to ansible-runner's worker, which streams
events and artifacts back. Which variables AWX sets, how it renders injectors, and what a pod is told to run:
https://github.com/ansible/awx/blob/24.6.1/awx/main/tasks/jobs.py (build_env, build_inventory,
build_extra_vars_file), tasks/receptor.py and models/credential/__init__.py (inject_credential).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from ansible_runner.streaming import Processor, Transmitter
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import ImmutableSandboxedEnvironment
from ruamel.yaml import YAML

_TIMEOUT_S = 600
AWX = Path(__file__).resolve().parents[2] / "awx"

NO_HOME = "/proc/fs"
"""A folder in which nobody can make anything, root neither."""

_BLOCKED = {"PATH", "PYTHONPATH", "VIRTUAL_ENV", "JOB_ID", "INVENTORY_ID", "AWX_HOST", "PROJECT_REVISION"}
"""Some of ENV_BLOCKLIST in awx/main/constants.py; nor does AWX take a name that begins with ANSIBLE_."""


@dataclass(frozen=True)
class Unsafe:
    """A value with the tag !unsafe: Ansible hands it on as it is."""

    text: str


def load(path: Path) -> Any:
    """A YAML file of `awx/`."""
    yaml = YAML(typ="safe")
    yaml.constructor.add_constructor("!unsafe", lambda _, node: Unsafe(node.value))
    return yaml.load(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Object:
    """What a task of configure.yml makes in AWX: a module of awx.awx and its parameters, rendered."""

    module: str
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name in AWX."""
        return str(self.parameters["name"])


@cache
def objects() -> tuple[Object, ...]:
    """Everything that awx/configure.yml makes, in its order."""
    (play,) = load(AWX / "configure.yml")
    known = {"vnuma_awx_scm_url": "https://git.example.com/site.git", **play["vars"]}
    known["vnuma_awx_sites"] = ["site-b"]
    for file in play["vars_files"]:
        known |= load(AWX / file)
    (included,) = play["tasks"]
    return tuple(
        made for file in included["loop"] for task in load(AWX / file) for made in _made(task, known)
    )


def _made(task: dict[str, Any], known: Mapping[str, Any]) -> list[Object]:
    (module,) = (name for name in task if name.startswith("awx.awx."))
    items = _rendered(task.get("loop", [None]), known)
    return [
        Object(module.removeprefix("awx.awx."), _rendered(task[module], {**known, "item": item}))
        for item in items
    ]


def _rendered(value: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(value, Unsafe):
        return value.text
    if isinstance(value, Mapping):
        return {name: _rendered(one, known) for name, one in value.items()}
    if isinstance(value, list):
        return [_rendered(one, known) for one in value]
    return _JINJA.from_string(value).render(known) if isinstance(value, str) and "{{" in value else value


_JINJA = NativeEnvironment()


def named(module: str, name: str) -> dict[str, Any]:
    """The parameters of one object."""
    (found,) = (one.parameters for one in objects() if (one.module, one.name) == (module, name))
    return found


def injected(credential: str, inputs: Mapping[str, str]) -> dict[str, str]:
    """The environment that a credential with these inputs gives to a job. Inputs left out are empty."""
    kind = named("credential_type", credential)
    assert set(kind["inputs"]["required"]) <= set(inputs) <= {one["id"] for one in kind["inputs"]["fields"]}
    assert set(kind["injectors"]) == {"env"}
    environment = {
        name: ImmutableSandboxedEnvironment().from_string(text).render(**inputs)
        for name, text in kind["injectors"]["env"].items()
    }
    assert not [name for name in environment if name in _BLOCKED or name.startswith("ANSIBLE_")]
    return environment


@dataclass(frozen=True)
class Ended:
    """How a job ended: its status, what it printed, and its artifacts (set_stats)."""

    status: str
    text: str
    artifacts: dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A job that was launched: its worker, and the stream that it writes."""

    place: Path
    process: subprocess.Popen[bytes]
    stream: IO[bytes]

    def cancel(self) -> Ended:
        """As AWX cancels a job: it ends the pod, and the runner in it kills the play."""
        os.killpg(self.process.pid, signal.SIGTERM)
        return self.wait()

    def wait(self) -> Ended:
        """Its end."""
        self.process.wait(timeout=_TIMEOUT_S)
        with self.stream:
            self.stream.seek(0)
            status, _ = Processor(_input=self.stream, private_data_dir=str(self.place), quiet=True).run()
        files = (self.place / "artifacts" / "job_events").glob("*.json")
        events = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        events.sort(key=lambda event: event["counter"])
        left = [
            one["event_data"].get("artifact_data") for one in events if one["event"] == "playbook_on_stats"
        ]
        text = "\n".join(one["stdout"] for one in events)
        return Ended(status, text, left[0] or {} if left else {})


def on_this_machine(folder: Path) -> list[str]:
    """The command of a worker without a container: the runner beside this Python, and no home."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in ("TMPDIR", "LANG") or name.startswith("COVERAGE_")
    }
    programs = Path(sys.executable).parent
    environment |= {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",  # as the image has it
        "ANSIBLE_HOME": str(folder / "ansible"),  # what Ansible itself writes; an image has /runner for it
        "HOME": NO_HOME,
    }
    given = [f"{name}={value}" for name, value in environment.items()]
    worker = [str(programs / "ansible-runner"), "worker", f"--private-data-dir={folder}"]
    return ["env", "-i", *given, *worker]


@dataclass(frozen=True)
class Worker:
    """Where jobs run."""

    command: Callable[[Path], list[str]]
    """That of ansible-runner's worker whose private data folder is this one, which is empty."""
    home: str
    """A folder for vnuma's own files there."""


@dataclass
class Launcher:
    """Launches templates, each job in a new private data folder below `folder`."""

    folder: Path
    hosts: Mapping[str, Any]
    """The inventory, as its YAML has it."""
    inputs: Mapping[str, Mapping[str, str]]
    """The credentials' inputs by name."""
    project: Mapping[str, str]
    """Files of the site's project, besides or instead of those of awx/project."""
    worker: Worker
    count: int = 0

    def launch(self, template: str, **answers: Any) -> Ended:
        """Launch one with the defaults of its survey, and these answers or artifacts; wait for its end."""
        return self.start(template, **answers).wait()

    def start(self, template: str, **answers: Any) -> Job:
        """The same without waiting. As in a container group, a worker gets everything as one stream."""
        asked = {one["variable"]: one for one in named("job_template", template)["survey_spec"]["spec"]}
        variables = {name: one["default"] for name, one in asked.items() if one["default"] != ""} | answers
        assert not [name for name, one in asked.items() if one["required"] and name not in variables]
        place = self._prepared(variables)
        theirs = place.with_name(f"{place.name}-worker")
        theirs.mkdir()
        theirs.chmod(0o777)  # of a user that is not known beforehand
        with tempfile.TemporaryFile() as payload:
            Transmitter(
                _output=payload,
                private_data_dir=str(place),
                ident=self.count,
                playbook=named("job_template", template)["playbook"],
                inventory="inventory/hosts",
                envvars=self._environment(template, place),
                suppress_env_files=True,
                fact_cache_type="",
            ).run()
            payload.seek(0)
            stream = tempfile.TemporaryFile()  # noqa: SIM115 - `wait` closes it; unnamed, as it has passwords
            command = self.worker.command(theirs)
            process = subprocess.Popen(command, stdin=payload, stdout=stream, process_group=0)
        return Job(place, process, stream)

    def _prepared(self, variables: Mapping[str, str]) -> Path:
        self.count += 1
        place = self.folder / f"job{self.count}"
        shutil.copytree(AWX / "project", place / "project")
        for name, text in self.project.items():
            (place / "project" / name).write_text(text, encoding="utf-8")
        (place / "inventory").mkdir()
        (place / "env").mkdir()
        (place / "env" / "cmdline").write_text("-u root", encoding="utf-8")
        settings = {"suppress_ansible_output": True, "suppress_output_file": True}
        (place / "env" / "settings").write_text(json.dumps(settings), encoding="utf-8")
        answers = "".join(f"{name}: !unsafe {json.dumps(text)}\n" for name, text in variables.items())
        (place / "env" / "extravars").write_text(answers, encoding="utf-8")
        script = place / "inventory" / "hosts"
        script.write_text(
            f"#! /usr/bin/env python3\nprint({json.dumps(_as_script(self.hosts))!r})\n", encoding="utf-8"
        )
        script.chmod(0o700)
        return place

    def _environment(self, template: str, place: Path) -> dict[str, str]:
        own = {
            "JOB_ID": str(self.count),
            "INVENTORY_ID": "1",
            "AWX_HOST": "https://awx.example.com",
            "AWX_PRIVATE_DATA_DIR": str(place),
            "PROJECT_REVISION": "0" * 40,
            "ANSIBLE_FORCE_COLOR": "True",
            "ANSIBLE_HOST_KEY_CHECKING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": "/runner/cp",
            "ANSIBLE_ROLES_PATH": "/runner/requirements_roles:~/.ansible/roles:/usr/share/ansible/roles",
            "ANSIBLE_COLLECTIONS_PATH": "/runner/requirements_collections:~/.ansible/collections",
        }
        given: dict[str, str] = {}
        for credential in named("job_template", template)["credentials"]:
            given |= injected(credential, self.inputs[credential])
        return own | given


def _as_script(hosts: Mapping[str, Any]) -> dict[str, Any]:
    """As AWX's inventory script prints it: groups with their variables, and variables by host."""
    ((group, inside),) = hosts["all"]["children"].items()
    return {
        "all": {"children": [group], "vars": {}},
        group: {"hosts": list(inside["hosts"]), "vars": dict(inside["vars"])},
        "_meta": {"hostvars": dict(inside["hosts"])},
    }
