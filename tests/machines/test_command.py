"""A program that prints a figure: pgbench with a real PostgreSQL, from plan to report."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from pyVmomi import vim

from tests.conftest import LabFactory
from tests.machines.on_guest import SHAPED, figures, nodes_of
from tests.support.cli import vnuma
from tests.support.lab import LabHandle
from tests.support.looking import change_by_hand, reset_by_hand, settings_now
from tests.support.playbook import play
from tests.support.postgresql import Cluster, database_of
from tests.support.site import ask_machine, write_inventory, write_machines
from tests.unit.workloads.printed import documented
from vnuma.engine.access.places import store_url
from vnuma.engine.cell.dataset import DATABASE
from vnuma.report.archive.read import open_archive
from vnuma.report.export.results import document
from vnuma.report.model.model import load_run
from vnuma.store import attempts
from vnuma.store.audit import lines
from vnuma.store.open import open_store
from vnuma.store.rows import Outcome, Sample
from vnuma.store.samples import iter_samples
from vnuma.workloads.command.settings import Figure

STUDIES = Path(__file__).parents[2] / "studies"
FIGURE: dict[str, Any] = {"name": "transactions", "unit": "1/s", "better": "higher", "regex": r"^tps = (\S+)"}
HERE = pytest.mark.skipif(os.geteuid() != 0, reason="the page cache is dropped, and asked about, by root")


def study(folder: Path, workload: dict[str, Any], **changes: Any) -> Path:
    """A study of this machine as it is, with one arm and one pass."""
    document = {
        "name": "bench",
        "vm": "localhost",
        "reference": "plain",
        "arms": [{"topology": "keep", "name": "plain"}],
        "design": {"blocks": 1, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 1},
        "limits": {"attempts_per_cell": 1},
        **changes,
        "workload": {"name": "command", "figure": FIGURE, "timeout_s": 60, **workload},
    }
    path = folder / "bench.yml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def samples() -> list[Sample]:
    """Of the latest run."""
    store = open_store(store_url())
    with store.read() as connection:
        return [one.sample for one in iter_samples(connection, load_run(store, "latest").run.id)]


def kept(sample: Sample) -> str:
    """What its program printed."""
    return str((sample.execution or {})["stdout"])


@pytest.mark.long
def test_pgbench_is_measured_in_the_shape_of_each_arm(
    tmp_path: Path, lab: LabFactory, postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the lab's vSphere, from start to verdicts: real transactions, each arm's nodes, the VM as before.

    The run's archive is read without trying the study's expression.
    """
    machine = {"name": "linux16", "vm": "linux16", "real": ["pgbench", "psql"]}
    running = lab({**SHAPED, "machines": [machine]})
    inventory, url = write_machines(tmp_path, running), postgresql.new_database()
    database = [f"--host={postgresql.folder}", "--username=owner", database_of(url)]
    bench = study(
        tmp_path,
        {
            "study_setup": [["pgbench", "--initialize", "--quiet", *database]],
            "study_teardown": [["psql", "--command=DROP TABLE IF EXISTS pgbench_history", *database]],
            "run": ["pgbench", "--client={size}", "--transactions=50", *database],
            "sizes": [1, 2],
        },
        vm="linux16",
        vcpus=16,
        reference="2x8",
        arms=["2x8", "1x16"],
        all_arms={"affinity": {"physical_cores": [0, 1]}, "memory_reservation": "locked"},
        design={"blocks": 6, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 1},
        power={"tools_timeout_s": 60, "sql_timeout_s": 60, "shutdown_timeout_s": 60},
    )
    before = settings_now(running, "linux16")

    ran = vnuma("run", bench, "-i", inventory)

    assert ran.code == 0, ran.text
    loaded = load_run(open_store(store_url()), "latest")
    (vm,) = loaded.vms
    assert {one.arm: nodes_of(one) for one in loaded.attempts_of(vm, Outcome.VALID)} == {"2x8": 2, "1x16": 1}
    measured = samples()
    assert len(measured) == 6 * 2 * 2
    assert [one.value for one in measured] == [Figure(**FIGURE).read(kept(one)) for one in measured]
    reference, other = figures()
    assert reference["verdict"] == "reference"
    assert other["verdict"] != "too few boots"
    assert vnuma("report", "latest", "--output", tmp_path / "page.html").code == 0
    assert settings_now(running, "linux16") == before
    with pytest.raises(psycopg.errors.UndefinedTable):
        postgresql.execute(url, "SELECT FROM pgbench_history")
    assert vnuma("export", "latest", "-o", tmp_path / "bench.vnuma.zip").code == 0

    def read(self: Figure, output: str) -> float:
        raise AssertionError(f"{self.regex} of an archive was tried on {output}")

    monkeypatch.setattr(Figure, "read", read)
    archived = load_run(*open_archive(tmp_path / "bench.vnuma.zip"))
    assert document(archived)["analyses"][0]["sizes"][0]["arms"] == [reference, other]


