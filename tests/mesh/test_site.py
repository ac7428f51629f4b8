"""Nodes of a mesh: the files that are written for them, and a node's doctor over real daemons."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from pwd import getpwuid
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from ruamel.yaml import YAML

from tests.support.cli import command, vnuma_here
from tests.support.installation import ROOT
from tests.support.lab import LabHandle
from tests.support.postgresql import Cluster
from tests.support.receptor import Daemon, find_receptor, free_port
from tests.support.site import write_study
from vnuma.engine.doctor.diagnose_site import answer_doctor
from vnuma.engine.mesh import certificates
from vnuma.engine.mesh.control import answer_of, forget_ended, have_done, submit, unit_state
from vnuma.engine.mesh.node_config import Node
from vnuma.engine.mesh.node_files import init_controller, init_node
from vnuma.engine.mesh.request import asked_about
from vnuma.errors import EnvironmentProblem

SECRET = "VNUMA_TEST_SITE_PASSWORD"


@pytest.fixture(autouse=True)
def short_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signing keys that take a tenth of the time to make: nothing here depends on their size."""
    monkeypatch.setattr(certificates, "_KEY_BITS", 2048)


def write_site(folder: Path, lab: LabHandle, node: str) -> Path:
    """An inventory of the lab's first VM, behind a node whose environment has the password."""
    password, authority = {"env": SECRET}, str(lab.vcenter.ca_file)
    sql = next(iter(lab.vms.values()))
    host = {
        "vnuma_vm": sql.path,
        "vnuma_node": node,
        "vnuma_test_clone": True,
        "vnuma_vcenter": {
            "host": lab.vcenter.host,
            "port": lab.vcenter.port,
            "user": lab.vcenter.user,
            "password": password,
            "ca_file": authority,
        },
        "vnuma_sql": {
            "host": sql.host,
            "port": sql.port,
            "user": sql.user,
            "password": password,
            "ca_file": authority,
        },
    }
    path = folder / "site.yml"
    path.write_text(json.dumps({"all": {"hosts": {"sql16": host}}}), encoding="utf-8")
    return path


def test_a_nodes_folder_holds_its_own_keys_alone_and_only_the_user_reads_them(home: Path) -> None:
    """Neither the authority's key nor the one that signs work leaves the controller."""
    vnuma_here("site", "init", "controller", "--listen", "127.0.0.1:27199", "--store-at", "127.0.0.1:5432")

    made = vnuma_here("site", "init", "site-b")

    folder = home / "mesh" / "site-b"
    assert made.code == 0, made.text
    names = {"node.key", "node.crt", "ca.crt", "verification.key", "receptor.yml", "node.env"}
    assert {path.name for path in folder.iterdir()} == names | {"vnuma-mesh.service"}
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    settings = {key: part[key] for part in YAML(typ="safe").load(folder / "receptor.yml") for key in part}
    assert settings["work-command"]["verifysignature"] is True
    assert settings["tls-server"]["requireclientcert"] is True
    assert settings["tcp-peer"]["address"] == "127.0.0.1:27199"
    assert settings["tcp-server"]["bindaddr"] == "127.0.0.1"


def test_a_daemon_s_unit_runs_as_who_owns_its_files(home: Path) -> None:
    """A node's as the account of docs/sites.md, with the home that its environment names; the controller's
    as whoever began the mesh.
    """
    vnuma_here("site", "init", "controller", "--listen", "127.0.0.1:27199")
    vnuma_here("site", "init", "site-b")

    controller, node = (
        (home / "mesh" / name / "vnuma-mesh.service").read_text(encoding="utf-8").splitlines()
        for name in ("controller", "site-b")
    )

    assert f"User={getpwuid(os.geteuid()).pw_name}" in controller
    assert {"User=vnuma", "StateDirectory=vnuma"} <= set(node)
    assert "VNUMA_HOME=/var/lib/vnuma" in (home / "mesh" / "site-b" / "node.env").read_text(encoding="utf-8")


