"""The script that reads everything that a study needs to know about a Linux machine. It changes nothing."""

from __future__ import annotations

from shlex import quote

_NODES = "/sys/devices/system/node"

_SCRIPT = """
export LC_ALL=C
say() { echo "@@ $1"; }
say hostname; hostname 2>/dev/null || cat /proc/sys/kernel/hostname
say kernel; uname -r
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
say shm_kb; df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }'
"""


def machine_question(folder: str) -> str:
    """The script; `folder` is the file's. `domain.vm.machine.machine_facts` parses its output."""
    return _SCRIPT.replace("NODES", _NODES).replace("FOLDER", quote(folder))
