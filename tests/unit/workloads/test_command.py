"""A figure is read from what a program printed, or there is a reason; never a number that was not there."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.unit.workloads.linux import MACHINE
from tests.unit.workloads.printed import PRINTED, documented
from vnuma.domain.workloads.settings import WorkloadContext
from vnuma.errors import MeasurementFailed, StoreError
from vnuma.workloads.command.settings import OUTPUT_KB, Command, Figure, Unreadable
from vnuma.workloads.command.workload import (
    MEASURED,
    WORKLOAD,
    BootedMeanwhile,
    Ran,
    figure_of,
    posix_script,
    ran,
)
from vnuma.workloads.command.wrappers import programs_of
from vnuma.workloads.shell import Output

Way = dict[str, Any]

TPS: Way = {"name": "transactions", "unit": "1/s", "better": "higher"}
BY_REGEX: Way = {"regex": r"tps = (\S+)"}
BY_UNIT: Way = {"regex": r"Triad: (\S+) (?P<unit>\S+)"}
BY_JSON: Way = {"json_path": "jobs.0.iops"}
BY_CSV: Way = {"csv_column": "tps"}


@pytest.mark.parametrize(
    ("way", "output", "figure"),
    [
        (BY_REGEX, "tps = 412.5\n", 412.5),
        (BY_REGEX, "tps = 1,234,567.25\n", 1234567.25),
        (BY_REGEX, "tps = 1e3\n", 1000.0),
        (BY_REGEX, "tps = 0\n", 0.0),
        (BY_UNIT, "Triad: 12 1/s\n", 12.0),
        ({"regex": r"^(?:tps=(\d+)|latency=\d+)$"}, "latency=3\ntps=4\n", 4.0),
        (BY_JSON, '{"jobs": [{"iops": 12.5}]}', 12.5),
        (BY_JSON, '{"jobs": [{"iops": "12.5"}]}', 12.5),
        (BY_CSV, "threads,tps\n8,99\n", 99.0),
        (BY_CSV, '"threads" , "tps"\r\n"8","1,099"\r\n'.replace(" , ", ","), 1099.0),
    ],
)
def test_the_one_figure_is_read(way: Way, output: str, figure: float) -> None:
    """By a regular expression, a JSON path or a CSV column."""
    assert Figure(**TPS, **way).read(output) == figure


@pytest.mark.parametrize(
    ("way", "output", "why"),
    [
        (BY_REGEX, "", "no figure"),
        (BY_REGEX, "tps: 5\n", "no figure"),
        (BY_REGEX, "tps = 5\ntps = 5\n", "2 figures"),
        (BY_REGEX, "tps = fast\n", "'fast' is not a number"),
        (BY_REGEX, "tps = nan\n", "not a number"),
        (BY_REGEX, "tps = 1,23\n", "not a number"),
        (BY_REGEX, "tps = 12.5.1\n", "not a number"),
        (BY_REGEX, "tps = 0,512\n", "not a number"),
        ({"regex": r"^tps = (\d+)"}, "tps = 12,345\n", "within a number"),
        ({"regex": r"^tps = (\d+)"}, "tps = 1.5e5\n", "within a number"),
        (BY_REGEX, "tps = 1e999\n", "not a finite number"),
        (BY_REGEX, "tps = -\n", "not a number"),
        (BY_UNIT, "Triad: 12 1/min\n", "its unit is '1/min', not '1/s'"),
        (BY_UNIT, "Triad: 12 1/s\nTriad: 1 1/min\n", "its unit is '1/min'"),
        (BY_JSON, "", "not valid JSON"),
        (BY_JSON, '{"jobs": [{"iops": 1}, ', "not valid JSON"),
        (BY_JSON, '{"jobs": []}', "has no jobs.0.iops"),
        (BY_JSON, '{"jobs": [{"iops": null}]}', "not a number"),
        (BY_JSON, '{"jobs": [{"iops": true}]}', "not a number"),
        (BY_JSON, '{"jobs": [{"iops": NaN}]}', "not a number"),
        (BY_JSON, '{"jobs": [{"iops": 1, "iops": 2}]}', "a key twice"),
        (BY_JSON, "[" * 100_000, "not valid JSON"),
        (BY_CSV, "", "0 columns"),
        (BY_CSV, "tps\n", "no figure"),
        (BY_CSV, "tps\n1\n2\n", "2 figures"),
        (BY_CSV, "tps,tps\n1,2\n", "2 columns"),
        (BY_CSV, "threads,tps\n1\n", "1 of 2 values"),
        (BY_CSV, 'tps\n"1\n', "not valid CSV"),
    ],
)
def test_an_output_without_one_figure_has_a_reason(way: Way, output: str, why: str) -> None:
    """No figure, two, another unit, a text, a broken document: never a number."""
    with pytest.raises(Unreadable, match=why):
        Figure(**TPS, **way).read(output)


def test_every_documented_figure_is_tested() -> None:
    """With a published output."""
    assert set(documented()) == set(PRINTED)


@pytest.mark.parametrize("tool", sorted(PRINTED))
def test_the_output_of_a_known_benchmark_is_read(tool: str) -> None:
    """With its documented figure."""
    output, figure = PRINTED[tool]

    assert Figure(**documented()[tool]).read(output) == figure


@given(st.floats(allow_nan=False, allow_infinity=False), st.text(st.characters(exclude_categories=["Cs"])))
def test_a_printed_number_is_read_as_it_was_or_refused(value: float, around: str) -> None:
    """Whatever stands around it: another number never comes out."""
    for way, output in (
        (BY_REGEX, f"{around}\ntps = {value!r}\n{around}"),
        (BY_JSON, json.dumps({"around": around, "jobs": [{"iops": value}]})),
        (BY_CSV, f"around,tps\n{json.dumps(around)},{value!r}\n"),
    ):
        try:
            read = Figure(**TPS, **way).read(output)
        except Unreadable:
            continue
        assert read == value


@given(st.sampled_from([BY_REGEX, BY_UNIT, BY_JSON, BY_CSV]), st.text())
def test_any_text_is_read_or_refused(way: Way, output: str) -> None:
    """Nothing else comes out of it."""
    with suppress(Unreadable):
        assert isinstance(Figure(**TPS, **way).read(output), float)


@pytest.mark.parametrize(
    "way",
    [{}, BY_REGEX | BY_JSON, {"regex": "("}, {"regex": "tps"}, {"regex": "(a)(b)"}, {"regex": "(?P<unit>a)"}],
)
def test_a_figure_is_read_in_one_way(way: Way) -> None:
    """One of the three, and a regular expression with one group besides the unit's."""
    with pytest.raises(ValidationError):
        Figure(**TPS, **way)


