"""Plays with the strategy that lose something essential: they end; Ansible's own would wait forever."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LIMIT_S = 120

UNTIL_GONE = "until [ -e gone ]; do sleep 0.01; done"
"""Shell: wait until nobody reads what the play prints."""

CALLBACK = f"""
import subprocess
from ansible.plugins.callback import CallbackBase

class CallbackModule(CallbackBase):
    def v2_playbook_on_task_start(self, task, is_conditional):
        if task.name == "lose the terminal":
            subprocess.run("touch begun; {UNTIL_GONE}", shell=True)
"""
"""The play pauses between announcing a task and starting it."""

SELDOM = """
import sys
from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import strategy_loader

class CallbackModule(CallbackBase):
    def v2_playbook_on_play_start(self, play):
        kind = strategy_loader.get("vnuma.vnuma.watched", class_only=True)
        sys.modules[kind.__module__].LOOK_S = 1000
"""
"""The play checks its workers after a quarter of an hour."""

STAY = """
import pathlib, signal, time

def stay(mark):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pathlib.Path(mark).touch()
    time.sleep(10_000)

class FilterModule:
    def filters(self):
        return {"stay": stay}
"""
"""A worker that ignores SIGTERM, as one does that has not set up its handling of signals when it comes."""


def write_play(folder: Path, tasks: Sequence[Mapping[str, Any]], hosts: str = "a,") -> list[str]:
    """The command that plays these tasks on some hosts."""
    document = [{"hosts": "all", "gather_facts": False, "strategy": "vnuma.vnuma.watched", "tasks": tasks}]
    (folder / "play.yml").write_text(json.dumps(document), encoding="utf-8")
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    return [program, "-i", hosts, "-e", "ansible_connection=local", str(folder / "play.yml")]


def environment(folder: Path) -> dict[str, str]:
    """Of a play that tells when each task begins on each host, as the runner's plays do."""
    return {**os.environ, "ANSIBLE_HOME": str(folder / "ansible"), "ANSIBLE_SHOW_PER_HOST_START": "1"}


def say(template: str, **fields: Any) -> dict[str, Any]:
    """A task that evaluates a template in its worker."""
    return {"ansible.builtin.debug": {"msg": template}, **fields}


def shell(script: str) -> str:
    """A template that runs a shell script; `$PPID` is the process that evaluates it."""
    return f"{{{{ lookup('ansible.builtin.pipe', '{script}') }}}}"


def left_alone(folder: Path, command: Sequence[str]) -> int:
    """Exit status of a play whose terminal goes away once it has made the file `begun`. It has to end."""
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    with subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as playing:
        os.close(theirs)
        try:
            until = time.monotonic() + LIMIT_S
            while not (folder / "begun").exists():
                _drain(ours)
                assert playing.poll() is None
                assert time.monotonic() < until
                time.sleep(0.01)
            os.close(ours)
            (folder / "gone").touch()
            return playing.wait(LIMIT_S)
        finally:
            playing.terminate()  # and its workers with it


def _drain(terminal: int) -> None:
    try:
        os.read(terminal, 65536)
    except BlockingIOError:
        return


def test_a_play_whose_terminal_goes_as_a_worker_tells_something_ends(tmp_path: Path) -> None:
    """Its collecting of results ends at the first that it can't print, and nothing comes after that."""
    first = shell(f"touch begun; {UNTIL_GONE}")
    items = [first, *map(str, range(3))]

    assert left_alone(tmp_path, write_play(tmp_path, [say("{{ item }}", loop=items)])) != 0


def test_a_play_with_more_to_tell_than_its_queue_holds_ends(tmp_path: Path) -> None:
    """Nobody collects what its worker tells: the worker waits for room, and the play's end must not."""
    items = [shell(f"touch begun; {UNTIL_GONE}"), *(f"{number}{'x' * 5000}" for number in range(60))]

    assert left_alone(tmp_path, write_play(tmp_path, [say("{{ item }}", loop=items)])) != 0


def test_a_play_whose_terminal_goes_before_a_task_begins_ends(tmp_path: Path) -> None:
    """Ansible takes the task for one that was aborted, and waits for its host."""
    plugins = tmp_path / "callback_plugins"
    plugins.mkdir()
    (plugins / "stand.py").write_text(CALLBACK, encoding="utf-8")

    assert left_alone(tmp_path, write_play(tmp_path, [say("x", name="lose the terminal")])) != 0


def test_a_result_is_taken_when_it_arrives(tmp_path: Path) -> None:
    """A play need not check its workers to get on, with one host or several."""
    plugins = tmp_path / "callback_plugins"
    plugins.mkdir()
    (plugins / "seldom.py").write_text(SELDOM, encoding="utf-8")
    command = write_play(tmp_path, [say("x")] * 3, "a,b,")

    done = subprocess.run(
        command, cwd=tmp_path, env=environment(tmp_path), timeout=LIMIT_S, check=False, capture_output=True
    )

    assert done.returncode == 0, done.stdout


def test_a_killed_worker_whose_place_is_taken_ends_the_play(tmp_path: Path) -> None:
    """Killed while the play prepares another host's task, which then takes the dead worker's place."""
    killed = "echo $PPID > worker; until [ -e preparing ]; do sleep 0.01; done; kill -9 $PPID"
    wait = (
        'touch preparing; until grep -q "^State:.Z" /proc/$(cat worker)/status; do sleep 0.01; done; echo 0'
    )
    tasks = [
        say(shell(killed), when="inventory_hostname == 'a'"),
        say("x", throttle=shell(wait)),
    ]
    command = write_play(tmp_path, tasks, "a,b,")

    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as playing:
        try:
            playing.communicate(timeout=LIMIT_S)
        finally:
            playing.terminate()  # and its workers with it

    assert playing.returncode != 0


def test_a_worker_that_takes_no_notice_of_its_end_does_not_keep_the_play(tmp_path: Path) -> None:
    """Ansible asks it once to end, and then waits for it."""
    plugins = tmp_path / "filter_plugins"
    plugins.mkdir()
    (plugins / "stay.py").write_text(STAY, encoding="utf-8")
    killed = "until [ -e stays ]; do sleep 0.01; done; kill -9 $PPID"
    tasks = [say(f"{{{{ {shell(killed)[3:-3]} if inventory_hostname == 'a' else 'stays' | stay }}}}")]

    status = subprocess.run(
        write_play(tmp_path, tasks, "a,b,"),
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=LIMIT_S,
        check=False,
    )

    assert status.returncode != 0


def test_a_killed_play_leaves_no_worker_that_waits_for_room(tmp_path: Path) -> None:
    """It has more to tell than the queue holds, and holds open itself the end from which nobody reads."""
    wait = "echo $PPID > partial; mv partial worker; until [ -e gone ]; do sleep 0.01; done"
    items = [shell(wait), *(f"{number}{'x' * 5000}" for number in range(60))]
    command = write_play(tmp_path, [say("{{ item }}", loop=items)])
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as playing:
        until = time.monotonic() + LIMIT_S
        while not (tmp_path / "worker").exists():
            assert playing.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        number = int((tmp_path / "worker").read_text())
        worker = os.pidfd_open(number)
        playing.kill()
    (tmp_path / "gone").touch()
    try:
        ended, _, _ = select.select([worker], [], [], LIMIT_S)
    finally:
        os.close(worker)

    if not ended:
        os.kill(number, signal.SIGKILL)
    assert ended
