"""The README's first command on a machine that nobody prepared: a new Debian root, made for it.

What an installed machine has, hides what set-up forgets. A new root has what README asks for and no
more: as root git, make and python3; as an ordinary user python3-venv too. It reaches the package
registries as this machine does, whose settings are handed through when it runs. Needs root and mmdebstrap.

    python3 -m tools.fresh                    `make demo` cold and warm, as root and as a user
    python3 -m tools.fresh --quick            as a user: `make setup`, then the lab through pyodbc; with
                                              this machine's pip cache and its built lab
    python3 -m tools.fresh --offline ARCHIVE  as a user without any network: what `make wheelhouse`
                                              made, then the demo
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEWCOMER = "newcomer"
SUITE = "bookworm"
"""The Debian release."""
PACKAGES = ("ca-certificates", "git", "make", "python3", "python3-venv")
WITHOUT_VENV = (
    "dpkg --purge $(dpkg-query -W -f '${Package}\\n' 'python3*-venv' python3-pip-whl python3-setuptools-whl)"
)
"""Root gets these by apt through set-up itself; one of them has the release's Python version in its name."""

HANDED_THROUGH = re.compile(
    r"(PIP_(?!CACHE_DIR)\w+|GO(PROXY|SUMDB|NOSUMDB|PRIVATE|NOPROXY|FLAGS|INSECURE)|SSL_CERT_\w+"
    r"|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO|(https?|all|no)_proxy)",
    re.IGNORECASE,
)
"""Environment variables that say how the registries are reached."""

CONNECTS = (
    "make setup && PATH=$PWD/.venv/bin:$PATH && vnuma lab up && "
    "{ vnuma doctor -i inventories/lab/lab.vnuma.yml; status=$?; vnuma lab down; exit $status; }"
)
COLD_S, WARM_S = 480, 120

IN_THE_ROOT = """
set -eu
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys"
mount --rbind /dev "$1/dev"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
root=$1 account=$2 command=$3
shift 3
exec chroot --userspec="$account:$account" "$root" /usr/bin/env -i "$@" sh -c "cd && $command"
"""


def handed_through() -> dict[str, str]:
    """This machine's environment variables of that kind."""
    return {name: value for name, value in os.environ.items() if HANDED_THROUGH.fullmatch(name)}


class NotPossible(Exception):
    """This machine cannot make a root: one sentence, and what to do next."""


@dataclass(frozen=True)
class Took:
    """How long a command took: by the clock, and of the processors."""

    seconds: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s ({self.cpu:.0f} s of CPU)"


@dataclass(frozen=True)
class Fresh:
    """A new root, and the account that the commands run under."""

    root: Path
    account: str

    @property
    def home(self) -> Path:
        """The account's folder, as this machine sees it."""
        return self.root / ("root" if self.account == "root" else f"home/{self.account}")

    offline: bool = False
    """Commands run in a network namespace of their own, which has its loopback and no route."""

    def run(self, command: str) -> Took:
        """Run a command in the account's folder. CalledProcessError."""
        environment = {
            "HOME": f"/{self.home.relative_to(self.root)}",
            "USER": self.account,
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            **handed_through(),
        }
        print(f"--- {self.account}$ {command}", flush=True)
        start, used = time.monotonic(), _cpu()
        spaces = ["--mount", "--pid", *(["--net"] if self.offline else []), "--fork", "--kill-child"]
        up = "ip link set lo up\n" if self.offline else ""
        inside = ["unshare", *spaces, "sh", "-c", up + IN_THE_ROOT, "sh"]
        variables = [f"{name}={value}" for name, value in environment.items()]
        subprocess.run(
            [*inside, str(self.root), self.account, command, *variables], stdin=subprocess.DEVNULL, check=True
        )
        return Took(time.monotonic() - start, _cpu() - used)

    def megabytes(self, place: str) -> int:
        """What a folder in the account's folder takes on disk."""
        du = ["du", "-sm", str(self.home / place)]
        return int(subprocess.run(du, capture_output=True, text=True, check=True).stdout.split()[0])