def test_no_file_of_a_node_is_overwritten(home: Path) -> None:
    """A second init of the same name says which folder is there, and a second controller is refused."""
    vnuma_here("site", "init", "controller", "--listen", "127.0.0.1:27199")
    vnuma_here("site", "init", "site-b")
    key = (home / "mesh" / "site-b" / "node.key").read_bytes()

    again = vnuma_here("site", "init", "site-b")
    other = vnuma_here("site", "init", "other", "--listen", "127.0.0.1:27200")

    assert again.code == 3
    assert str(home / "mesh" / "site-b") in again.err
    assert (home / "mesh" / "site-b" / "node.key").read_bytes() == key
    assert other.code == 2
    assert "controller" in other.err


def test_a_node_without_a_mesh_is_refused_with_the_command_that_begins_one(home: Path) -> None:
    """The certificate authority is made with the controller."""
    refused = vnuma_here("site", "init", "site-b")

    assert refused.code == 3
    assert "vnuma site init controller --listen" in refused.err
    assert not (home / "mesh").exists()


def test_a_study_of_a_vm_behind_a_node_is_refused_without_a_mesh(
    tmp_path: Path, shared_lab: LabHandle
) -> None:
    """It would be measured from a machine that its inventory says does not reach it."""
    inventory = write_site(tmp_path, shared_lab, "site-b")

    refused = vnuma_here("plan", write_study(tmp_path), "-i", inventory)

    assert refused.code == 3
    assert "sql16 is reached by the node site-b" in refused.err
    assert "on the mesh's controller, or on site-b itself" in refused.err


def test_a_doctor_of_a_site_says_that_the_daemon_is_missing(
    home: Path, tmp_path: Path, shared_lab: LabHandle
) -> None:
    """With the socket that it tried, and how to start the daemon."""
    vnuma_here("site", "init", "controller", "--listen", "127.0.0.1:27199")

    ended = vnuma_here("doctor", "--site", "site-b", "-i", write_site(tmp_path, shared_lab, "site-b"))

    assert ended.code == 4
    assert str(home / "mesh" / "controller" / "control.sock") in ended.out
    assert "receptor --config" in ended.out


@pytest.mark.parametrize("greeting", [b"", b"Receptor Control, node controller\n"])
def test_a_daemon_that_breaks_off_is_named_with_its_socket(
    home: Path, tmp_path: Path, shared_lab: LabHandle, greeting: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it says who it is, or after: exit code 4, and the log to read."""
    path = home.parent / "control.sock"
    monkeypatch.setenv("VNUMA_RECEPTOR_SOCKET", str(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(greeting)

        daemon = threading.Thread(target=answer)
        daemon.start()
        ended = vnuma_here("doctor", "--site", "site-b", "-i", write_site(tmp_path, shared_lab, "site-b"))
        daemon.join()

    assert ended.code == 4, ended.text
    assert str(path) in ended.out
    assert "journalctl -u vnuma-mesh" in ended.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("sql16", "--site", "site-c"), 3, ("sql16", "site-c", "vnuma_node: site-c")),
        (("--site", "site-c"), 3, ("site-c", "vnuma_node: site-c")),
        (("--site", "site-b", "--notify"), 2, ("--notify", "--site")),
        (("--site", "site-b", "--record", "contact.yml"), 2, ("--record", "--site")),
    ],
)
def test_a_doctor_of_a_site_refuses_what_the_node_would_not_check(
    home: Path,
    tmp_path: Path,
    shared_lab: LabHandle,
    arguments: tuple[str, ...],
    code: int,
    words: tuple[str, ...],
) -> None:
    """A VM behind no node or another, a site without VMs, and what works only from here."""
    refused = vnuma_here("doctor", *arguments, "-i", write_site(tmp_path, shared_lab, "site-b"))

    assert refused.code == code, refused.text
    assert [word for word in words if word not in refused.err] == []


def test_a_mesh_that_could_not_be_started_can_be_started_again(home: Path) -> None:
    """The controller's folder was taken: nothing that all nodes share is left behind."""
    taken = home / "mesh" / "controller"
    taken.mkdir(parents=True)
    begin = ("site", "init", "controller", "--listen", "127.0.0.1:27199")

    refused = vnuma_here(*begin)
    taken.rmdir()
    again = vnuma_here(*begin)

    assert refused.code == 3
    assert str(taken) in refused.err
    assert again.code == 0, again.text


def test_a_shared_file_that_is_taken_leaves_no_half_of_a_controller(home: Path) -> None:
    """It is kept unchanged, and everything written with it is removed."""
    key = home / "mesh" / "verification.key"
    key.parent.mkdir(parents=True)
    key.write_text("kept")

    refused = vnuma_here("site", "init", "controller", "--listen", "127.0.0.1:27199")

    assert refused.code == 3
    assert list(key.parent.iterdir()) == [key]
    assert key.read_text() == "kept"


@pytest.mark.parametrize("name", ["mesh.json", "CA.key", "controller"])
def test_a_node_is_not_called_like_what_all_share(home: Path, name: str) -> None:
    """Nor like the controller, whose name the control services accept."""
    vnuma_here("site", "init", "controller", "--listen", "127.0.0.1:27199", "--at", "/etc/vnuma/controller")
    (home / "mesh" / "controller").rename(home / "moved")

    refused = vnuma_here("site", "init", name)

    assert refused.code == 3
    assert name in refused.err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--listen", "hq:65536"),
        ("--listen", "::1:2000"),
        ("--listen", "[1::2::3]:2000"),
        ("--store-at", "db:65535"),
        ("--at", "etc/vnuma"),
    ],
)
def test_an_address_or_folder_that_cannot_be_is_refused(home: Path, option: str, value: str) -> None:
    """Before anything is written."""
    given = {"--listen": "127.0.0.1:27199"} | {option: value}

    refused = vnuma_here("site", "init", "controller", *(word for pair in given.items() for word in pair))

    assert refused.code == 3
    assert value in refused.err
    assert not (home / "mesh").exists()


