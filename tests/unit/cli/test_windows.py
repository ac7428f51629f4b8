"""Verbs that only read start without the modules that Windows does not have; those that change say WSL 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.build import Story, store_of, study_text
from vnuma.report.archive.write import export_run
from vnuma.report.model.model import load_run

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[3]
WITHOUT = """
import contextlib, io, json, os, sys
import numpy  # looks at Linux's kernel, on Linux only
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
del os.uname, os.getuid
from vnuma.cli.main import main
for arguments in json.load(sys.stdin):
    sys.argv = ["vnuma", *arguments]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    print(json.dumps([code, said.getvalue()[-300:]]))
"""
COREINFO = """Logical Processor to NUMA Node Map:
********--------  NUMA Node 0
--------********  NUMA Node 1
"""
HOST = ("--host-nodes", "2x16/96@8.0", "--vcpus", "16", "--memory", "64")


def ended(tmp_path: Path, *verbs: tuple[str, ...]) -> list[tuple[int, str]]:
    """How each command ends, and its last words."""
    environment = {**os.environ, "VNUMA_HOME": str(tmp_path / "home")}
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        input=json.dumps(verbs),
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    return [(code, text) for code, text in map(json.loads, ran.stdout.splitlines())]


def test_what_only_reads_needs_no_unix(tmp_path: Path) -> None:
    """On a store, an archive of a run, files and descriptions."""
    story = Story(text=study_text(sizes="500", forms="client"))
    store = store_of(tmp_path / "vnuma.db", story, story)
    (tmp_path / "fixed.yml").write_text(story.text, encoding="utf-8")
    export_run(store, load_run(store, "1"), tmp_path / "quick.1.vnuma.zip")
    (tmp_path / "coreinfo.txt").write_text(COREINFO, encoding="utf-8")
    (tmp_path / "vm.vmx").write_text('numvcpus = "16"\nmemSize = "65536"\n', encoding="utf-8")
    stored = ("--store", f"sqlite:///{tmp_path}/vnuma.db")
    verbs = (
        ("predict", *HOST, "--cores-per-socket", "8"),
        ("advise", *HOST, "-o", "page.html"),
        ("check", "--design", "vm.vmx", "--host-nodes", "2x16/96@8.0", "-o", "check.html"),
        ("check", "--explain", "T14"),
        ("evidence", "coreinfo.txt"),
        ("power", "fixed.yml", "--effect", "1%"),
        ("reanalyse", str(ROOT / "studies/published/dakic2019.csv")),
        ("status", *stored),
        ("results", "latest", *stored),
        ("report", "latest", *stored),
        ("compare", "quick.1", "quick.2", *stored),
        ("export", "quick.1", *stored),
        ("results", "quick.1.vnuma.zip"),
        ("report", "quick.1.vnuma.zip", "--format", "pdf"),
        ("version",),
    )

    found = ended(tmp_path, *verbs)

    assert [(verb[0], code, text) for verb, (code, text) in zip(verbs, found, strict=True) if code] == []


def test_what_changes_vms_names_wsl_2(tmp_path: Path) -> None:
    """In one sentence, before anything is read."""
    found = ended(tmp_path, ("run", str(ROOT / "studies/quick.yml")), ("restore",))

    assert [(code, "need WSL 2" in text) for code, text in found] == [(4, True)] * 2
