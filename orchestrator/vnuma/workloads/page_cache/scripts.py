"""The scripts of the page cache workload: POSIX shell, dd of GNU or busybox, and numactl."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote

from vnuma.workloads.page_cache.settings import MemoryPlace

BLOCK = "1M"
SLICES = 16
"""The unsaturated reader pauses after each of this many parts of the file."""

LEFT_ON_DEPLETED_MB = 48
"""Free memory left on a depleted node, as in the publication; less may invoke the OOM killer."""

BALLAST = "/dev/shm/vnuma-page-cache"
"""Name prefix of the folders that use up a node's memory."""

_LONGEST_WAIT_S = 300
_PAGES = "cat /sys/devices/system/node/node[0-9]*/meminfo"
_START = "export LC_ALL=C\nset -e\n"


def file_name(folder: str, size_mb: int) -> str:
    """The file of one size, in our own folder."""
    return f"{own_folder(folder)}/{size_mb}mb.bin"


def own_folder(folder: str) -> str:
    """Our own folder inside the study's, which is created and removed."""
    return f"{folder.rstrip('/')}/vnuma-page-cache"


def make_file(folder: str, size_mb: int) -> str:
    """Create the file from random bytes unless it is complete; print its size.

    Random, since hypervisors share equal pages and file systems store zeros as holes. Refuses a foreign
    folder of that name, or a link.
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
    """Wait for a script of a killed play, which keeps working and would be measured too.

    Its process is identified by the number in our folder, and by the folder's name in its command line.
    """
    return (
        f"tries=0\n"
        f"while old=$(cat {own}/busy 2>/dev/null) && grep -qs vnuma-page-cache /proc/$old/cmdline; do\n"
        f"  tries=$((tries + 1)); sleep 1\n"
        f'  if [ "$tries" -gt {_LONGEST_WAIT_S} ]; then\n'
        f'    echo "process $old of an earlier pass is still at work"; exit 4\n  fi\ndone\n'
    )


def _at_work(own: str) -> str:
    """Record the working process in our folder until it ends; then also remove what "$at" names."""
    return f"at=; echo $$ > {own}/busy\ntrap 'rm -rf {own}/busy ${{at:+\"$at\"}}' EXIT\n"


def load(path: str, cpu_node: int, memory: MemoryPlace, nodes: Sequence[int]) -> str:
    """Drop the caches and read the file from `cpu_node` with its pages placed; FilePages before and after.

    The reader runs once on nothing first, so that its own program is in the page cache already. For a
    depleted node its memory is used up meanwhile.
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
    """Use up a node's free memory, except the publication's rest, with a file in /dev/shm bound to it."""
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
    """Run `readers` dd at once, each on the whole file; FilePages before and after.

    All wait at a named pipe until the last has started, so that numactl's start is not timed.
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
    """One reader that pauses after each slice; only dd's times of the slices count."""
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
    """Remove our files, their folder, and what used up memory; fails when the folder remains."""
    own, files = quote(own_folder(folder)), " ".join(quote(file_name(folder, size)) for size in sizes_mb)
    return (
        f"{_wait_for_others(own)}"
        f'for at in {BALLAST}.*; do if [ -O "$at" ] && [ ! -L "$at" ]; then rm -rf "$at"; fi; done\n'
        f"rm -rf {files} {own}/busy {own}/read.*\n"
        f"if [ -d {own} ]; then rmdir {own}; fi\n"
    )