def test_a_controller_listens_at_an_ipv6_address(home: Path) -> None:
    """In brackets, as nodes dial it."""
    vnuma_here("site", "init", "controller", "--listen", "[::1]:2000")
    made = vnuma_here("site", "init", "site-b")

    assert made.code == 0, made.text
    parts = {
        key: part[key]
        for name in ("controller", "site-b")
        for part in YAML(typ="safe").load(home / "mesh" / name / "receptor.yml")
        for key in part
    }
    assert parts["tcp-listener"]["bindaddr"] == "[::1]"
    assert parts["tcp-peer"]["address"] == "[::1]:2000"


def marked(value: Any) -> Any:
    """As the controller sends it: text that Ansible takes as it is."""
    if isinstance(value, dict):
        return {key: marked(item) for key, item in value.items()}
    return {"__ansible_unsafe": value} if isinstance(value, str) else value


@pytest.fixture
def joined(home: Path) -> Iterator[tuple[Path, Path, socket.socket]]:
    """Daemons of a controller and a node; the folders of both, and where the controller looks for a store."""
    program, base = find_receptor(), home / "mesh"
    address = f"127.0.0.1:{free_port()}"
    with ExitStack() as running:
        # Not port 0: the node listens one above, which then may be a port of somebody's outgoing connection.
        store = running.enter_context(socket.create_server(("127.0.0.1", free_port())))
        store.settimeout(60)
        at = f"127.0.0.1:{store.getsockname()[1]}"
        controller = init_controller(base, Node("controller", base / "controller", "false"), address, at)
        site = init_node(base, Node("site-b", base / "site-b", "false"))
        for folder in (controller, site):
            daemon = Daemon(program, folder)
            running.callback(daemon.stop)
        daemon.wait_for("Known Connections")
        yield controller, site, store


