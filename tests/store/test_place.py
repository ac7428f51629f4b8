"""Store URLs: what is accepted, what is refused with which sentence, and that no password is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.errors import StoreError
from vnuma.store import place as place_module
from vnuma.store.open import default_url, open_store
from vnuma.store.place import filesystem_type, mask_text, parse_place, refuse_unsafe_sqlite, under_awx

SECRET = "s3cr3t"
MOUNTS = """\
/dev/vda / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
filer:/home /home nfs4 rw,vers=4.2 0 0
/dev/vdb /home/local xfs rw 0 0
//filer/share /mnt/my\\040share cifs rw 0 0
C:\\134 /mnt/c 9p rw 0 0
ops@host: /mnt/ssh fuse.sshfs rw 0 0
/dev/vdc /twice ext4 rw 0 0
filer:/ /twice nfs rw 0 0
"""


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ops:{SECRET}@db1:5432/vnuma",
        f"postgres://ops:{SECRET}@db1/vnuma",
        f"postgresql+psycopg://ops:{SECRET}@db1/vnuma?sslmode=require",
        f"postgresql://ops@db1/vnuma?password={SECRET}",
        f"postgresql://ops@db1/vnuma?sslpassword={SECRET}&sslmode=require",
    ],
)
def test_a_password_is_never_printed(url: str) -> None:
    """Neither str nor repr of a place shows it; host and database are shown."""
    place = parse_place(url)
    assert SECRET not in str(place) + repr(place)
    assert str(place).startswith("postgresql://ops")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql//ops:{SECRET}@db1/vnuma",
        f"postgresql://ops:{SECRET}@db1:port/vnuma",
        f"postgresql://ops:{SECRET}/x@y@db1:port/vnuma",
        f"nonsense?password={SECRET}",
        f"mysql://ops:{SECRET}@db1/vnuma",
        f"oracle+x://ops:{SECRET}@db1/vnuma",
        *(f"{text}{SECRET}@h/db" for text in ("postgresql:ops:", "postgresql:/ops:", "ops:")),
        "",
        "sqlite://",  # in memory: it would be lost with the process
        "sqlite:///:memory:",
        "sqlite:////tmp",  # a folder
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str) -> None:
    """What cannot be parsed or is not supported is a StoreError that says what to write."""
    with pytest.raises(StoreError) as caught:
        open_store(url)
    assert SECRET not in str(caught.value)


@given(password=st.text(st.characters(codec="ascii", exclude_characters="\n"), min_size=3))
def test_masking_hides_any_password(password: str) -> None:
    """Everything between user and host is replaced, even where it was not escaped."""
    assert mask_text(f"postgresql://ops:{password}@db1:port/x") == "postgresql://ops:***@db1:port/x"


def test_an_unreachable_server_is_named_without_the_password(tmp_path: Path) -> None:
    """Server, reason and next step, but no secret, also not in the cause."""
    url = f"postgresql://ops:{SECRET}@/vnuma?host={tmp_path}"
    with pytest.raises(StoreError) as caught:
        open_store(url)
    told = f"{caught.value} {caught.value!r} {caught.value.__cause__}"
    assert [SECRET in told, str(tmp_path) in told] == [False, True]


def test_the_default_is_a_file_in_the_given_folder(tmp_path: Path) -> None:
    """Odd characters in the folder's name survive the way through the URL."""
    home = tmp_path / "a b%20?c#d"
    store = open_store(default_url(home))
    assert parse_place(default_url(home)).path == home / "vnuma.db"
    assert (home / "vnuma.db").exists()
    assert repr(store) == f"Store('{home / 'vnuma.db'}')"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/vnuma.db", "ext4"),
        ("/home/ops/vnuma.db", "nfs4"),
        ("/home/local/vnuma.db", "xfs"),
        ("/homework/vnuma.db", "ext4"),
        ("/mnt/my share/vnuma.db", "cifs"),
        ("/mnt/c/vnuma.db", "9p"),
        ("/twice/vnuma.db", "nfs"),  # the later mount hides the earlier one
    ],
)
def test_the_longest_mount_point_decides(path: str, kind: str) -> None:
    """A local disk below a network mount is local, and names are compared as a whole."""
    assert filesystem_type(Path(path), MOUNTS) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "9p", "fuse.sshfs"])
def test_sqlite_on_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """No file is made; where mounts cannot be read, the store is made."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"{MOUNTS}filer:/x {tmp_path} {kind} rw 0 0\n")
    monkeypatch.setattr(place_module, "MOUNTS", mounts)
    with pytest.raises(StoreError):
        open_store(default_url(tmp_path))
    assert not (tmp_path / "vnuma.db").exists()
    monkeypatch.setattr(place_module, "MOUNTS", tmp_path / "none")  # macOS has none
    open_store(default_url(tmp_path))


@pytest.mark.parametrize(
    ("environment", "awx"),
    [
        ({"JOB_ID": "17", "INVENTORY_ID": "3"}, True),
        ({"JOB_ID": "17", "AWX_HOST": "https://awx"}, True),
        ({"AWX_PRIVATE_DATA_DIR": "/runner"}, True),
        ({"JOB_ID": "17"}, False),
        ({"AWX_HOST": "https://awx"}, False),
        ({}, False),
    ],
)
def test_awx_is_recognised(environment: dict[str, str], awx: bool) -> None:
    """By AWX's own variables, not by a batch scheduler's."""
    assert under_awx(environment) is awx


def test_sqlite_under_awx_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store would go with the job's pod: PostgreSQL is asked for."""
    with pytest.raises(StoreError):
        refuse_unsafe_sqlite(tmp_path / "vnuma.db", {"JOB_ID": "1", "INVENTORY_ID": "1"})
    monkeypatch.setenv("AWX_PRIVATE_DATA_DIR", "/runner")
    with pytest.raises(StoreError):
        open_store(default_url(tmp_path))
