"""The lines in which known benchmarks print their figure, and the figure.

The lines are from published results of each program; docs/workloads/command.md reads them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml


def documented() -> dict[str, dict[str, Any]]:
    """Each benchmark's figure in docs/workloads/command.md."""
    page = (Path(__file__).parents[3] / "docs/workloads/command.md").read_text(encoding="utf-8")
    (block,) = (text for text in re.findall(r"```\n(\w+:.*?)```", page, re.DOTALL) if "hammerdb" in text)
    found: dict[str, dict[str, Any]] = yaml.safe_load(block)
    return found


PRINTED = {
    "hammerdb": (
        "Vuser 1:TEST RESULT : System achieved 45231 NOPM from 125678 SQL Server TPM\n"
        "Vuser 1:FINISHED SUCCESS\nVuser 2:FINISHED SUCCESS\nALL VIRTUAL USERS COMPLETE\n",
        45231,
    ),
    "pgbench": (
        "number of transactions actually processed: 12221\nnumber of failed transactions: 0 (0.000%)\n"
        "latency average = 122.818 ms\ninitial connection time = 59.010 ms\n"
        "tps = 406.261459 (without initial connection time)\n",
        406.261459,
    ),
    "sysbench": (
        "[ 10s ] thds: 8 tps: 801.10 qps: 16022.02 lat (ms,95%): 11.2 err/s: 0.00 reconn/s: 0.00\n"
        "    transactions:                        42641  (835.80 per sec.)\n"
        "    ignored errors:                      0      (0.00 per sec.)\n",
        835.80,
    ),
    "stream": (
        "Function    Best Rate MB/s  Avg time     Min time     Max time\n"
        "Copy:          386393.7     0.004873     0.004141     0.033827\n"
        "Triad:         422387.1     0.006789     0.005682     0.042516\n",
        422387.1,
    ),
    "mlc": (
        "ALL Reads        :  225097.1\n3:1 Reads-Writes :  212457.8\nStream-triad like:  190341.4\n",
        225097.1,
    ),
    "specjbb": (
        "       142 msec: Building throughput - response time curve\n"
        "RUN RESULT: hbIR (max attempted) = 19881, hbIR (settled) = 18803, max-jOPS = 18489, "
        "critical-jOPS = 7698\n",
        7698,
    ),
    "ostress": (
        "11/12/15 00:35:00.873 [0x000030A8] OSTRESS exiting normally, elapsed time: 00:01:31.867\n",
        91.867,
    ),
    "fio": ('{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {"iops": 1021.5}}]}', 1021.5),
}