def _cpu() -> float:
    """Seconds of processor time of the commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def packed_root() -> Path:
    """The packed root, made once for a set of packages and sources. Raises NotPossible."""
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        raise NotPossible(
            "A new root needs root and mmdebstrap: apt-get install mmdebstrap, then as root again."
        )
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False).returncode != 0:
        raise NotPossible("A new root needs mounts of its own, which this machine does not allow (unshare).")
    sources = _sources()
    named = " ".join((SUITE, *PACKAGES, *(path.read_text(encoding="utf-8") for path in sources)))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vnuma" / "fresh"
    packed = cache / f"{SUITE}-{hashlib.sha256(named.encode()).hexdigest()[:12]}.tar"
    if not packed.exists():
        cache.mkdir(parents=True, exist_ok=True)
        print(f"--- making a root of {SUITE} with mmdebstrap", flush=True)
        partial = packed.with_name(f"partial-{os.getpid()}.tar")
        options = ["--quiet", "--variant=apt", f"--include={','.join(PACKAGES)}"]
        options += [f"--aptopt={line}" for line in _apt_settings()]
        made = subprocess.run(["mmdebstrap", *options, SUITE, str(partial), *map(str, sources)], check=False)
        if made.returncode != 0:
            partial.unlink(missing_ok=True)
            raise NotPossible(f"mmdebstrap ended with {made.returncode}; its last lines are above.")
        partial.rename(packed)
    return packed


def _sources() -> list[Path]:
    """This machine's own sources of Debian packages where it is of the same release; else the default."""
    if platform.freedesktop_os_release().get("VERSION_CODENAME") != SUITE:
        return []
    places = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
    return [path for path in places if path.is_file()]


def _apt_settings() -> list[str]:
    """How this machine's apt reaches its servers: proxies and what it takes for valid."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^Acquire::(?:https?|Check|Retries|Force)[^\n]*\"[^\"\n]+\";$", dump, re.MULTILINE)


@contextmanager
def fresh_root(packed: Path, account: str) -> Iterator[Fresh]:
    """A new root with a clone of HEAD to clone from, for the duration of a `with`."""
    with tempfile.TemporaryDirectory(prefix="vnuma-fresh-") as folder:
        fresh = Fresh(Path(folder), account)
        fresh.root.chmod(0o755)
        subprocess.run(["tar", "-C", folder, "-xf", str(packed)], check=True)
        inside = ["chroot", folder]
        if account == "root":
            subprocess.run([*inside, "sh", "-ec", WITHOUT_VENV], stdout=subprocess.DEVNULL, check=True)
        else:
            _add_account(fresh)
        hand_through(fresh)
        clone = fresh.root / "srv" / "vnuma.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", str(ROOT), str(clone)], check=True)
        subprocess.run(
            [*inside, "chown", "-R", account, "/srv/vnuma.git", f"/{fresh.home.relative_to(folder)}"],
            check=True,
        )
        yield fresh


def _add_account(fresh: Fresh) -> None:
    """As useradd does, which not every release's smallest root has."""
    for name, rest in (("passwd", f"1000:1000::/home/{fresh.account}:/bin/sh"), ("group", "1000:")):
        with (fresh.root / "etc" / name).open("a", encoding="utf-8") as file:
            file.write(f"{fresh.account}:x:{rest}\n")
    fresh.home.mkdir(parents=True)