COMMAND = Command(name="command", run=("bench",), figure=Figure(**TPS, **BY_REGEX), timeout_s=10)


@pytest.mark.parametrize(
    ("parts", "blocking", "later"),
    [
        ({}, ["bench"], []),
        ({"run": "bench --all"}, [], []),
        ({"run": ["{tool}"], "variables": {"tool": "bench"}}, [], []),
        (
            {"setup": [["mount", "/data"]], "teardown": [["umount", "/data"]]},
            ["mount"],
            ["bench", "umount"],
        ),
        ({"study_teardown": [["dropdb", "x"]], "files": ["/data"]}, ["/data", "bench", "dropdb"], []),
        ({"study_setup": ["apt-get install -y bench"], "files": ["/data"]}, ["/data"], ["bench"]),
        ({"study_setup": [["apt-get", "install"], ["load"]]}, ["apt-get"], ["bench", "load"]),
        ({"run": ["taskset", "{cpus}", "bench"], "variables": {"cpus": "1"}}, ["bench", "taskset"], []),
        ({"run": ["nice", "{tool}"], "variables": {"tool": "bench"}}, ["nice"], []),
    ],
)
def test_every_program_named_by_a_list_is_looked_for(
    parts: dict[str, Any], blocking: list[str], later: list[str]
) -> None:
    """A missing one blocks the study; one that a setup may bring first is a warning."""
    settings = Command.model_validate(COMMAND.model_dump() | parts)
    guest = replace(MACHINE, missing=settings.looks_at())

    found = list(WORKLOAD.guest_obstacles(settings, guest))

    assert sorted(one.what.split()[3].rstrip(".,") for one in found if one.blocks) == blocking
    assert sorted(one.what.split()[3].rstrip(".,") for one in found if not one.blocks) == later


