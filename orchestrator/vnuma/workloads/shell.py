"""The shell of a Linux machine, as workloads use it; the engine makes the connection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote
from typing import Protocol

from vnuma.errors import MeasurementFailed

LONGEST_S = 3600.0
"""Scripts are ended after this time: a machine that hangs must not block a run forever."""


@dataclass(frozen=True)
class Output:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def last_words(self) -> str:
        """Its last line of output, for a sentence about its failure."""
        lines = [line.strip() for line in f"{self.stdout}\n{self.stderr}".splitlines() if line.strip()]
        return lines[-1][:200] if lines else "no message"


class Shell(Protocol):
    """Runs POSIX shell scripts on one machine, as root."""

    def __call__(self, script: str, within_s: float = LONGEST_S) -> Output:
        """Run a script, ended after that time. Raises MachineUnreachable when the connection breaks."""


def require(shell: Shell, script: str, what: str) -> str:
    """A script's output. Raises MeasurementFailed with its purpose (`what`) when it fails."""
    done = shell(script)
    if done.status:
        raise MeasurementFailed(
            f"{what} failed with status {done.status}: {done.last_words}.",
            fix="Run it on the machine by hand.",
        )
    return done.stdout


BOOT = "/proc/sys/kernel/random/boot_id"
"""The kernel's own number of the present boot."""

_NODES = "/sys/devices/system/node"

_SCRIPT = """
export LC_ALL=C
say() { echo "@@ $1"; }
say hostname; hostname 2>/dev/null || cat /proc/sys/kernel/hostname
say kernel; uname -r
say boot; cat BOOT 2>/dev/null
say machine-id; cat /etc/machine-id 2>/dev/null
say uid; id -u
say uuid; cat /sys/class/dmi/id/product_uuid 2>/dev/null
say vendor; cat /sys/class/dmi/id/sys_vendor 2>/dev/null
say cpu; sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1
say virt; systemd-detect-virt --vm 2>/dev/null
say clocks; cat /sys/devices/system/clocksource/clocksource0/available_clocksource 2>/dev/null
say numactl; command -v numactl
say dd; dd if=/dev/zero of=/dev/null bs=1024 count=1024 2>&1
say meminfo; cat NODES/node[0-9]*/meminfo
say cpulists; for n in NODES/node[0-9]*; do echo "${n##*/node} $(cat $n/cpulist)"; done
say distances; for n in NODES/node[0-9]*; do echo "${n##*/node} $(cat $n/distance)"; done
say numa_balancing; cat /proc/sys/kernel/numa_balancing 2>/dev/null
say thp; cat /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null
group=$(sed -n 's/^[0-9]*:cpuset://p' /proc/self/cgroup)
say spread_page; cat "/sys/fs/cgroup/cpuset$group/cpuset.memory_spread_page" 2>/dev/null
one=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
two=$(sed -n 's/^0:://p' /proc/self/cgroup)
say memory_limit; cat "/sys/fs/cgroup/memory$one/memory.limit_in_bytes" 2>/dev/null \
  || cat "/sys/fs/cgroup$two/memory.max" 2>/dev/null
say mems_allowed; sed -n 's/^Mems_allowed_list:[[:space:]]*//p' /proc/self/status
at=FOLDER; while [ ! -d "$at" ]; do at=$(dirname "$at"); done
say file_system; stat -f -c %T "$at"
say disk_kb; df -Pk "$at" | awk 'NR == 2 { print $4 }'
say folder; [ -w "$at" ] && echo writable
say drop_caches; [ -w /proc/sys/vm/drop_caches ] && echo writable
say missing; for f in FILES; do command -v "$f" >/dev/null || [ -e "$f" ] || echo "$f"; done
say shm_kb; df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }'
"""


def linux_question(folder: str, files: Iterable[str] = ()) -> str:
    """The script that reads everything a study needs to know about a Linux machine. It changes nothing.

    `folder` is the file's; `files` are asked for, as paths or as programs by name.
    `domain.vm.linux.linux_facts` parses its output.
    """
    return (
        _SCRIPT.replace("NODES", _NODES)
        .replace("BOOT", BOOT)
        .replace("FOLDER", quote(folder))
        .replace("FILES", " ".join(map(quote, files)))
    )
