"""`python -m tools.bench.rules`: every design rule on 10,000 VMs of 300 hosts, processor time and memory."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace
from random import Random

from tests.support.hosts import host_of
from tests.unit.checks.cases import subject_of
from vnuma.checks.evaluate import evaluate
from vnuma.checks.facts import Subject
from vnuma.checks.rules.catalogue import RULES
from vnuma.domain.vm.facts import ClusterFacts

VMS, HOSTS, CLUSTERS = 10_000, 300, 20
LIMIT_S = 3
SIZES = ((4, 2), (8, 4), (16, 4), (24, 6), (30, 6), (32, 16))


def estate(vms: int = VMS) -> list[Subject]:
    """Unlike VMs on unlike hosts, half of them with SQL Server's facts; the same every time."""
    random = Random(1)
    hosts = [
        replace(
            host_of(cores=20, release=random.choice(("6.7.0", "7.0.3", "8.0.2"))),
            moid=f"host-{n}",
            name=f"esx{n:03}",
            advanced={},
            power_policy="static",
        )
        for n in range(HOSTS)
    ]
    clusters = [ClusterFacts(f"c{n}", f"C{n}", True, tuple(hosts[n::CLUSTERS])) for n in range(CLUSTERS)]
    with_sql, plain = subject_of({"sql": {}, "guest": {}}), subject_of({})
    made = []
    for number in range(vms):
        base = with_sql if number % 2 else plain
        host = hosts[number % HOSTS]
        vcpus, per_socket = random.choice(SIZES)
        assert base.vm is not None
        settings = {
            **base.vm.settings,
            "numCPUs": vcpus,
            "numCoresPerSocket": per_socket,
            "memoryMB": random.choice((32, 64, 128)) * 1024,
            "cpuHotAddEnabled": random.random() < 0.2,
        }
        vm = replace(base.vm, name=f"sql{number}", instance_uuid=str(number), settings=settings)
        cluster = clusters[number % HOSTS % CLUSTERS]
        made.append(replace(base, vm=vm, host=host, cluster=cluster))
    return made


def main() -> None:
    """Print the figures."""
    subjects = estate()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    evaluations = list(evaluate(subjects, RULES))
    rules_s = time.process_time() - start
    failures = sum(len(evaluation.failures) for evaluation in evaluations)
    total_s = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unseen = sum(len(evaluation.not_evaluated) for evaluation in evaluations)
    print(f"{len(subjects)} VMs x {len(RULES)} rules: {rules_s:.2f} s, with findings {total_s:.2f} s")
    print(f"{failures} failures, {unseen} not evaluated")
    print(f"peak memory {after // 1024} MB, {(after - before) // 1024} MB of it for the answers")
    sys.exit(rules_s >= LIMIT_S)


if __name__ == "__main__":
    main()
