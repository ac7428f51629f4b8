"""A Linux guest with several NUMA nodes, emulated: Debian's kernel in QEMU without KVM, reached by SSH.

A few programs in an initramfs and one small disk; no installation, no network but the forwarded port. What
is missing of `NEEDED` is said by name: Debian has all of it.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from tests.support.ports import free_port

READY_S = 300.0
NODE_MB = 256
DISK_MB = 192

PROGRAMS = ("busybox", "numactl", "dropbear", "dd", "dash")
NEEDED = (*PROGRAMS, "qemu-system-x86_64", "cpio", "mkfs.ext4", "ssh-keygen", "ssh")

_MODULES = (
    *("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"),
    *("virtio_blk", "failover", "net_failover", "virtio_net"),
)

# `no_timer_check`: on a busy machine the emulated timer misses the kernel's test of it.
_INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
ln -sf /opt/dd /bin/dd; ln -sf /opt/dash /bin/sh
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm; mount -t devpts pts /dev/pts; mount -t tmpfs shm /dev/shm
for module in {modules}; do insmod /modules/$module.ko; done
hostname emulated
ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0
mount -t ext4 /dev/vda /data
/opt/dropbear -R -F -E -s -p 22 &
echo VNUMA-READY > /dev/console
exec sleep 2147483647
"""


USERS = {"root": 0, "sudoer": 1000, "asked": 1001, "plain": 1002}
"""Who logs in by the key: root, one with sudo, one whom sudo asks for a password, one without sudo."""

PASSWORD = "emulated"
_SHADOW = (  # openssl passwd -6 -salt emulated emulated
    "$6$emulated$jby21Y4of1ytw215LMjpmLdGHWXgbSTZmPmeB8Xrzz6Kjf1c7NK6lQPvRrw1F5yP944UoYU9Yj4vS.1vxdtvD/"
)
_ETC = {
    "passwd": "".join(f"{name}:x:{uid}:{uid}::/root:/bin/sh\n" for name, uid in USERS.items()),
    "shadow": "".join(f"{name}:{_SHADOW}:19000:0:99999:7:::\n" for name in USERS),
    "shells": "/bin/sh\n",
    "hosts": "127.0.0.1 localhost emulated\n",
    "sudoers": "sudoer ALL=(ALL) NOPASSWD: ALL\nasked ALL=(ALL) ALL\n",
    "pam.d/sudo": "".join(
        f"{kind} required {module}\n"
        for kind, module in (
            ("auth", "pam_unix.so"),
            ("account", "pam_permit.so"),
            ("session", "pam_permit.so"),
        )
    ),
}
_PAM_MODULES = ("pam_unix.so", "pam_permit.so")


@dataclass(frozen=True)
class Guest:
    """A running guest; its inventory names it `emulated`, and by each of `USERS` but root."""

    inventory: Path
    process: subprocess.Popen[bytes]
    port: int
    key: Path

    def ask(self, script: str) -> str:
        """What a script prints that root runs there, without vnuma and Ansible. It has to succeed."""
        unknown = (
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
        )
        command = ["ssh", *unknown, "-i", str(self.key), "-p", str(self.port), "root@127.0.0.1", script]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
        ).stdout

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


def missing() -> list[str]:
    """What this machine lacks for it, by Debian's words."""
    lacking = [name for name in NEEDED if _which(name) is None]
    return lacking if _kernel() else [*lacking, "linux-image-cloud-amd64"]


def has_sudo() -> bool:
    """Whether sudo and what it asks are there to be copied."""
    return _which("sudo") is not None and all(_pam(name) for name in _PAM_MODULES)


def start_guest(folder: Path, cpus: Sequence[int]) -> Guest:
    """Build it, boot it, and wait until its SSH server listens.

    `cpus` has the number of CPUs of each node; each has 256 MB.
    """
    kernel = _kernel()
    assert kernel, "no kernel: missing() says so"
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    initrd = _initrd(folder, kernel, (folder / "key.pub").read_text(encoding="utf-8"))
    disk = folder / "disk.img"
    with disk.open("wb") as image:
        image.truncate(DISK_MB * 2**20)
    subprocess.run([str(_which("mkfs.ext4")), "-q", "-O", "^has_journal", str(disk)], check=True)
    port, console = free_port(), folder / "console.log"
    command = _qemu(kernel, initrd, disk, console, cpus, port)
    with (folder / "qemu.log").open("wb") as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
    guest = Guest(_inventory(folder, key, port), process, port, key)
    try:
        _wait(guest, console)
    except BaseException:
        guest.stop()
        raise
    return guest


def _kernel() -> Path | None:
    """The newest cloud kernel that is installed, with its modules."""
    found = [path for root in _roots() for path in sorted((root / "boot").glob("vmlinuz-*-cloud-amd64"))]
    return found[-1] if found else None


def _roots() -> list[Path]:
    """Where Debian's files are: installed, or unpacked by dpkg -x below VNUMA_GUEST_ROOT."""
    unpacked = os.environ.get("VNUMA_GUEST_ROOT")
    return [Path("/"), *([Path(unpacked)] if unpacked else [])]


def _which(name: str) -> str | None:
    folders = ("usr/bin", "bin", "usr/sbin", "sbin")
    return shutil.which(name, path=":".join(str(root / one) for root in _roots() for one in folders))


