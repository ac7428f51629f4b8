"""The screen and the commands of set-up. Standard library only, and read by Python 3.7, to be refused."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from shlex import quote

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
EXIT = 4
"""As for every problem of the environment (docs/reference/exit-codes.md)."""

STEPS = 4
BEAT_S = 20
WIDTH = 80
_PROXY = re.compile(r"(?<=://)[^/@\s]+@")
"""User and password in an address."""


class SetupFailed(Exception):
    """A step cannot be done: one sentence, and what to do next."""


class Step:
    """One numbered line on the screen: what is being done, then what came of it and the seconds."""

    def __init__(self, number: int, label: str) -> None:
        self._head = f"[{number}/{STEPS}] {label:<8} "
        self._start = time.monotonic()
        self._overwrite = False
        self._ended = threading.Event()

    def say(self, text: str) -> None:
        """Tell what is about to happen. A terminal shows it until the step is done.

        Every 20 s the seconds are shown, so that a long step does not look dead.
        """
        line = self._head + text
        self._show(line)
        self._ended.set()
        self._ended = threading.Event()
        threading.Thread(target=self._beat, args=(line, self._ended), daemon=True).start()

    def _beat(self, line: str, ended: threading.Event) -> None:
        while not ended.wait(BEAT_S):
            self._show(f"{line}, {time.monotonic() - self._start:.0f} s")

    def _show(self, line: str) -> None:
        self._clear()
        self._overwrite = sys.stdout.isatty() and len(line) < WIDTH
        print(line, end="" if self._overwrite else "\n", flush=True)

    def note(self, text: str) -> None:
        """Tell something that is to stay on the screen."""
        self._clear()
        print(" " * len(self._head) + text, flush=True)

    def done(self, text: str) -> None:
        """End the line: the outcome, and how long it took."""
        self._ended.set()
        seconds = f"{time.monotonic() - self._start:.0f} s"
        line = self._head + text
        self._clear()
        print(f"{line:<{WIDTH - 6}}{seconds:>6}", flush=True)

    def _clear(self) -> None:
        if self._overwrite:
            print("\r" + " " * (WIDTH - 1), end="\r")
            self._overwrite = False


def run(*command: str | Path, what: str, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Run a command quietly and return what it said; SetupFailed says why it failed, or its last lines."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise SetupFailed(f"{what} failed: {explained(done.stdout, done.returncode)}")
    return done.stdout


def succeeds(*command: str | Path, env: dict[str, str] | None = None) -> bool:
    """Whether a command is there and ends well; what it says does not matter."""
    words = [str(word) for word in command]
    try:
        return subprocess.run(words, env=env, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def ask(code: str, **environment: str) -> str:
    """What the virtual environment's Python prints for `code`; SetupFailed with the error's last words."""
    env = {**os.environ, **environment}
    try:
        done = subprocess.run(
            [str(PYTHON), "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise SetupFailed(_broken(str(error))) from error
    if done.returncode == 0:
        return done.stdout.strip()
    said = done.stderr.strip()
    if "Traceback" in said or not said:
        raise SetupFailed(_broken(said.splitlines()[-1] if said else f"it ended with {done.returncode}"))
    raise SetupFailed(said)


def _broken(why: str) -> str:
    full = " Make room on the disk (df -h .)." if "No space left" in why else ""
    anew = f"rm -rf {quote(str(VENV))} && make setup"
    return f"The Python in {VENV} does not work: {why}.{full}\n  Make it anew: {anew}"


def pip_install(*arguments: str | Path, what: str) -> None:
    """Install into the virtual environment with pip, no questions, no check for newer pips.

    Python compiles a module when it is first imported: of all that is installed a tenth ever is, and
    nothing of pip (-B), which runs a few times.
    """
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input", "--retries=2", "--no-compile")
    run(PYTHON, "-B", "-m", "pip", "install", *quiet, *arguments, what=what)


_CAUSES = (
    (r"No space left on device|Errno 28|Disk quota exceeded", "the disk is full.",
     "Make room (df -h . ~ ${TMPDIR:-/tmp}), then: make setup"),
    (r"ProxyError|Cannot connect to proxy|Tunnel connection failed|invalid proxy",
     "the proxy lets nothing through.", "Correct HTTPS_PROXY (now: {proxy}), then: make setup"),
    (r"CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerification", "the registry's certificate is not trusted.",
     "Name your company's CA: PIP_CERT=/path/to/ca.pem make setup"),
    (r"NewConnectionError|NameResolutionError|Failed to establish|[Nn]ame resolution|Could not resolve"
     r"|Network is unreachable|ConnectTimeout|timed out|No route to host|Connection refused",
     "the network does not reach the package registry.",
     "Check the network, or name a proxy (HTTPS_PROXY) or a mirror (PIP_INDEX_URL), then: make setup"),
    (r"DO NOT MATCH THE HASHES", "a file came that is not the locked one.",
     ".venv/bin/python -m pip cache purge; if it comes again, ask who keeps your mirror. Then: make setup"),
    (r"command '.*(gcc|cc|c\+\+)' failed|Failed building wheel|Failed to build|Unknown compiler",
     "a package has no wheel for this Python and processor, and could not be compiled.",
     "Use Python 3.11 to 3.13 on x86_64 or aarch64: make setup PYTHON=python3.12"),
    (r"Permission denied|Errno 13", "a file there belongs to another user.",
     "Make it yours: sudo chown -R \"$(id -u)\" . ~/.cache; then: make setup"),
)  # fmt: skip


def explained(output: str, status: int) -> str:
    """A cause that is known in one sentence and its remedy; else the command's last lines."""
    for pattern, why, fix in _CAUSES:
        if re.search(pattern, output):
            return f"{why}\n  {fix.replace('{proxy}', _proxy())}"
    last = "\n".join("    " + line for line in output.strip().splitlines()[-12:])
    return f"it ended with {status}.\n{_PROXY.sub('', last)}\n  Correct that, then: make setup"


def _proxy() -> str:
    """The proxy's address, without user and password."""
    names = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")
    return next((_PROXY.sub("", os.environ[name]) for name in names if os.environ.get(name)), "not set")


def root_on_debian() -> bool:
    """Whether a missing system package may be installed here (by apt, said aloud)."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(step: Step, *packages: str) -> bool:
    """Install Debian packages; False when apt could not."""
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    step.note(f"as root on Debian: {' '.join(install)}")
    if succeeds(*install, env=env):
        return True
    step.note("as root on Debian: apt-get update, then the same again")
    if succeeds("apt-get", "update", env=env) and succeeds(*install, env=env):
        return True
    step.note("apt could not install it")
    return False
