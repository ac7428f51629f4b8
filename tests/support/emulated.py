"""A Linux guest with several NUMA nodes, emulated: Debian's kernel in QEMU without KVM, reached by SSH.

A few programs in an initramfs and one small disk; no installation, no network but the forwarded port. What
is missing of `NEEDED` is said by name: Debian has all of it.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

READY_S = 120.0
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
echo root:x:0:0:root:/root:/bin/sh > /etc/passwd; echo /bin/sh > /etc/shells
/opt/dropbear -R -F -E -s -p 22 &
echo VNUMA-READY > /dev/console
exec sleep 2147483647
"""


@dataclass(frozen=True)
class Guest:
    """A running guest; its inventory names it `emulated`."""

    inventory: Path
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


def missing() -> list[str]:
    """What this machine lacks for it, by Debian's words."""
    lacking = [name for name in NEEDED if _which(name) is None]
    return lacking if _kernel() else [*lacking, "linux-image-cloud-amd64"]


def start_guest(folder: Path, nodes: int) -> Guest:
    """Build it, boot it, and wait until its SSH server listens. One CPU and 256 MB for each node."""
    kernel = _kernel()
    assert kernel, "no kernel: missing() says so"
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    initrd = _initrd(folder, kernel, (folder / "key.pub").read_text(encoding="utf-8"))
    disk = folder / "disk.img"
    with disk.open("wb") as image:
        image.truncate(DISK_MB * 2**20)
    subprocess.run([str(_which("mkfs.ext4")), "-q", "-O", "^has_journal", str(disk)], check=True)
    port, console = _free_port(), folder / "console.log"
    command = _qemu(kernel, initrd, disk, console, nodes, port)
    with (folder / "qemu.log").open("wb") as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
    guest = Guest(_inventory(folder, key, port), process)
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
    (root / "usr").symlink_to(".")
    for name in PROGRAMS:
        place = {"busybox": "bin", "numactl": "bin"}.get(name, "opt")
        _copy_program(Path(str(_which(name))).resolve(), root, f"{place}/{name}")
    modules = kernel.parent.parent / "lib/modules" / kernel.name.removeprefix("vmlinuz-")
    for name in _MODULES:
        shutil.copy(next(modules.rglob(f"{name}.ko")), root / "modules")
    (root / "init").write_text(_INIT.format(modules=" ".join(_MODULES)), encoding="utf-8")
    (root / "init").chmod(0o755)
    (root / "root/.ssh/authorized_keys").write_text(public_key, encoding="utf-8")
    for private in (root / "root", root / "root/.ssh"):
        private.chmod(0o700)
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


def _copy_program(program: Path, root: Path, name: str) -> None:
    """A program and the libraries that it is linked with, where it looks for them."""
    shutil.copy(program, root / name)
    unpacked = ":".join(str(one / "usr/lib/x86_64-linux-gnu") for one in _roots()[1:])
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


def _qemu(kernel: Path, initrd: Path, disk: Path, console: Path, nodes: int, port: int) -> list[str]:
    numa = [
        part
        for node in range(nodes)
        for part in (
            *("-object", f"memory-backend-ram,id=m{node},size={NODE_MB}M"),
            *("-numa", f"node,nodeid={node},cpus={node},memdev=m{node}"),
        )
    ]
    return [
        *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max"),
        *("-smp", f"{nodes},sockets={nodes}", "-m", f"{nodes * NODE_MB}M", *numa),
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
    unknown = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    path.write_text(
        f"all:\n  hosts:\n    emulated:\n      ansible_host: 127.0.0.1\n      ansible_port: {port}\n"
        f"      ansible_user: root\n      ansible_ssh_private_key_file: {key}\n"
        f"      ansible_ssh_common_args: {unknown}\n",
        encoding="utf-8",
    )
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(guest: Guest, console: Path) -> None:
    deadline = time.monotonic() + READY_S
    while "VNUMA-READY" not in (console.read_text(errors="replace") if console.exists() else ""):
        assert guest.process.poll() is None, "QEMU ended: see qemu.log"
        assert time.monotonic() < deadline, "the guest did not come up"
        time.sleep(0.1)