@pytest.mark.parametrize(
    ("line", "behind"),
    [
        ("bench --user nice ls", []),
        ("runuser -u postgres -- pgbench --client=8 db", ["pgbench"]),
        ("runuser --user=postgres pgbench", ["pgbench"]),
        ("runuser - postgres -c pgbench", []),
        ("runuser -l -u postgres pgbench", []),
        ("sudo -n -u postgres PGPORT=1 pgbench", ["pgbench"]),
        ("sudo -i pgbench", []),
        ("/usr/bin/numactl --membind=0 -N 0 stream", ["stream"]),
        ("numactl --membind 0 --cpunodebind 0 /opt/stream -x", ["/opt/stream"]),
        ("numactl --hardware", []),
        ("taskset -c 0-3 stream", ["stream"]),
        ("taskset -p 1", []),
        ("nice -n 5 stream", ["stream"]),
        ("env A=1 B=2 stream C=3", ["stream"]),
        ("env -u A stream", ["stream"]),
        ("env - stream", []),
        ("env PATH=/opt/bin stream", []),
        ("env -i stream", []),
        ("env", []),
        ("timeout -k 5 60s nice numactl -l stream", ["nice", "numactl", "stream"]),
        ("timeout 60", []),
        ("timeout {how} 60 ls", []),
        ("taskset {how} 0-1 ls", []),
        ("nice -n 5 -- -x", []),
    ],
)
def test_a_program_is_found_behind_those_that_start_it(line: str, behind: list[str]) -> None:
    """As far as that is certain: a name that is none would block the study."""
    first, *others = line.split()

    assert [*programs_of([first, *others])] == [first, *behind]


DONE = Ran(0, "tps = 5\n", "", 3.0, ("one", "one"))


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (Ran(1, "tps = 5\n", "out of memory\n", 3.0, ("one", "one")), "exit code 1: out of memory"),
        (Ran(1, "", "", 3.0, ("one", "one")), "exit code 1: no message"),
        (Ran(124, "tps = 5\n", "", 10.1, ("one", "one")), "longer than 10 s"),
        (Ran(137, "tps = 5\n", "", 15.1, ("one", "one")), "longer than 10 s"),
        (Ran(137, "tps = 5\n", "", 3.0, ("one", "one")), "exit code 137"),
        (Ran(0, "tps = 5\n", "", 3.0, ("one", "two")), "booted meanwhile"),
        (Ran(0, "tps = 5\n", "", 3.0, ("two", "two")), "booted meanwhile"),
        (Ran(0, "tps = 5\n" + "x" * OUTPUT_KB * 1024, "", 3.0, ("one", "one")), f"more than {OUTPUT_KB} KiB"),
    ],
)
def test_a_program_that_did_not_end_well_has_no_figure(done: Ran, why: str) -> None:
    """Even if it printed one."""
    assert figure_of(COMMAND, DONE, "one") == 5.0
    with pytest.raises(Unreadable, match=why) as found:
        figure_of(COMMAND, done, "one")
    assert isinstance(found.value, BootedMeanwhile) == ("booted" in why)


@pytest.mark.parametrize(
    ("output", "why"),
    [("5 per second\n", "no figure"), ("tps = 0\n", "above 0"), ("tps = -1.5\n", "above 0")],
)
def test_what_a_program_printed_may_have_no_figure_to_compare(output: str, why: str) -> None:
    """None, or one that has no ratio to another."""
    with pytest.raises(Unreadable, match=why):
        figure_of(COMMAND, replace(DONE, stdout=output), "one")