def _initrd(folder: Path, kernel: Path, public_key: str) -> Path:
    root = folder / "root"
    for name in ("bin", "opt", "proc", "sys", "dev", "etc/dropbear", "root/.ssh", "tmp", "data", "modules"):
        (root / name).mkdir(parents=True)
    for name, text in _ETC.items():
        (root / "etc" / name).parent.mkdir(exist_ok=True)
        (root / "etc" / name).write_text(text, encoding="utf-8")
    (root / "usr").symlink_to(".")
    for name in PROGRAMS:
        place = {"busybox": "bin", "numactl": "bin"}.get(name, "opt")
        _copy_program(Path(str(_which(name))).resolve(), root, f"{place}/{name}")
    modules = kernel.parent.parent / "lib/modules" / kernel.name.removeprefix("vmlinuz-")
    for name in _MODULES:
        shutil.copy(next(modules.rglob(f"{name}.ko")), root / "modules")
    if has_sudo():
        _copy_sudo(root)
    _write_program(root / "init", _INIT.format(modules=" ".join(_MODULES)))
    (root / "root/.ssh/authorized_keys").write_text(public_key, encoding="utf-8")
    (root / "root/.ssh").chmod(0o755)  # every user's home, so that one key serves all
    names = b"\0".join(str(path.relative_to(root)).encode() for path in sorted(root.rglob("*")))
    packed = subprocess.run(
        ["cpio", "-o", "-0", "-H", "newc", "--quiet", "-R", "0:0"],
        cwd=root,
        input=names,
        check=True,
        capture_output=True,
    )
    initrd = folder / "initrd.gz"
    initrd.write_bytes(gzip.compress(packed.stdout, 1))
    return initrd


def _write_program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _copy_sudo(root: Path) -> None:
    """sudo, its plugin, and the PAM modules that it asks: where Debian has them."""
    sudo = Path(str(_which("sudo"))).resolve()
    _copy_program(sudo, root, "bin/sudo")
    (root / "bin/sudo").chmod(0o4755)
    _copy_program(sudo.parents[1] / "libexec/sudo/sudoers.so", root, "libexec/sudo/sudoers.so")
    for name in _PAM_MODULES:
        _copy_program(Path(str(_pam(name))), root, f"lib/x86_64-linux-gnu/security/{name}")
    (root / "etc/sudoers").chmod(0o440)
    (root / "etc/shadow").chmod(0o600)
    (root / "run").mkdir()


def _pam(name: str) -> Path | None:
    places = [root / "usr/lib/x86_64-linux-gnu/security" / name for root in _roots()]
    return next((place for place in places if place.exists()), None)


def _copy_program(program: Path, root: Path, name: str) -> None:
    """A program and the libraries that it is linked with, where it looks for them."""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, root / name)
    folders = ("usr/lib/x86_64-linux-gnu", "usr/libexec/sudo")
    unpacked = ":".join(str(one / folder) for one in _roots() for folder in folders)
    linked = subprocess.run(
        ["ldd", str(program)],
        env={"PATH": os.defpath, "LD_LIBRARY_PATH": unpacked},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    for library in re.findall(r"(/\S+\.so\S*)", linked):
        loader = Path(library).name.startswith("ld-linux")
        target = root / ("lib64" if loader else "lib/x86_64-linux-gnu") / Path(library).name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


def _qemu(kernel: Path, initrd: Path, disk: Path, console: Path, cpus: Sequence[int], port: int) -> list[str]:
    ends = list(accumulate(cpus))
    numa = [
        part
        for node, end in enumerate(ends)
        for part in (
            *("-object", f"memory-backend-ram,id=m{node},size={NODE_MB}M"),
            *("-numa", f"node,nodeid={node},cpus={end - cpus[node]}-{end - 1},memdev=m{node}"),
        )
    ]
    return [
        *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max"),
        *("-smp", f"{ends[-1]},sockets={ends[-1]}", "-m", f"{len(cpus) * NODE_MB}M", *numa),
        *(
            "-kernel",
            str(kernel),
            "-initrd",
            str(initrd),
            "-append",
            "console=ttyS0 quiet panic=-1 no_timer_check",
        ),
        *("-nographic", "-no-reboot", "-nodefaults", "-serial", f"file:{console}"),
        *("-drive", f"file={disk},format=raw,if=virtio"),
        *("-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", "virtio-net-pci,netdev=net"),
    ]


def _inventory(folder: Path, key: Path, port: int) -> Path:
    path = folder / "hosts.yml"
    password = {"asked": {"ansible_become_password": PASSWORD}}
    hosts = {
        name: {"ansible_user": user, **password.get(name, {})}
        for name, user in {"emulated": "root", **{name: name for name in USERS}, "forgetful": "asked"}.items()
    }
    common = {
        "ansible_host": "127.0.0.1",
        "ansible_port": port,
        "ansible_ssh_private_key_file": str(key),
        "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
    }
    path.write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}), encoding="utf-8")
    return path


def _said(console: Path) -> bool:
    return console.exists() and "VNUMA-READY" in console.read_text(errors="replace")


def _answers(port: int) -> bool:
    """Whether the SSH server greets: QEMU takes a connection before anybody listens behind it."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=READY_S) as greeted:
            return greeted.recv(4) == b"SSH-"
    except OSError:
        return False


def _wait(guest: Guest, console: Path) -> None:
    deadline = time.monotonic() + READY_S
    while not (_said(console) and _answers(guest.port)):
        assert guest.process.poll() is None, "QEMU ended: see qemu.log"
        assert time.monotonic() < deadline, "the guest did not come up"
        time.sleep(0.1)
