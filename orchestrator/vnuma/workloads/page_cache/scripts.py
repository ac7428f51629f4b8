"""The scripts of the page cache workload: POSIX shell, dd of GNU or busybox, and numactl."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote

from vnuma.workloads.page_cache.settings import MemoryPlace

BLOCK = "1M"
SLICES = 16
"""The unsaturated reader rests after each of so many parts of the file."""

LEFT_ON_DEPLETED_MB = 48
"""So much of a depleted node stays free: the seed left 40 MB, and less invites the OOM killer."""

BALLAST = "/dev/shm/vnuma-page-cache"
"""How the folders begin that hold what uses a node's memory up."""

_LONGEST_WAIT_S = 300
_PAGES = "cat /sys/devices/system/node/node[0-9]*/meminfo"
_START = "export LC_ALL=C\nset -e\n"


def file_name(folder: str, size_mb: int) -> str:
    """The file of one size, in a folder of our own."""
    return f"{own_folder(folder)}/{size_mb}mb.bin"


def own_folder(folder: str) -> str:
    """Our own folder within the study's: what is made and removed."""
    return f"{folder.rstrip('/')}/vnuma-page-cache"


def make_file(folder: str, size_mb: int) -> str:
    """Make the file, of random bytes, unless it is there in its whole size; print its size.

    Random, because hypervisors share equal pages of a guest and file systems store zeros as holes. A
    folder of that name that is somebody else's, or a link, is refused.
    """
    own, path, size = quote(own_folder(folder)), quote(file_name(folder, size_mb)), size_mb * 1_000_000
    return (
        f"{_START}[ -e {own} ] || mkdir -p -m 700 {own}\n"
        f"if [ -L {own} ] || [ ! -O {own} ]; then echo {own} is not ours; exit 3; fi\n"
        f"{_wait_for_others(own)}{_at_work(own)}"
        f'if [ "$(stat -c %s {path} 2>/dev/null || echo 0)" != {size} ]; then\n'
        f"  head -c {size} /dev/urandom > {path}\n  sync\nfi\n"
        f"stat -c %s {path}\n"
    )


def _wait_for_others(own: str) -> str:
    """Wait for a script of a play that was killed: it works on, and would be measured too.

    Its process is known by the number in our folder, and by the folder's name in its command line.
    """
    return (
        f"tries=0\n"
        f"while old=$(cat {own}/busy 2>/dev/null) && grep -qs vnuma-page-cache /proc/$old/cmdline; do\n"
        f"  tries=$((tries + 1)); sleep 1\n"
        f'  if [ "$tries" -gt {_LONGEST_WAIT_S} ]; then\n'
        f'    echo "process $old of an earlier pass is still at work"; exit 4\n  fi\ndone\n'
    )


def _at_work(own: str) -> str:
    """Say which process is at work in our folder until it ends; what is in "$at" goes with it."""
    return f"at=; echo $$ > {own}/busy\ntrap 'rm -rf {own}/busy ${{at:+\"$at\"}}' EXIT\n"


def load(path: str, cpu_node: int, memory: MemoryPlace, nodes: Sequence[int]) -> str:
    """Drop the caches and read the file in from `cpu_node`, its pages placed; FilePages before and after.

    The reader is started once on nothing before the first look: its own program comes back into the page
    cache then, not while the file does. For a depleted node its memory is used up meanwhile.
    """
    read = f"numactl --cpunodebind={cpu_node} {_policy(memory, nodes)} dd bs={BLOCK} of=/dev/null"
    own = quote(path.rpartition("/")[0])
    return (
        f"{_START}{_at_work(own)}sync\necho 1 > /proc/sys/vm/drop_caches\n"
        f"{_deplete(cpu_node) if memory == 'depleted' else ''}"
        f"{read} if=/dev/null 2>&1\n"
        f"echo '@@ before'; {_PAGES}\n"
        f"echo '@@ read'; {read} if={quote(path)} 2>&1\n"
        f"echo '@@ after'; {_PAGES}\n"
    )