JAVA = """
public class Bench {
    public static void main(String[] given) throws Exception {
        var done = new java.util.concurrent.atomic.LongAdder();
        var threads = new Thread[Integer.parseInt(given[0])];
        long end = System.nanoTime() + 300_000_000L;
        for (int at = 0; at < threads.length; at++) {
            threads[at] = new Thread(() -> { while (System.nanoTime() < end) done.increment(); });
            threads[at].start();
        }
        for (var thread : threads) thread.join();
        System.out.printf("RUN RESULT: max-jOPS = 18489, critical-jOPS = %d%n", done.sum());
    }
}
"""
C = """
#include <stdio.h>
#include <time.h>
static double a[1 << 20], b[1 << 20];
int main(void) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int turn = 1; turn <= 20; turn++)
        for (int i = 0; i < 1 << 20; i++) a[i] = b[i] + turn * a[i];
    clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = to.tv_sec - from.tv_sec + (to.tv_nsec - from.tv_nsec) / 1e9;
    printf("Function    Best Rate MB/s  Avg time\\n");
    printf("Triad:       %11.1f  %f\\n", 20 * 24 * 1.048576 / seconds, a[9]);
}
"""
REAL: dict[str, tuple[str, dict[str, Any]]] = {
    "sysbench": ("sysbench", {}),
    "fio": (
        "fio",
        {
            "run": "fio --name=a --ioengine=null --size=1G --rw=randread --time_based --runtime=1 "
            "--output-format=json --numjobs={size} --group_reporting"
        },
    ),
    "specjbb": ("java", {"run": ["java", "FOLDER/Bench.java", "{size}"]}),
    "stream": (
        "gcc",
        {
            "study_setup": [["gcc", "-O2", "FOLDER/bench.c", "-o", "FOLDER/bench"]],
            "run": ["numactl", "--localalloc", "FOLDER/bench"],
        },
    ),
}
"""Programs of this machine, by the documented figure that reads them: sysbench and fio themselves; a Java
and a C program that print as SPECjbb and STREAM do, of which there are no packages.
"""


@pytest.mark.long
@pytest.mark.parametrize("figure", REAL)
def test_a_study_of_a_real_program_has_the_figures_that_it_printed(
    tmp_path: Path, lab: LabFactory, figure: str
) -> None:
    """On the lab, by studies/sysbench.yml as it is; another program takes its place in fewer blocks."""
    needs, workload = REAL[figure]
    if shutil.which(needs) is None:
        pytest.skip(f"no benchmark's program here: {needs}")
    machine = {"name": "linux16", "vm": "linux16", "real": [needs, "numactl"]}
    running = lab({**SHAPED, "machines": [machine]})
    (tmp_path / "Bench.java").write_text(JAVA, "utf-8")
    (tmp_path / "bench.c").write_text(C, "utf-8")
    bench = tmp_path / "bench.yml"
    shipped = yaml.safe_load((STUDIES / "sysbench.yml").read_text("utf-8"))
    if figure != "sysbench":
        own = json.loads(json.dumps(workload).replace("FOLDER", str(tmp_path)))
        shipped["workload"] |= {**own, "figure": documented()[figure]}
        shipped["design"]["blocks"] = 1
    blocks = shipped["design"]["blocks"]
    bench.write_text(yaml.safe_dump(shipped), "utf-8")

    ran = vnuma("run", bench, "-i", write_machines(tmp_path, running))

    assert ran.code == 0, ran.text
    read = Figure(**shipped["workload"]["figure"])
    measured = samples()
    assert len(measured) == blocks * 2 * 3
    assert [one.value for one in measured] == [read.read(kept(one)) for one in measured]
    assert (figures()[1]["verdict"] == "too few boots") is (blocks < 6)