def test_a_study_says_which_exit_codes_count() -> None:
    """Some programs end with another than 0 and have measured."""
    done = Ran(3, "tps = 5\n", "", 3.0, ("one", "one"))

    assert figure_of(COMMAND.model_copy(update={"exit_codes": (0, 3)}), done, "one") == 5.0


def run_here(program: Any, limit_s: float = 20, name: str | None = None, part: str = MEASURED) -> Ran:
    """A program by its script, on this machine; others run under other names meanwhile."""
    script = posix_script(program, limit_s, "token", name or uuid4().hex, part)
    said = subprocess.run(
        ["/bin/sh", "-c", script],
        input="yes\n",
        capture_output=True,
        text=True,
        check=True,
        errors="replace",
        timeout=120,
    )
    done = ran(said.stdout, "token")
    assert done is not None, said
    return done


@pytest.mark.parametrize(
    ("program", "status", "stdout", "stderr"),
    [
        (("printf", "%s|", "a b", "$HOME", "'", '"', "*"), 0, "a b|$HOME|'|\"|*|", ""),
        ("echo $((1 + 1)); echo no >&2; exit 3", 3, "2\n", "no\n"),
        (("cat",), 0, "", ""),
        ("printf 'no end'", 0, "no end", ""),
        ("echo '@@token end 0 a 1 2'", 0, "@@token end 0 a 1 2\n", ""),
        (("no-such-program",), 127, "", "No such file"),
    ],
)
def test_a_program_runs_with_its_arguments_and_no_input(
    program: Any, status: int, stdout: str, stderr: str
) -> None:
    """No shell sees the arguments of a list; the standard input is empty."""
    done = run_here(program)

    assert (done.status, done.stdout) == (status, stdout)
    assert stderr in done.stderr
    assert done.boots == (Path("/proc/sys/kernel/random/boot_id").read_text().strip(),) * 2


def test_a_flood_is_cut() -> None:
    """Its end is not waited for in memory, and the program is not stopped by it."""
    done = run_here(
        "head -c 3000000 /dev/zero | tr '\\0' x; head -c 100000 /dev/zero | tr '\\0' y >&2; exit 4"
    )

    assert (done.status, len(done.stdout), len(done.stderr)) == (4, OUTPUT_KB * 1024 + 1, 2000)


def test_a_program_whose_time_is_over_is_ended_with_its_children(tmp_path: Path) -> None:
    """Also a child in a session of its own, and one that ignores the polite signal."""
    pids = tmp_path / "pids"
    child = f"echo $$ >>{pids}; exec sleep 1000"
    script = f'echo begun; trap "" TERM; setsid sh -c "{child}" & sh -c "{child}" & sleep 1000; sleep 1000'
    began = time.monotonic()

    done = run_here(script.replace("$$", "\\$\\$"), limit_s=1)

    assert done.status in (124, 137)
    assert time.monotonic() - began < 60
    left = [pid for pid in pids.read_text().split() if Path(f"/proc/{pid}/cmdline").exists()]
    assert [pid for pid in left if os.path.exists(f"/proc/{pid}/exe")] == []
    with pytest.raises(Unreadable):
        figure_of(COMMAND.model_copy(update={"timeout_s": 1}), done, done.boots[0])


ORPHAN = "env -i setsid sh -c 'sleep 60 >/dev/null 2>&1 & echo $! >PIDS; wait'"
"""A program that neither its environment nor its session shows to be ours."""


