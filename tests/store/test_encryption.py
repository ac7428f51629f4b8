"""TLS to a store's server: the rule, and a real server with a certificate."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from tests.sqlserver.authority import Authority
from tests.support import postgresql as server
from tests.support.postgresql import Cluster
from vnuma.errors import StoreError
from vnuma.store.open import open_store
from vnuma.store.place import encryption

LIBPQ = 160000
NAME = "db.example.com"


@pytest.mark.parametrize(
    ("rest", "environment"),
    [
        ("@/vnuma", {}),
        ("@/vnuma?host=/var/run/postgresql", {}),
        ("@localhost/vnuma", {}),
        ("@127.0.0.1:5433/vnuma", {}),
        ("@[::1]/vnuma", {}),
        ("@/vnuma?host=localhost,127.0.0.1", {}),
        ("@/vnuma?host=localhost:1&host=127.0.0.1:2", {}),
        ("@/vnuma?host=localhost:5433", {}),
        ("@localhost/vnuma?hostaddr=127.0.0.1", {}),
        # As in libpq, the URL's own host wins over the environment.
        ("@localhost/vnuma?hostaddr=127.0.0.1", {"PGHOST": "db1", "PGHOSTADDR": "10.0.0.5"}),
        # Another mode with TLS is the user's choice.
        *((f"@db1/vnuma?sslmode={mode}", {"PGSSLMODE": "disable"}) for mode in ("require", "verify-full")),
    ],
)
def test_nothing_is_asked_of_a_server_on_this_machine(
    rest: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """A Unix socket or loopback: plain text stays here. Nor is anything added to what users wrote."""
    assert encryption(make_url(f"postgresql://ops{rest}"), environment, tmp_path, LIBPQ) == {}


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("postgresql://ops@db.example.com/vnuma", {}),
        ("postgresql://ops@10.0.0.5/vnuma", {}),
        ("postgresql://ops@/vnuma?host=db1,db2", {}),
        ("postgresql://ops@/vnuma?host=localhost:1,db2:2", {}),
        ("postgresql://ops@/vnuma?host=localhost:1&host=db2:2", {}),
        ("postgresql://ops@localhost/vnuma?host=192.0.2.2", {}),
        ("postgresql://ops@localhost/vnuma?hostaddr=192.0.2.2", {}),
        ("postgresql://ops@/vnuma?host=/tmp,localhost&hostaddr=127.0.0.1,192.0.2.2", {}),
        ("postgresql://ops@db1/vnuma?hostaddr=127.0.0.1", {}),
        ("postgresql://ops@localhost/vnuma", {"PGHOSTADDR": "10.0.0.5"}),
        ("postgresql://ops@/vnuma?hostaddr=127.0.0.1", {"PGHOST": "db1"}),
        ("postgresql://ops@/vnuma?conninfo=host%3D192.0.2.2", {}),
        ("postgresql://ops@/vnuma", {"PGHOST": "db.example.com"}),
        ("postgresql://ops@/vnuma", {"PGHOSTADDR": "10.0.0.5"}),
        ("postgresql://ops@/vnuma?service=site", {}),
    ],
)
def test_another_machine_s_certificate_is_verified(
    url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """However the host is given; with the system's CAs unless others are named."""
    parsed = make_url(url)
    verified = {"sslmode": "verify-full", "sslrootcert": "system"}

    assert encryption(parsed, environment, tmp_path, LIBPQ) == verified
    for plain in ("disable", "allow", "prefer"):
        with pytest.raises(StoreError):
            encryption(parsed, {**environment, "PGSSLMODE": plain}, tmp_path, LIBPQ)
        with pytest.raises(StoreError):
            encryption(parsed.update_query_dict({"sslmode": plain}), environment, tmp_path, LIBPQ)


def test_cas_that_the_user_has_are_kept(tmp_path: Path) -> None:
    """libpq's own file, a variable, the URL; and an old libpq knows no system's CAs."""
    with pytest.raises(StoreError):  # hosts that the driver cannot read
        open_store("postgresql://ops@/vnuma?host=db1:1&host=db2:2&port=3")
    url = make_url("postgresql://ops@db1/vnuma")
    alone = {"sslmode": "verify-full"}

    assert encryption(url, {"PGSSLROOTCERT": "/ca.pem"}, tmp_path, LIBPQ) == alone
    assert encryption(url.update_query_dict({"sslrootcert": "/ca.pem"}), {}, tmp_path, LIBPQ) == alone
    assert encryption(url, {}, tmp_path, 150004) == alone
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql/root.crt").touch()
    assert encryption(url, {}, tmp_path, LIBPQ) == alone


@dataclass(frozen=True)
class Remote:
    """A server with TLS on loopback, under a name of another machine."""

    port: int
    ca: Path

    def url(self, name: str = NAME, ca: Path | None = None) -> str:
        """How it is reached: libpq checks the name and connects to `hostaddr`."""
        return (
            f"postgresql://owner@{name}:{self.port}/postgres?hostaddr=127.0.0.1&sslrootcert={ca or self.ca}"
        )


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """A server of its own, because TLS is switched on for the whole server."""
    binaries = server.find_binaries()
    authority = Authority(tmp_path_factory.mktemp("ca"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    cluster = server.start(binaries, port)
    _switch_tls_on(cluster, authority.certificate(NAME))
    yield Remote(port, authority.ca_file)
    cluster.stop()


def _switch_tls_on(cluster: Cluster, certificate: Path) -> None:
    here = cluster.folder / "data" / "server.pem"
    shutil.copy(certificate, here)
    here.chmod(0o600)
    owner = (cluster.folder / "data").stat()
    shutil.chown(here, owner.st_uid, owner.st_gid)
    cluster.execute(
        f"postgresql://owner@/postgres?host={cluster.folder}&port={cluster.port}",
        *(f"ALTER SYSTEM SET {name} = '{here}'" for name in ("ssl_cert_file", "ssl_key_file")),
        "ALTER SYSTEM SET ssl = on",
    )
    cluster.shut_down()
    cluster.start_again()


def test_a_verified_server_has_a_store_over_tls(remote: Remote) -> None:
    """No sslmode was written: the certificate is verified, and the session encrypted."""
    with open_store(remote.url()).read() as conn:
        assert conn.scalar(text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")) is True


def test_a_server_of_another_name_or_ca_is_refused(remote: Remote, tmp_path: Path) -> None:
    """One sentence with the next step."""
    other = Authority(tmp_path, "Other-CA").ca_file
    for url in (remote.url("other.example.com"), remote.url(ca=other), remote.url(ca=tmp_path / "none.pem")):
        with pytest.raises(StoreError):
            open_store(url)


def test_a_server_without_tls_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    """Not even the login's name reaches it unencrypted."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        url = Remote(listening.getsockname()[1], tmp_path / "ca.pem").url()
        ca = Authority(tmp_path).ca_file
        heard: list[bytes] = []

        def answer() -> None:
            taken, _ = listening.accept()
            with taken:
                heard.append(taken.recv(100))
                taken.sendall(b"N")
                heard.append(taken.recv(100))

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(StoreError):
            open_store(url.replace(str(tmp_path / "ca.pem"), str(ca)))
        thread.join()
    assert heard == [(8).to_bytes(4, "big") + (80877103).to_bytes(4, "big"), b""]
