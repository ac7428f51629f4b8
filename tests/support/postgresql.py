"""A private PostgreSQL server for the tests: in a temporary folder, on a Unix socket, no network."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any, LiteralString

import psycopg
import pytest

from vnuma.store.open import open_store

ACCOUNT = "nobody"
"""PostgreSQL refuses to run as root; then this account runs it."""


def find_binaries() -> Path:
    """The folder with initdb and postgres: from pg_config, the PATH, or Debian's place. Skips without."""
    candidates = []
    if config := shutil.which("pg_config"):
        told = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True)
        candidates.append(Path(told.stdout.strip()))
    if server := shutil.which("postgres"):
        candidates.append(Path(server).resolve().parent)
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in candidates:
        if (folder / "initdb").exists():
            return folder
    pytest.skip("no PostgreSQL server found (initdb, postgres): Debian: apt install postgresql")


@dataclass
class Cluster:
    """A running server; `new_database` gives the URL of a fresh, empty database."""

    folder: Path
    process: subprocess.Popen[bytes]
    numbers: count[int] = field(default_factory=count)
    template: str = ""
    port: int = 5432

    def new_database(self) -> str:
        """Create a database and return its URL."""
        return self._url(self._created("template1"))

    def new_store(self) -> str:
        """Create a database with an empty store, which is made once and then copied, and return its URL."""
        if not self.template:
            self.template = self._created("template1")
            open_store(self._url(self.template)).disconnect()
        return self._url(self._created(self.template))

    def is_up(self) -> bool:
        """Whether it accepts connections."""
        try:
            psycopg.connect(self._dsn("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """End the server at once and delete its folder."""
        self.shut_down()
        shutil.rmtree(self.folder)

    def execute(self, url: str, *statements: str) -> None:
        """Let the superuser do something in the database of that URL."""
        with psycopg.connect(self._dsn(database_of(url)), autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement)

    def ask(self, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        """What the server answers to the superuser."""
        with psycopg.connect(self._dsn("postgres"), autocommit=True) as conn:
            return conn.execute(query, values).fetchall()

    def crowd(self) -> ExitStack:
        """Take every connection that is left or becomes free, until the result is closed."""
        taken, end, full, done = ExitStack(), ExitStack(), Event(), Event()

        def take() -> None:
            while not done.is_set():
                try:
                    taken.callback(psycopg.connect(self._dsn("postgres")).close)
                except psycopg.OperationalError:
                    full.set()
                    done.wait(0.002)

        thread = Thread(target=take)
        thread.start()
        end.callback(taken.close)
        end.callback(thread.join)
        end.callback(done.set)
        full.wait()
        return end

    def url_as(self, login: str, url: str) -> str:
        """The same database for another login."""
        return url.replace("://owner@", f"://{login}@")

    def shut_down(self) -> None:
        """End every session and the server (pg_ctl's "fast"); `start_again` starts it with its data."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)

    def start_again(self) -> None:
        """Start it as it was; returns when it accepts connections."""
        self.process = _serve(self.folder, self.process.args)
        wait_until_up(self)

    def _created(self, template: str) -> str:
        name = f"store{next(self.numbers)}"
        with psycopg.connect(self._dsn("postgres"), autocommit=True) as conn:
            conn.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def _url(self, database: str) -> str:
        other = "" if self.port == 5432 else f"&port={self.port}"
        return f"postgresql://owner@/{database}?host={self.folder}{other}"

    def _dsn(self, database: str) -> str:
        return f"host={self.folder} port={self.port} user=owner dbname={database} connect_timeout=60"


def start(binaries: Path, port: int | None = None) -> Cluster:
    """Make and start a server; returns when it accepts connections. With a `port` it is on loopback too."""
    folder = Path(tempfile.mkdtemp(prefix="vnuma-pg-"))
    account = ACCOUNT if os.geteuid() == 0 else None
    if account:
        shutil.chown(folder, account)
    subprocess.run(
        [binaries / "initdb", "-D", folder / "data", "-U", "owner", "-A", "trust", "-N", "-E", "UTF8"],
        check=True,
        capture_output=True,
        user=account,
        cwd=folder,
    )
    address, port = ("", 5432) if port is None else ("127.0.0.1", port)
    ours = [
        f"listen_addresses={address}",
        f"port={port}",
        f"unix_socket_directories={folder}",
        "fsync=off",
        "full_page_writes=off",
        "autovacuum=off",  # it would go round all databases, most of which no test needs any more
        "max_connections=40",
    ]
    command = [binaries / "postgres", "-D", folder / "data", *(f"--{item}" for item in ours)]
    cluster = Cluster(folder, _serve(folder, command), port=port)
    try:
        wait_until_up(cluster)
    except BaseException:
        cluster.stop()
        raise
    return cluster


def _serve(folder: Path, command: Any) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            user=ACCOUNT if os.geteuid() == 0 else None,
            cwd=folder,
        )


def database_of(url: str) -> str:
    """The name of the database."""
    return url.partition("?")[0].rpartition("/")[2]


def wait_until_up(cluster: Cluster) -> None:
    """Return when the server accepts connections; fail with its log if it ends, or needs over a minute."""
    given_up = time.monotonic() + 60
    while not cluster.is_up():
        if time.monotonic() > given_up:
            raise RuntimeError(f"PostgreSQL is not up:\n{(cluster.folder / 'log').read_text()}")
        try:
            cluster.process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        raise RuntimeError((cluster.folder / "log").read_text())