def connect(folder: Path, node: str) -> str:
    """What this daemon says when it is asked for another node's control service."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(60)
        connection.connect(str(folder / "control.sock"))
        with connection.makefile("rwb") as stream:
            stream.readline()
            stream.write(f"connect {node} control mesh\n".encode())
            stream.flush()
            return stream.readline().decode()


def test_a_mesh_whose_authority_has_an_rsa_key_takes_new_nodes(home: Path) -> None:
    """An earlier version made it. The node's own key is small: each connection costs a signature by it."""
    base = home / "mesh"
    init_controller(base, Node("controller", base / "controller", "false"), "127.0.0.1:27199", None)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "vnuma mesh")])
    now = datetime.now(UTC)
    authority = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    form = (Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    (base / "ca.key").write_bytes(key.private_bytes(*form))
    (base / "ca.crt").write_bytes(authority.public_bytes(Encoding.PEM))

    site = init_node(base, Node("site-b", base / "site-b", "false"))

    made = x509.load_pem_x509_certificate((site / "node.crt").read_bytes())
    made.verify_directly_issued_by(authority)
    assert isinstance(made.public_key(), ec.EllipticCurvePublicKey)


def test_a_node_cannot_have_the_controller_sign_work(joined: tuple[Path, Path, socket.socket]) -> None:
    """The controller's control service signs what it is asked to: only the controller reaches one."""
    controller, site, _ = joined

    assert connect(controller, "site-b").startswith("Connecting")
    assert connect(site, "controller").startswith("ERROR")


def test_a_node_reaches_the_store_through_the_mesh(joined: tuple[Path, Path, socket.socket]) -> None:
    """On its own loopback, one port above the store's."""
    store = joined[2]

    with socket.create_connection(("127.0.0.1", store.getsockname()[1] + 1), timeout=60) as near:
        near.sendall(b"hello\n")
        far, _ = store.accept()
        with far, far.makefile("rb") as stream:
            assert stream.readline() == b"hello\n"


SUBMITTED = b"Work unit created with ID abcdefgh. Send stdin data and EOF.\n"
LOOKUP = "{{ lookup('pipe', 'touch STARTED') }}"


@pytest.mark.parametrize(
    "password",
    [
        {"command": ["touch", "STARTED"]},
        LOOKUP,
        {"__ansible_unsafe": [LOOKUP]},
        {"__ansible_unsafe": {"env": LOOKUP}},
        {
            "__ansible_type": {"__ansible_unsafe": "_AnsibleTaggedStr"},
            "value": {"__ansible_unsafe": LOOKUP},
            "tags": [{"__ansible_type": {"__ansible_unsafe": "TrustedAsTemplate"}}],
        },
    ],
)
def test_a_node_starts_no_program_that_a_request_names(
    home: Path,
    tmp_path: Path,
    shared_lab: LabHandle,
    password: object,
    postgresql: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither for a password nor from a template: who can ask must not get a shell."""
    started = tmp_path / "started"
    document = json.loads(write_site(tmp_path, shared_lab, "site-b").read_text(encoding="utf-8"))
    host = marked(document["all"]["hosts"]["sql16"])
    host["vnuma_vcenter"]["password"] = json.loads(json.dumps(password).replace("STARTED", str(started)))
    hosts = json.dumps({"all": {"hosts": {"sql16": host}}})
    monkeypatch.setenv("VNUMA_STORE", postgresql.new_store())

    found = answer_doctor({"asked_at": datetime.now(UTC), "hosts": hosts, "names": ["sql16"]})

    assert not started.exists()
    assert found["checks"][-1]["state"] == "FAIL"


def test_a_node_hands_on_nothing_of_how_ansible_connects(
    home: Path, tmp_path: Path, shared_lab: LabHandle
) -> None:
    """A proxy command is a program: only the variables that a VM has reach a later step."""
    document = json.loads(write_site(tmp_path, shared_lab, "site-b").read_text(encoding="utf-8"))
    host = marked(document["all"]["hosts"]["sql16"])
    extra = marked({"ansible_connection": "local", "ansible_ssh_common_args": "-o ProxyCommand=x"})
    hosts = json.dumps({"all": {"hosts": {"sql16": host | extra}}})

    with asked_about({"hosts": hosts, "names": ["sql16"]}) as (handed_on, targets):
        text = handed_on.read_text(encoding="utf-8")

    assert list(targets) == ["sql16"]
    assert "vnuma_vcenter" in text
    assert "ansible_connection" not in text
    assert "ProxyCommand" not in text


def test_a_node_looks_at_no_machine_for_the_controller(
    home: Path, postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection could name a program to start; only VMs are asked about."""
    hosts = json.dumps({"all": {"hosts": {"linux1": marked({"ansible_connection": "local"})}}})
    monkeypatch.setenv("VNUMA_STORE", postgresql.new_store())

    found = answer_doctor({"asked_at": datetime.now(UTC), "hosts": hosts, "names": ["linux1"]})

    assert [item["state"] for item in found["checks"] if item["subject"] == "linux1"] == ["FAIL"]
    assert "only at VMs" in found["checks"][-1]["what"]


def test_a_password_command_is_refused_before_a_node_is_asked(
    home: Path, tmp_path: Path, shared_lab: LabHandle
) -> None:
    """With the reference, and what to give instead."""
    vnuma_here("site", "init", "controller", "--listen", "127.0.0.1:27199")
    inventory = write_site(tmp_path, shared_lab, "site-b")
    text = inventory.read_text(encoding="utf-8")
    inventory.write_text(text.replace(f'{{"env": "{SECRET}"}}', '{"command": ["pass", "show", "x"]}'))

    refused = vnuma_here("doctor", "--site", "site-b", "-i", inventory)

    assert refused.code == 4
    assert "command:pass show x" in refused.out
    assert "{env: NAME}" in refused.out


def test_a_node_checks_itself_and_its_vms_where_it_is(
    home: Path, tmp_path: Path, shared_lab: LabHandle, postgresql: Cluster
) -> None:
    """Signed work over mutual TLS; the password is known to the node alone, and in no file of either's."""
    program, base = find_receptor(), home / "mesh"
    own = str(ROOT / ".venv" / "bin" / "vnuma")
    address = f"127.0.0.1:{free_port()}"
    controller = init_controller(base, Node("controller", base / "controller", own), address, None)
    site = init_node(base, Node("site-b", base / "site-b", own))
    knows = {
        SECRET: shared_lab.vcenter.password,
        "VNUMA_NODE": "site-b",
        "VNUMA_STORE": postgresql.new_store(),
        "VNUMA_HOME": str(tmp_path / "node"),
    }
    inventory = write_site(tmp_path, shared_lab, "site-b")
    with ExitStack() as running:
        for folder, env in ((controller, None), (site, knows)):
            daemon = Daemon(program, folder, env)
            running.callback(daemon.stop)
        daemon.wait_for("Known Connections")
        seen = vnuma_here("doctor", "--site", "site-b", "-i", inventory, "--format", "json")
        elsewhere = write_site(tmp_path, shared_lab, "site-c")
        lost = vnuma_here("doctor", "--site", "site-c", "-i", elsewhere)

    assert seen.code == 0, seen.text
    checks = {item["subject"]: item["state"] for item in json.loads(seen.out)["checks"]}
    wanted = ("mesh", "version", "clock", "store", "driver", "vCenter", "SQL Server")
    assert {name: checks.get(name) for name in wanted} == dict.fromkeys(wanted, "ok")
    assert lost.code == 4
    assert "site-b" in lost.out
    secret = shared_lab.vcenter.password.encode()
    left = [path for place in (home, tmp_path / "node") for path in place.rglob("*") if path.is_file()]
    assert [path for path in left if secret in path.read_bytes()] == []


def test_work_that_nobody_took_back_is_forgotten(home: Path) -> None:
    """Its files go from both daemons; what has just ended, or what a run waits for, stays."""
    program, own = home.parent / "program", {"VNUMA_NODE": "site-b"}
    program.write_text("#!/bin/sh\ncat >/dev/null\necho done\n")
    program.chmod(0o755)
    base, address = home / "mesh", f"127.0.0.1:{free_port()}"
    controller = init_controller(base, Node("controller", base / "controller", "false"), address, None)
    site = init_node(base, Node("site-b", base / "site-b", str(program)))
    control = controller / "control.sock"
    with ExitStack() as running:
        for folder in (controller, site):
            daemon = Daemon(find_receptor(), folder, own)
            running.callback(daemon.stop)
        daemon.wait_for("Known Connections")
        old, kept, new = (submit(control, "site-b", {}) for _ in range(3))
        for unit in (old, kept, new):
            with pytest.raises(EnvironmentProblem, match="gave no answer: done"):
                answer_of(control, "site-b", unit)
        ended = datetime.now(UTC).timestamp() - 3600
        for unit in (old, kept):
            os.utime(controller / "data" / "controller" / unit / "status", (ended, ended))

        forget_ended(control, {kept})

        until = time.monotonic() + 60  # the daemons agree on it by themselves
        while (controller / "data" / "controller" / old).exists() and time.monotonic() < until:
            time.sleep(0.05)
        left = {path.name for path in (controller / "data" / "controller").iterdir()}
        there = {path.name for path in (site / "data" / "site-b").iterdir()}
    assert (left, there) == ({kept, new}, {kept, new})


def written(pipe: Path, words: bytes) -> bool:
    """Write into a named pipe, if somebody reads it."""
    try:
        end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    os.write(end, words)
    os.close(end)
    return True


def test_a_restore_at_a_node_goes_on_when_nobody_waits_for_it(home: Path) -> None:
    """As after an hour, or a daemon that was restarted: cut short, it would leave the VM in between."""
    program, goes_on, done = (home.parent / name for name in ("program", "goes-on", "done"))
    program.write_text(f"#!/bin/sh\nread -r asked\nread -r word <{goes_on}\necho $word >{done}\n")
    program.chmod(0o755)
    os.mkfifo(goes_on)
    base, address = home / "mesh", f"127.0.0.1:{free_port()}"
    controller = init_controller(base, Node("controller", base / "controller", "false"), address, None)
    site = init_node(base, Node("site-b", base / "site-b", str(program)))
    with ExitStack() as running:
        for folder in (controller, site):
            daemon = Daemon(find_receptor(), folder, {"VNUMA_NODE": "site-b"})
            running.callback(daemon.stop)
        daemon.wait_for("Known Connections")
        with pytest.raises(EnvironmentProblem, match="not answered"):
            have_done(controller / "control.sock", "site-b", {}, 2.0)
        until = time.monotonic() + 60
        while not written(goes_on, b"restored\n") and time.monotonic() < until:
            time.sleep(0.05)
        while not (done.exists() and done.read_text()) and time.monotonic() < until:
            time.sleep(0.05)

    assert done.exists()


def test_a_unit_s_name_from_the_store_is_no_command_to_the_daemon(home: Path) -> None:
    """Each node can write the store: a second line in that name would be signed as the controller's."""
    unit = "abc\nwork submit site-c vnuma-ask"

    with pytest.raises(EnvironmentProblem, match="not a valid name"):
        unit_state(home / "control.sock", unit)
    with pytest.raises(EnvironmentProblem, match="not a valid name"):
        answer_of(home / "control.sock", "site-b", unit)


def test_ctrl_c_waits_for_no_node(home: Path, tmp_path: Path, shared_lab: LabHandle) -> None:
    """One that plans may take minutes, and before a run an hour."""
    path = home.parent / "control.sock"
    with ExitStack() as until, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(60)
        planning = subprocess.Popen(
            command("plan", write_study(tmp_path), "-i", write_site(tmp_path, shared_lab, "site-b")),
            env={**os.environ, "VNUMA_RECEPTOR_SOCKET": str(path)},
            stderr=subprocess.DEVNULL,
        )
        until.callback(planning.kill)
        for answer in ([b'{"RoutingTable": {"site-b": "site-b"}}\n'], [SUBMITTED, b"{}\n"], [b"Streaming\n"]):
            connection = until.enter_context(listening.accept()[0])
            connection.sendall(b"Receptor Control, node controller\n")
            for line in answer:
                connection.recv(65536)
                connection.sendall(line)
        planning.send_signal(signal.SIGINT)  # the node gives no result

        assert planning.wait(timeout=60) == 130