def hand_through(fresh: Fresh) -> None:
    """This machine's way to the registries: names, certificates, settings of pip and Go."""
    go = Path.home() / ".config" / "go" / "env"
    pips = [Path.home() / place for place in (".config/pip/pip.conf", ".pip/pip.conf")]
    files = {Path(place): Path(place) for place in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf")}
    files[go] = fresh.home.relative_to(fresh.root) / ".config" / "go" / "env"
    files |= {pip: fresh.home.relative_to(fresh.root) / ".config" / "pip" / "pip.conf" for pip in pips}
    named = (Path(value) for value in handed_through().values() if value.startswith("/"))
    files |= {path: path for path in named}
    files[Path("/etc/ssl/certs/ca-certificates.crt")] = Path("/etc/ssl/certs/ca-certificates.crt")
    for source, target in files.items():
        place = fresh.root / str(target).lstrip("/")
        if source.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            shutil.copy(source, place)
        elif source.is_dir() and not place.exists():
            shutil.copytree(source, place)


def _lend_caches(fresh: Fresh) -> None:
    """pip's downloads, which are locked by hash, and the lab's program of these sources."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for name in ("pip", "vnuma/lab"):
        if (cache / name).is_dir():
            shutil.copytree(cache / name, fresh.home / ".cache" / name)
    inside = f"/{fresh.home.relative_to(fresh.root)}/.cache"
    subprocess.run(["chroot", str(fresh.root), "chown", "-R", fresh.account, inside], check=True)


def readme_commands() -> list[str]:
    """README's clone and demo, with the clone to clone from in place of URL."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    (git clone .*|make demo)$", text, re.MULTILINE)
    if len(lines) != 2:
        raise NotPossible("README.md does not have one clone and one demo.")
    return [line.replace("URL", "/srv/vnuma.git") for line in lines]


def whole(packed: Path, account: str) -> bool:
    """The README's first commands, twice; whether both were in time."""
    with fresh_root(packed, account) as fresh:
        commands = readme_commands()
        cold = fresh.run(" && ".join(commands))
        took = fresh.megabytes("vnuma/.venv"), fresh.megabytes(".cache")
        warm = fresh.run(f"cd vnuma && {commands[-1]}")
    print(
        f"--- {account}: cold {cold} (at most {COLD_S}), warm {warm} (at most {WARM_S}); "
        f".venv {took[0]} MB, .cache {took[1]} MB",
        flush=True,
    )
    return cold.seconds <= COLD_S and warm.seconds <= WARM_S


def quick(packed: Path) -> None:
    """Set-up alone, and what it set up answers."""
    with fresh_root(packed, NEWCOMER) as fresh:
        _lend_caches(fresh)
        took = fresh.run(f"{readme_commands()[0]} && {CONNECTS}")
        megabytes = fresh.megabytes("vnuma/.venv")
    print(f"--- {NEWCOMER}: set up and connected in {took}, .venv {megabytes} MB", flush=True)


def offline(packed: Path, archive: Path) -> None:
    """The archive alone: installed and the demo run where no packet leaves."""
    with fresh_root(packed, NEWCOMER) as fresh:
        shutil.copy(archive, fresh.root / "srv")
        apart = replace(fresh, offline=True)
        installed = apart.run(f"tar -xf /srv/{archive.name} && {archive.stem}/install vnuma")
        demo = apart.run("vnuma/bin/vnuma demo")
        took = fresh.megabytes("vnuma")
    print(f"--- {NEWCOMER}, offline: installed in {installed}, {took} MB; demo in {demo}")


def main() -> int:
    """Run what was asked for; 1 when it failed or took too long, 4 when no root can be made here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="set-up and a connection")
    parser.add_argument("--slow", action="store_true", help="a busy machine: measure, and refuse no time")
    parser.add_argument("--offline", type=Path, metavar="ARCHIVE", help="install this without a network")
    chosen = parser.parse_args()
    # As Ctrl-C does, a signal ends what runs in the new root, and removes that.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    in_time = True
    try:
        packed = packed_root()
        if chosen.offline:
            offline(packed, chosen.offline)
        elif chosen.quick:
            quick(packed)
        else:
            took = [whole(packed, account) for account in ("root", NEWCOMER)]
            in_time = all(took)
    except NotPossible as error:
        print(error, file=sys.stderr)
        return 4
    except subprocess.CalledProcessError as error:
        print(
            f"On a new machine this ended with {error.returncode}; its last lines are above.", file=sys.stderr
        )
        return 1
    return 0 if in_time or chosen.slow else 1


if __name__ == "__main__":
    sys.exit(main())