def is_at_work(pids: Path) -> bool:
    """Whether the process of that file is; a zombie is not."""
    with suppress(OSError):
        return Path(f"/proc/{int(pids.read_text())}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "{} & sleep 60",
        "(trap '' TERM; {}; sleep 60)",
        "after() {{ {}; }}; trap after TERM; sleep 60 & wait",
    ],
)
def test_a_program_that_resets_its_environment_is_ended_at_the_limit(tmp_path: Path, around: str) -> None:
    """As su and sudo do."""
    pids = tmp_path / "pids"

    done = run_here(around.format(ORPHAN.replace("PIDS", str(pids))), limit_s=1)

    assert done.status == 124
    assert pids.read_text()
    assert not is_at_work(pids)


def test_nothing_runs_where_processes_could_not_be_found(tmp_path: Path) -> None:
    """Without awk a program that was left would be measured too."""
    for name in ("cat", "env", "grep", "head", "mktemp", "rm", "sed", "sh", "sleep", "tail", "timeout", "tr"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    script = posix_script(("touch", str(tmp_path / "ran")), 5, "token", uuid4().hex)

    done = subprocess.run(["/bin/sh", "-c", script], env={"PATH": str(tmp_path)}, check=False)

    assert done.returncode == 6
    assert not (tmp_path / "ran").exists()


def test_a_program_of_a_killed_play_that_resets_its_environment_is_ended(tmp_path: Path) -> None:
    """It is found by its parents."""
    name, pids = uuid4().hex, tmp_path / "pids"
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    orphan = ORPHAN.replace("wait'", "echo >BEGUN; wait'").replace("BEGUN", str(begun))
    slow = posix_script(orphan.replace("PIDS", str(pids)), 60, "token", name, "slow")
    with subprocess.Popen(["/bin/sh", "-c", slow], stdout=subprocess.DEVNULL) as at_work:
        begun.read_text()
        run_here(("true",), name=name, part="next")
        at_work.wait(20)

    assert not is_at_work(pids)


def test_a_preparation_still_at_work_is_ended_and_a_server_of_a_finished_one_is_not(tmp_path: Path) -> None:
    """Of the same VM: the preparation of a killed play would go on after the restore."""
    name, late = uuid4().hex, tmp_path / "late"
    run_here(f"sleep 600 >/dev/null 2>&1 & echo $! >{tmp_path}/server", name=name, part="setup")
    os.mkfifo(tmp_path / "begun")
    slow = posix_script(f"echo >{tmp_path}/begun; sleep 30; touch {late}", 60, "token", name, "slow")
    with subprocess.Popen(["/bin/sh", "-c", slow], stdout=subprocess.PIPE, text=True) as at_work:
        (tmp_path / "begun").read_text()
        run_here(("true",), name=name, part="next")
        output, _ = at_work.communicate(timeout=20)

    assert "@@token end 137" in output
    assert not late.exists()
    os.kill(int((tmp_path / "server").read_text()), 9)


def test_a_measured_program_that_leaves_a_process_has_no_figure() -> None:
    """It would be measured with the next one; it is not waited for, though it holds the output."""
    began = time.monotonic()
    done = run_here("sleep 30 & echo tps = 5")

    assert time.monotonic() - began < 25
    assert (done.status, done.left) == (0, True)
    with pytest.raises(Unreadable):
        figure_of(COMMAND, done, done.boots[0])


def test_a_figure_is_read_from_the_unmasked_output_and_never_from_a_secret() -> None:
    """Masking makes an output shorter or longer: its bound counts what was printed."""

    def masked(text: str) -> str:
        return text.replace("x" * 20, "***").replace("77", "***")

    flood = replace(DONE, stdout="x" * 20 * 1000 + "\ntps = 5\n")
    secret = replace(DONE, stdout="tps = 1277\n")
    failed = replace(DONE, status=1, stdout="", stderr=f"password {'x' * 20}\n")

    for done, why in ((flood, "more than"), (secret, "not a number"), (failed, r"password \*\*\*$")):
        with pytest.raises(Unreadable, match=why):
            figure_of(COMMAND, done, "one", masked)


@dataclass
class Place:
    """A VM whose shell is this machine's."""

    vm_key: str = field(default_factory=lambda: uuid4().hex)
    boot: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def shell(self) -> Place:
        """Itself."""
        return self

    def __call__(self, script: str, within_s: float = 60) -> Output:
        """Run it."""
        done = subprocess.run(
            ["/bin/sh", "-c", script], capture_output=True, text=True, check=False, timeout=within_s
        )
        return Output(done.returncode, done.stdout, done.stderr)

    def masked(self, text: str) -> str:
        """Without the secret."""
        return text.replace("s3cret", "***")

    def note(self, words: str) -> None:
        """Keep it."""
        self.notes.append(words)


def test_every_undo_is_tried_and_its_failure_shows_no_secret(tmp_path: Path) -> None:
    """A teardown that fails does not keep the next one from its work."""
    undo = ("echo s3cret >&2; exit 1", f"touch {tmp_path}/done", "echo again; exit 2")
    place = Place()
    with pytest.raises(MeasurementFailed) as caught:
        WORKLOAD.remove(place, COMMAND.model_copy(update={"study_teardown": undo}))

    assert (tmp_path / "done").exists()
    assert place.notes == [
        note
        for one, code in zip(undo, (1, 0, 2), strict=True)
        for note in (
            f"study_teardown: {one.replace('s3cret', '***')}",
            f"study_teardown ended with exit code {code}",
        )
    ]
    assert "s3cret" not in str(caught.value)
    assert "again" in str(caught.value)


@dataclass
class Away(Place):
    """One boot while the store is full."""

    settings: Command = COMMAND

    def say(self, words: str) -> None:
        """Cannot be stored."""
        raise StoreError(f"The store is full: {words}.")


def test_a_boot_is_torn_down_while_the_store_is_away(tmp_path: Path) -> None:
    """Its step cannot be shown, and the program runs."""
    system: Any = Away(settings=COMMAND.model_copy(update={"teardown": (("touch", f"{tmp_path}/down"),)}))

    with WORKLOAD.bench(system):
        pass

    assert (tmp_path / "down").exists()


def test_a_program_without_a_figure_shows_its_last_words() -> None:
    """It may have said why, and ended with 0."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    study = COMMAND.model_copy(update={"run": "echo begun; echo no s3cret table >&2", "client": "driver"})
    system: Any = Away(settings=study, boot=boot)

    with pytest.raises(MeasurementFailed) as told, WORKLOAD.bench(system) as bench:
        bench(1, "run")

    assert "no *** table" in told.value.what


@pytest.mark.parametrize(("proven", "now", "counts"), [("a", "a", True), ("a", "b", False)])
def test_a_guest_restarted_since_its_proof_has_no_figures(proven: str, now: str, counts: bool) -> None:
    """A client sees no reboot of the guest that it loads."""

    @dataclass
    class Restarted(Away):
        vm: str = "sql16"
        proven_guest_boot: str = proven

        def guest_boot(self) -> str:
            return now

    system: Any = Restarted(settings=COMMAND.model_copy(update={"client": "driver"}))

    with nullcontext() if counts else pytest.raises(MeasurementFailed), WORKLOAD.bench(system):
        pass


def test_nothing_runs_on_another_boot_than_the_proven_one(tmp_path: Path) -> None:
    """The address may be another machine's by now."""
    study = COMMAND.model_copy(update={"study_teardown": (("touch", f"{tmp_path}/there"),)})

    with pytest.raises(MeasurementFailed):
        WORKLOAD.remove(Place(boot="another"), study)

    assert not (tmp_path / "there").exists()
    WORKLOAD.remove(Place(boot=Path("/proc/sys/kernel/random/boot_id").read_text().strip()), study)
    assert (tmp_path / "there").exists()


def test_what_is_at_work_is_ended_also_without_a_teardown() -> None:
    """A measured program on a client outlives the boot."""
    place = Place()
    name = sha256(place.vm_key.encode()).hexdigest()[:16]
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "VNUMA_PROGRAM": f"{name}.run"}) as left:
        WORKLOAD.remove(place, COMMAND)

        assert left.wait(10) == -9