@HERE
def test_an_iteration_without_a_figure_has_a_reason_and_its_output(tmp_path: Path) -> None:
    """It is a sample without a number; teardown runs, and so does the study's own."""
    teardown = [["rm", str(tmp_path / "boot")]]
    bench = study(
        tmp_path,
        {
            "run": "echo tps = 5; sleep 1000",
            "timeout_s": 3,  # also of the four short ones, on a busy machine
            "study_setup": [["touch", str(tmp_path / "study")]],
            "setup": [["touch", str(tmp_path / "boot")]],
            "teardown": teardown,
            "study_teardown": [["rm", "-f", str(tmp_path / "study")]],
        },
    )

    ran = vnuma("run", bench)

    assert ran.code == 6, ran.text
    (sample,) = samples()
    assert (sample.value, sample.elapsed_ms, kept(sample)) == (None, None, "tps = 5\n")
    assert "longer than 3 s" in str(sample.reason)
    assert not {"boot", "study"} & {path.name for path in tmp_path.iterdir()}


@pytest.mark.long
def test_a_guest_reset_in_the_middle_has_no_figure_and_is_restored(tmp_path: Path, lab: LabFactory) -> None:
    """Its program waits until the VM was reset, and then prints one."""
    running = lab({**SHAPED, "machines": [{"name": "linux16", "vm": "linux16", "real": ["python3"]}]})
    begun, reset = tmp_path / "begun", tmp_path / "reset"
    os.mkfifo(begun)
    os.mkfifo(reset)
    program = f"open({str(begun)!r}, 'w').close(); open({str(reset)!r}).read(); print('tps = 5')"
    bench = study(
        tmp_path,
        {"run": ["python3", "-c", program]},
        vm="linux16",
        vcpus=16,
        reference="2x8",
        arms=["2x8"],
    )
    inventory, before = write_machines(tmp_path, running), settings_now(running, "linux16")

    with ThreadPoolExecutor(1) as one:
        run = one.submit(vnuma, "run", bench, "-i", inventory)
        begun.read_text("utf-8")
        reset_by_hand(running, "linux16")
        reset.write_text("", "utf-8")

    assert run.result().code == 6, run.result().text
    assert [one.value for one in samples() if one.value is not None] == []
    assert settings_now(running, "linux16") == before


@HERE
@pytest.mark.long
def test_a_failed_study_setup_ends_the_study_of_that_vm(tmp_path: Path) -> None:
    """No further attempt at any cell; the error has the program's last words."""
    bench = study(
        tmp_path,
        {"run": "echo tps = 5", "study_setup": ["no-such-bench --initialize"]},
        design={"blocks": 2, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 1},
        limits={"attempts_per_cell": 3},
    )

    ran = vnuma("run", bench)

    assert ran.code == 6, ran.text
    store = open_store(store_url())
    with store.read() as connection:
        (only,) = attempts.lines_of_run(connection, load_run(store, "latest").run.id)
    assert only.reason == "study_setup_failed"
    assert "no-such-bench: not found" in " ".join(ran.text.split())


@HERE
def test_what_is_missing_and_a_client_that_is_the_controller_block_the_study(tmp_path: Path) -> None:
    """Before anything runs."""
    inventory = tmp_path / "hosts.yml"
    local = {"ansible_connection": "local"}
    hosts = {"guest": local, "driver": local, "windows": {"ansible_host": "127.0.0.1", "ansible_port": 1}}
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}), "utf-8")
    ours = {"run": ["no-such-bench"], "files": ["/no/such/file"]}

    missing = vnuma("plan", study(tmp_path, ours, vm="guest"), "-i", inventory, "--format", "json")
    loaded = {"run": ["true"], "client": "driver"}
    client = vnuma("plan", study(tmp_path, loaded, vm="guest"), "-i", inventory, "--format", "json")
    guest = vnuma("plan", study(tmp_path, loaded, vm="windows"), "-i", inventory)
    unknown = vnuma("plan", study(tmp_path, {**loaded, "client": "drivre"}), "-i", inventory)
    unnamed = vnuma("plan", study(tmp_path, {**loaded, "client": "localhost"}), "-i", inventory)

    assert missing.code == client.code == 5
    assert guest.code == 4
    assert (unknown.code, "Did you mean driver?" in unknown.text) == (3, True)
    assert (unnamed.code, "(P29)" in unnamed.text) == (3, True)
    found = [
        [one["id"] for one in json.loads(planned.out)["vms"][0]["findings"] if one["severity"] == "block"]
        for planned in (missing, client)
    ]
    assert found == [["P29"] * 2, ["P29"]]  # a file and a program; a client that is all three machines


