"""A play's variables about hosts are data: Ansible never treats them as templates."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from vnuma.engine.access.guest_shell import run_on
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.play_input import write_extra_variables

ODD = ["sql16", 'a "b" \\ c', "größe", "😀", "line\u2028end", "{{ 1 + 1 }}", "{% raw %}", "x: [y]"]


def test_names_are_data_and_never_templates(tmp_path: Path) -> None:
    """Each name comes out of Ansible's own reader and templar as it went in, and none has run."""
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415 - a second of imports
    from ansible.template import Templar  # noqa: PLC0415

    marker = tmp_path / "sprung"
    names = [*ODD, f"{{{{ lookup('ansible.builtin.pipe', 'touch {marker}') }}}}"]
    write_extra_variables(tmp_path, vnuma_run="quick.1", vnuma_hosts=names, vnuma_max_cells=50)
    read = DataLoader().load_from_file(str(tmp_path / "env" / "extravars"), trusted_as_template=True)
    templar = Templar(loader=DataLoader(), variables=read)

    assert {name: templar.template(value) for name, value in read.items()} == {
        "vnuma_run": "quick.1",
        "vnuma_hosts": names,
        "vnuma_max_cells": 50,
    }
    assert not marker.exists()


def test_a_host_name_does_not_run(tmp_path: Path) -> None:
    """A machine whose name would create a file: the file is not there, and another machine answers."""
    marker = tmp_path / "sprung"
    name = f"{{{{ lookup('pipe', 'touch {marker}') }}}}"
    inventory = tmp_path / "hosts.yml"
    local = {"ansible_connection": "local", "ansible_become": False}
    inventory.write_text(json.dumps({"all": {"hosts": {name: {}, "well": local}}}), encoding="utf-8")
    answers = run_on([name, "well"], Inventory(inventory), "echo here")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the runner leaves its own

    assert not marker.exists()
    assert set(answers) == {name, "well"}