@pytest.mark.parametrize(
    ("arms", "changes", "parts"),
    [
        ([{"db": "one"}], {"variables": {"db": "one"}, "study_teardown": [["rm", "d-{db}"]]}, set()),
        ([{"db": "one"}], {"study_teardown": [["rm", "d-{db}"]]}, {"study_teardown"}),
        ([{"db": "one"}], {"study_teardown": ["rm d-{db}"]}, {"study_teardown"}),
        (
            [{"db": "one"}, {"db": "two"}],
            {"variables": {"db": "one"}, "study_setup": ["mkdir d-{db}"]},
            {"study_setup"},
        ),
        ([{}], {"teardown": [["rm", "d-{bd}"]]}, {"teardown"}),
        ([{}], {"setup": ["load {size}"]}, {"setup"}),
        ([{}], {"run": ["bench", "{size}", "{form}"]}, set()),
        ([{}], {"guest": "sql_server"}, {"guest"}),
        ([{}], {"guest": "sql_server", "client": "driver"}, set()),
        ([{}], {"setup": ["awk '{print}' f; echo ${size}"]}, set()),
    ],
)
def test_a_contradiction_is_a_problem_of_that_field(
    arms: list[dict[str, Any]], changes: dict[str, Any], parts: set[str]
) -> None:
    """A variable without one value, in every program; a guest without a shell that should run them."""
    study = Command.model_validate({**COMMAND.model_dump(), **changes})
    own = {str(at): study.model_copy(update={"variables": each}) for at, each in enumerate(arms)}
    labels: Any = tuple(SimpleNamespace(label=label) for label in own)

    found = study.problems(WorkloadContext(None, labels, own.__getitem__))

    assert {problem.path[1] for problem in found} == parts