@pytest.mark.parametrize("shaped", [pytest.param(False, marks=pytest.mark.long), True])
def test_check_mode_shows_the_programs(tmp_path: Path, lab: LabFactory, shaped: bool) -> None:
    """Those of the next cell, as the plan does, with and without a VM around the guest."""
    inventory = write_machines(tmp_path, lab(SHAPED))
    if not shaped:
        hosts = json.loads(inventory.read_text("utf-8"))
        hosts["all"]["hosts"]["linux16"].pop("vnuma_vcenter")
        inventory.write_text(json.dumps(hosts), "utf-8")
    arms = {"vcpus": 16, "reference": "2x8", "arms": ["2x8"]} if shaped else {}
    bench = study(tmp_path, {"setup": ["rm -f old"], "run": "bench {size}"}, vm="linux16", **arms)
    run = vnuma("run", bench, "-i", inventory, "--create-only").out.strip()

    played = play(
        tmp_path,
        inventory,
        "vnuma.vnuma.cell",
        *("-e", f"vnuma_run={run}", "-e", "vnuma_hosts=linux16", "--check", "--diff"),
    )

    shown = played.only("sql_benchmark" if shaped else "cell_claim")
    _, *programs = shown["diff"]["prepared"].splitlines()
    assert programs == ["On each boot: rm -f old", "On each boot: bench {size}"]
    assert [line for line in programs if line not in played.text] == []


def printing(*secrets: str) -> str:
    """A program that prints a figure and these, none of which is in its text."""
    return "echo tps = 5; " + "; ".join(f"echo '{one[:3]}''{one[3:]}'" for one in secrets)


def with_passwords(folder: Path, running: LabHandle) -> Path:
    """An inventory whose machines have a key's passphrase, NAME-phr4se, and become root by NAME-s3cret."""
    inventory = write_machines(folder, running)
    hosts = json.loads(inventory.read_text("utf-8"))
    for name, variables in hosts["all"]["hosts"].items():
        variables["ansible_ssh_private_key_passphrase"] = f"{name}-phr4se"
        variables["ansible_become_password"] = f"{name}-s3cret"
    inventory.write_text(json.dumps(hosts), "utf-8")
    return inventory


@pytest.mark.long
@pytest.mark.parametrize("client", [None, "driver"])
def test_a_program_is_kept_without_the_passwords_of_its_machines(
    tmp_path: Path, lab: LabFactory, client: str | None
) -> None:
    """Those of Ansible's own connection, in the guest and on a client, which measures the guest."""
    running = lab({"name": "two", "vms": [], "machines": [{"name": "guest"}, {"name": "driver"}]})
    program = {"run": printing(f"{client or 'guest'}-s3cret"), "client": client}

    ran = vnuma("run", study(tmp_path, program, vm="guest"), "-i", with_passwords(tmp_path, running))

    assert ran.code == 0, ran.text
    assert [(one.value, kept(one)) for one in samples()] == [(5.0, "tps = 5\n***\n")]


@pytest.mark.parametrize("client", [None, pytest.param("driver", marks=pytest.mark.long)])
def test_a_play_by_hand_shows_and_keeps_no_password_that_a_program_prints(
    tmp_path: Path, lab: LabFactory, client: str | None
) -> None:
    """Those of Ansible's connections, one asked for, and of vCenter, also where Ansible shows its work."""
    machines = [{"name": "linux16", "vm": "linux16"}, {"name": "driver"}]
    running = lab({**SHAPED, "machines": machines})
    inventory = with_passwords(tmp_path, running)
    asked = tmp_path / "asked"
    asked.write_text("l0gin-asked", "utf-8")
    own = [f"{client or 'linux16'}-{word}" for word in ("phr4se", "s3cret")]
    secrets = [*own, asked.read_text("utf-8"), running.vcenter.password]
    bench = study(
        tmp_path,
        {"run": printing(*secrets), "client": client},
        vm="linux16",
        vcpus=16,
        reference="2x8",
        arms=["2x8"],
    )
    run = vnuma("run", bench, "-i", inventory, "--create-only").out.strip()
    given = ("-e", f"vnuma_run={run}", "-e", "vnuma_hosts=linux16", "-vvv", "--conn-pass-file", str(asked))

    played = play(tmp_path, inventory, "vnuma.vnuma.cell", *given)

    assert [(one.value, kept(one)) for one in samples()] == [(5.0, "tps = 5\n" + "***\n" * 4)], played.text
    record = (tmp_path / "record.jsonl").read_text("utf-8")
    assert [one for one in secrets if one in played.text or one in record] == []


