"""A private Kerberos KDC for the tests: MIT's, in a folder of its own, on a free loopback port."""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ports import free_port

REALM = "VNUMA.TEST"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "klist")
_READY_S = 30.0
_TICK_S = 0.02
_PLACES = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/lib/mit/sbin"))


def lacking() -> str:
    """The programs of a KDC that this machine lacks, with what installs them; empty when all are there."""
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_PLACES) is None]
    what = ", ".join(missing)
    return (
        f"no Kerberos KDC ({what}): Debian: apt install krb5-kdc krb5-admin-server krb5-user" if what else ""
    )


def _program(name: str) -> str:
    return str(shutil.which(name, path=_PLACES))


@dataclass
class Kdc:
    """A running KDC; `environment` makes Kerberos libraries and programs use it."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables, with a ticket cache that does not exist yet."""
        return {
            "KRB5_CONFIG": str(self.folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / 'cache'}",
            "KRB5RCACHENAME": "none:",
        }

    def run(self, program: str, *arguments: str, said: str = "") -> str:
        """What one of Kerberos' programs prints; fails with what it says."""
        done = subprocess.run(
            [_program(program), *arguments],
            env=os.environ | self.environment,
            input=said,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{program} {arguments}: {done.stderr}"
        return done.stdout

    def admin(self, query: str) -> None:
        """Change the database, as kadmin.local does."""
        self.run("kadmin.local", "-r", REALM, "-q", query)

    def keytab(self, *principals: str, name: str = "keytab") -> Path:
        """New principals, and a file with their keys."""
        file = self.folder / name
        for principal in principals:
            self.admin(f"addprinc -randkey {principal}")
            self.admin(f"ktadd -k {file} {principal}")
        return file

    def kinit(self, keytab: Path, principal: str, *options: str) -> None:
        """A ticket into a new cache: kinit takes over the clock's difference that an old one holds."""
        (self.folder / "cache").unlink(missing_ok=True)
        self.run("kinit", *options, "-k", "-t", str(keytab), principal)

    def expired(self, keytab: Path, principal: str) -> None:
        """A cache whose ticket has ended: it was for one second, the shortest time there is.

        A second more, since a cache holds how far the KDC's clock seemed to be off, in whole seconds.
        """
        self.kinit(keytab, principal, "-l", "1s")
        last = int(time.time()) + 2
        while int(time.time()) <= last:
            time.sleep(_TICK_S)

    def first_tickets(self, principal: str) -> int:
        """How many tickets the KDC has given to an account itself, by password or keytab."""
        log = (self.folder / "kdc.log").read_text(encoding="utf-8")
        asked = [line for line in log.splitlines() if "AS_REQ" in line and "ISSUE" in line]
        return sum(f"{principal}@{REALM} for krbtgt/" in line for line in asked)

    def clock_ahead(self, seconds: int) -> None:
        """Make the cache's client believe that the KDC's clock is ahead of this machine's.

        A cache holds the difference that the client saw when it got the ticket:
        https://web.mit.edu/kerberos/krb5-latest/doc/formats/ccache_file_format.html
        """
        file = self.folder / "cache"
        content = file.read_bytes()
        assert content[:2] == b"\x05\x04", "a cache of another version"
        behind = 4 + int.from_bytes(content[2:4], "big")
        header = struct.pack(">HHHii", 12, 1, 8, seconds, 0)
        file.write_bytes(content[:2] + header + content[behind:])

    @contextmanager
    def default_realm(self, name: str) -> Iterator[None]:
        """Configured with another default realm."""
        file = self.folder / "krb5.conf"
        text = file.read_text(encoding="ascii")
        file.write_text(text.replace(f"default_realm = {REALM}", f"default_realm = {name}"), encoding="ascii")
        try:
            yield
        finally:
            file.write_text(text, encoding="ascii")

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Configured to be where nobody answers."""
        file = self.folder / "krb5.conf"
        text = file.read_text(encoding="ascii")
        file.write_text(re.sub(r"kdc = 127\.0\.0\.1:\d+", "kdc = 127.0.0.1:1", text), encoding="ascii")
        try:
            yield
        finally:
            file.write_text(text, encoding="ascii")

    def stop(self) -> None:
        """End the KDC; its database stays."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=30)
            self.process = None


def of_a_test(folder: Path) -> Kdc:
    """A KDC in a new folder. Without the programs the test is skipped, but fails where CI is set."""
    if reason := lacking():
        pytest.skip(reason)
    folder.mkdir(parents=True, exist_ok=True)
    return start(folder)


def start(folder: Path) -> Kdc:
    """A KDC with an empty realm, answering."""
    kdc, port = Kdc(folder), free_port()
    (folder / "krb5.conf").write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
        f" rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
        f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
        f" NOWHERE.TEST = {{\n  kdc = 127.0.0.1:1\n }}\n"
        f"[domain_realm]\n localhost = {REALM}\n 127.0.0.1 = {REALM}\n",
        encoding="ascii",
    )
    (folder / "kdc.conf").write_text(
        f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n"
        f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n"
        f"  acl_file = {folder}/acl\n  max_life = 24h\n  max_renewable_life = 7d\n }}\n"
        f"[logging]\n kdc = FILE:{folder}/kdc.log\n",
        encoding="ascii",
    )
    kdc.run("kdb5_util", "create", "-r", REALM, "-s", "-W", "-P", "of-a-test")
    kdc.process = subprocess.Popen(
        [_program("krb5kdc"), "-n", "-r", REALM],
        env=os.environ | kdc.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _wait_until_it_answers(kdc.process, port)
    return kdc


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _READY_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process.poll() is None, "the KDC ended"
            assert time.monotonic() < deadline, "the KDC does not answer"
            time.sleep(_TICK_S)
        else:
            return