def test_a_plan_shows_every_program_that_will_run() -> None:
    """Before the first boot, on each boot, and at the restore."""
    parts = ("study_setup", "setup", "teardown", "study_teardown")
    own = COMMAND.model_copy(update={part: ((part,), f"echo {part}") for part in parts})

    _, *steps = own.steps()

    assert steps == [
        *("Before the first boot: study_setup", "Before the first boot: echo study_setup"),
        *("On each boot: setup", "On each boot: echo setup", "On each boot: bench"),
        *("On each boot: teardown", "On each boot: echo teardown"),
        *("At restore: study_teardown", "At restore: echo study_teardown"),
    ]


@pytest.mark.parametrize(("lines", "kept"), [(1, 1), (20, 20), (21, 21), (30, 21)])
def test_a_plan_shows_a_script_whole_up_to_a_limit(lines: int, kept: int) -> None:
    """Its first line beside when it runs, the others indented below; the last says how many are left out."""
    script = "\n".join(f"echo {number}" for number in range(lines))

    _, step = COMMAND.model_copy(update={"run": script}).steps()
    first, *more = step.splitlines()

    assert (first, len(more)) == ("On each boot: echo 0", kept - 1)
    assert more[:19] == [f"  echo {number}" for number in range(1, min(lines, 20))]
    assert [line for line in more[19:] if str(lines - 20) not in line] == []


def test_variables_are_replaced_and_other_braces_stay() -> None:
    """In arguments and in scripts."""
    own = COMMAND.model_copy(update={"variables": {"db": "x y"}})

    assert own.filled(("-c{size}", "{form}", "{db}", "${HOME}", "{other}"), 8, "run") == (
        *("-c8", "run", "x y", "${HOME}", "{other}"),
    )
    assert own.filled("a {size} {db}", 8, "run") == "a 8 x y"


def test_what_is_kept_fits_a_field_of_the_raw_data() -> None:
    """Even if every character is escaped: an archive is read with the limit of Python's csv."""
    kept = {"stdout": "\x01" * OUTPUT_KB * 1024, "stderr": "\x01" * 2000, "program": "x" * 1000}

    assert len(json.dumps(kept)) < csv.field_size_limit()