@pytest.mark.long
@pytest.mark.parametrize("left", [[], ["--vm-only"]])
def test_a_client_loads_a_guest_that_its_sql_server_shows(
    tmp_path: Path, lab: LabFactory, left: list[str]
) -> None:
    """As HammerDB does a Windows guest: no database is made. A client that fails at restore can be left."""
    running = lab(
        {
            "name": "loaded",
            "vms": [{"name": "sql16", "vcpus": 16}],
            "machines": [{"name": "driver"}, {"name": "other"}],
        }
    )
    inventory = write_inventory(tmp_path, running)
    hosts = json.loads(inventory.read_text("utf-8"))
    hosts["all"]["hosts"] = json.loads(write_machines(tmp_path, running).read_text("utf-8"))["all"]["hosts"]
    inventory.write_text(json.dumps(hosts), "utf-8")
    bench = study(
        tmp_path,
        {
            "client": "driver",
            "guest": "sql_server",
            "study_setup": ["echo made >/var/tmp/bench"],
            "run": "cat /var/tmp/bench; echo tps = 5",
            "study_teardown": ["cat /var/tmp/repaired && rm /var/tmp/bench"],
        },
        vm="sql16",
        vcpus=16,
        reference="2x8",
        arms=["2x8"],
        all_arms={"affinity": "physical_cores", "memory_reservation": "locked"},
        quiet={"for_s": 0},
        power={"tools_timeout_s": 60, "sql_timeout_s": 60, "shutdown_timeout_s": 60},
    )
    before = settings_now(running, "sql16")

    ran = vnuma("run", bench, "-i", inventory)

    assert ran.code == 7, ran.text
    store = open_store(store_url())
    loaded = load_run(store, "latest")
    (vm,) = loaded.vms
    assert {one.arm: nodes_of(one) for one in loaded.attempts_of(vm, Outcome.VALID)} == {"2x8": 2}
    assert [(one.value, kept(one)) for one in samples()] == [(5.0, "made\ntps = 5\n")]
    with store.read() as connection:
        written = list(lines(connection, loaded.run.id))
    assert DATABASE not in {edit["setting"] for line in written for edit in line.change}
    assert {line.detail for line in written if line.action == "program"} == {
        "study_setup on driver: echo made >/var/tmp/bench",
        "study_setup on driver ended with exit code 0",
        "study_teardown on driver: cat /var/tmp/repaired && rm /var/tmp/bench",
        "study_teardown on driver ended with exit code 1",
    }
    assert settings_now(running, "sql16") == before

    # The VM is in use again, and an address has moved to another machine.
    reserved = vim.ResourceAllocationInfo(reservation=1024)
    change_by_hand(running, "sql16", memoryAllocation=reserved)
    for machine in ("driver", "other"):
        ask_machine(running, "echo >/var/tmp/repaired; echo >/var/tmp/bench", machine)
    machines = hosts["all"]["hosts"]
    swapped = {"driver": machines["other"], "other": machines["driver"]}
    inventory.write_text(json.dumps({"all": {**hosts["all"], "hosts": swapped}}), "utf-8")
    moved = vnuma("restore", "sql16")
    assert moved.code == 7
    assert ask_machine(running, "ls /var/tmp/bench", "other") == "/var/tmp/bench\n"

    inventory.write_text(json.dumps(hosts), "utf-8")
    if left:
        assert vnuma("restore", "--vm-only").code == 2
    assert vnuma("restore", "sql16", *left).code == 0
    assert vnuma("restore", "--dry-run").out == "Every VM is at its baseline.\n"
    files = ask_machine(running, "ls /var/tmp", "driver").split()
    assert ("bench" in files) is bool(left)
    now = settings_now(running, "sql16")
    assert {name for name, value in now.items() if value != before[name]} == {"reservation"}
    assert vnuma("report", "latest", "--output", tmp_path / "page.html").code == 0