def _deplete(node: int) -> str:
    """Use a node's free memory up but for what the seed left, with a file in /dev/shm bound to it."""
    return (
        f"free=$(awk '$3 == \"MemFree:\" {{ print $4 }}' /sys/devices/system/node/node{node}/meminfo)\n"
        f"count=$((free / 1024 - {LEFT_ON_DEPLETED_MB}))\n"
        f"at=$(mktemp -d {BALLAST}.XXXXXX)\n"
        f'if [ "$count" -gt 0 ]; then numactl --cpunodebind={node} --membind={node} '
        f'dd if=/dev/zero of="$at/ballast" bs={BLOCK} count="$count" 2>&1; fi\n'
    )


def _policy(memory: MemoryPlace, nodes: Sequence[int]) -> str:
    if memory == "depleted":
        return "--localalloc"
    if memory == "interleave":
        return f"--interleave={','.join(map(str, nodes))}"
    return f"--membind={memory}"


def read_back(path: str, cpu_node: int, readers: int) -> str:
    """`readers` dd at once, each whole file; FilePages before and after.

    All wait at a named pipe until the last has started: numactl's own start is in nobody's time.
    """
    reader = f"dd if={quote(path)} of=/dev/null bs={BLOCK}"
    start = f"numactl --cpunodebind={cpu_node} --localalloc /bin/sh -c"
    wait = quote(f'echo r >> "$1/ready"; read go < "$1/gate"; exec {reader} 2> "$1/$2"')
    own = quote(path.rpartition("/")[0])
    return (
        f"{_START}{_at_work(own)}at=$(mktemp -d {own}/read.XXXXXX)\n"
        'mkfifo "$at/gate"; : > "$at/ready"; exec 3<> "$at/gate"\n'
        f"echo '@@ before'; {_PAGES}\n"
        f'for n in $(seq {readers}); do {start} {wait} reader "$at" $n & done\n'
        f'while [ "$(wc -l < "$at/ready")" -lt {readers} ]; do sleep 0.05; done\n'
        f"for n in $(seq {readers}); do echo >&3; done\nwait\n"
        f"echo '@@ read'; for n in $(seq {readers}); do cat \"$at/$n\"; done\n"
        f"echo '@@ after'; {_PAGES}\n"
    )


def read_with_rests(path: str, cpu_node: int, size_mb: int, rest_s: float) -> str:
    """One reader that rests after each slice; the times of its slices are dd's, the rests are not counted."""
    blocks = -(-size_mb * 1_000_000 // 2**20)
    step = -(-blocks // SLICES)
    reader = f"dd if={quote(path)} of=/dev/null bs={BLOCK} count={step} skip=$s"
    slice_ = f"{reader} || exit 1; s=$((s + {step})); sleep {rest_s:.3f}"
    loop = f"s=0; while [ $s -lt {blocks} ]; do {slice_}; done"
    return (
        f"{_START}{_at_work(quote(path.rpartition('/')[0]))}echo '@@ before'; {_PAGES}\n"
        f"echo '@@ up'; cat /proc/uptime\n"
        f"echo '@@ read'; numactl --cpunodebind={cpu_node} --localalloc /bin/sh -c {quote(loop)} 2>&1\n"
        f"echo '@@ down'; cat /proc/uptime\n"
        f"echo '@@ after'; {_PAGES}\n"
    )


def remove(folder: str, sizes_mb: Iterable[int]) -> str:
    """Remove our files, their folder, and what used memory up; fails when the folder is still there."""
    own, files = quote(own_folder(folder)), " ".join(quote(file_name(folder, size)) for size in sizes_mb)
    return (
        f"{_wait_for_others(own)}"
        f'for at in {BALLAST}.*; do if [ -O "$at" ] && [ ! -L "$at" ]; then rm -rf "$at"; fi; done\n'
        f"rm -rf {files} {own}/busy {own}/read.*\n"
        f"if [ -d {own} ]; then rmdir {own}; fi\n"
    )
