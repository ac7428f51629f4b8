"""Ansible as a design: what tasks and variables say of VMs, without running anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.estate.build import checked
from tests.support.cli import vnuma_here
from vnuma.checks.facts import EXTRA_CONFIG, HARDWARE
from vnuma.domain.topology.vm_location import VmLocation, parse_host
from vnuma.domain.vm.estate import Estate, EstateVm, NotShown
from vnuma.engine.design_check.designed_vms import on_hosts
from vnuma.errors import InputError
from vnuma.estate.design import read_design

PLAY = """
- hosts: localhost
  vars_files: [sizes.yml]
  vars: {memory_gb: 64, twice: "{{ memory_gb * 2 }}"}
  tasks:
    - name: Two alike
      community.vmware.vmware_guest:
        name: "{{ item.name }}"
        guest_id: windows2019srv_64Guest
        hardware:
          num_cpus: "{{ item.cpus | int }}"
          num_cpu_cores_per_socket: "{{ cores | default(4) }}"
          memory_mb: "{{ twice * 1024 }}"
          memory_reservation: 1024
          hotadd_cpu: "{{ hot }}"
          version: 19
        advanced_settings:
          - {key: numa.vcpu.preferHT, value: true}
      loop: "{{ vms }}"
    - block:
        - vmware.vmware.vm:
            name: sql-c
            guest_id: windows2019srv_64Guest
            cpu: {cores: 24, cores_per_socket: 12, enable_hot_add: true}
            memory: {size_mb: 65536, reserve_all_memory: true}
        - vmware.vmware.vm_advanced_settings:
            name: sql-c
            settings: {numa.autosize.once: FALSE, foo.bar: 1}
    - community.vmware.vmware_guest: {name: gone, state: absent}
"""
SIZES = "vms: [{name: sql-a, cpus: 16}, {name: sql-b, cpus: '8'}]\nhot: 'yes'\n"


def _read(folder: Path, text: str, name: str = "play.yml", **files: str) -> Estate:
    for other, content in files.items():
        path = folder / other.replace("__", "/")
        path = path.with_suffix(".yml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    return read_design(folder / name)


def _vms(estate: Estate) -> dict[str, EstateVm]:
    return {vm.facts.name: vm for vm in estate.vms}


def _tasks(*tasks: str) -> str:
    """A play of these tasks."""
    return "- hosts: all\n  tasks:\n" + "".join(f"    - {task}\n" for task in tasks)


def test_tasks_loops_and_variables_make_vms(tmp_path: Path) -> None:
    """Variables, arithmetic, filters and a second task on the same VM; a removed VM does not count."""
    vms = _vms(_read(tmp_path, PLAY, sizes=SIZES))
    one, three = vms["sql-a"].facts, vms["sql-c"].facts
    at = vms["sql-c"].declared
    assert set(vms) == {"sql-a", "sql-b", "sql-c"}
    assert (
        one.settings.items()
        >= {
            **{"numCPUs": 16, "numCoresPerSocket": 4, "memoryMB": 131072, "memoryReservation": 1024},
            **{"cpuHotAddEnabled": True, "numa.vcpu.preferHT": "TRUE"},
        }.items()
    )
    assert (
        three.settings.items()
        >= {**{"numCPUs": 24, "memoryReservationLockedToMax": True, "numa.autosize.once": "FALSE"}}.items()
    )
    assert three.settings.keys().isdisjoint({"foo.bar"})
    assert (one.hardware_version, HARDWARE in vms["sql-c"].absent) == (19, True)
    assert at is not None
    assert PLAY.splitlines()[at.line - 1].strip() == "- vmware.vmware.vm:"


@pytest.mark.parametrize(
    "value",
    [
        "{{ lookup('pipe', 'touch ' ~ stamp) }}",
        "{{ unknown }}",
        "{{ '7'.__class__.__mro__ }}",
        "{% for i in range(9) %}1{% endfor %}",
        "{{ me }}",
        "{{ 1 / 0 }}",
        "{{ 10 ** 10 }}",
        "{{",
    ],
)
def test_what_only_a_run_knows_is_not_evaluated(tmp_path: Path, value: str) -> None:
    """Nothing is executed; the rest of the VM is checked."""
    stamp = tmp_path / "stamp"
    text = (
        f"- hosts: localhost\n  vars: {{stamp: '{stamp}', me: '{{{{ me }}}}'}}\n  tasks:\n"
        "    - vmware.vmware.vm:\n        name: sql\n        memory: {size_mb: 4096}\n"
        f'        cpu:\n          cores_per_socket: 2\n          cores: "{value}"\n'
    )
    (vm,) = _read(tmp_path, text).vms
    assert vm.facts.settings.keys().isdisjoint({"numCPUs"})
    assert vm.absent["numCPUs"]
    assert vm.facts.settings["memoryMB"] == 4096
    assert not stamp.exists()


def test_what_a_template_brings_is_not_guessed(tmp_path: Path) -> None:
    """A clone has what its template has, an existing VM what it has; a new VM vSphere's defaults."""
    task = "vmware_guest: {name: a, hardware: {num_cpus: 4}%s}"
    (new,) = _read(tmp_path, _tasks(task % ", guest_id: windows2019srv_64Guest")).vms
    (copied,) = _read(tmp_path, _tasks(task % ", template: win2022")).vms
    assert new.facts.settings.items() >= {"cpuHotAddEnabled": False, "cpuAffinity": ()}.items()
    assert new.absent.keys() >= {"numCoresPerSocket"}
    assert copied.facts.settings.keys().isdisjoint({"cpuHotAddEnabled"})
    assert isinstance(copied.absent[EXTRA_CONFIG], NotShown)


@pytest.mark.parametrize("how", ["", ", uuid: 4213aaaa", ", moid: vm-7, guest_id: windows2019srv_64Guest"])
def test_a_task_that_can_make_no_vm_changes_one_that_exists(tmp_path: Path, how: str) -> None:
    """A new VM needs a guest_id and has no identity yet; M01 and T11 depend on what the VM has."""
    text = _tasks(f"vmware_guest: {{name: a{how}, hardware: {{num_cpus: 24}}}}")
    there = on_hosts(_read(tmp_path, text), VmLocation((parse_host("2x16/256", "7.0"),)), None)
    (vm,) = checked(there).vms
    assert {"M01", "T11"} <= vm.not_evaluated.keys()
    assert {"T11"} <= set(vm.undecided)


def test_a_later_task_leaves_what_an_earlier_one_made(tmp_path: Path) -> None:
    """The VM is new; the second task finds it by its name and adds cores."""
    text = _tasks(
        "vmware_guest: {name: a, guest_id: other, hardware: {num_cpus: 4}}",
        "vmware_guest: {name: a, hardware: {num_cpu_cores_per_socket: 2}}",
    )
    (vm,) = _read(tmp_path, text).vms
    assert (
        vm.facts.settings.items()
        >= {**{"numCPUs": 4, "numCoresPerSocket": 2, "cpuHotAddEnabled": False}}.items()
    )


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("vmware_guest: {name: pay, state: poweredon}", "pay"),  # nor does renaming shape a VM
        ("vmware_guest: {name: '{{ item }}', state: absent}\n      loop: '{{ stale_vms }}'", ""),
        *(
            (f"vmware_guest: {{name: a, hardware: {{num_cpus: {number}}}}}", "a")
            for number in ("many", "-8", f"0x{'f' * 5000}")
        ),
    ],
    ids=["powered on", "removed in a loop", "no number", "negative", "endless"],
)
def test_a_play_without_a_vm_to_check_ends_in_exit_code_3(tmp_path: Path, task: str, named: str) -> None:
    """Nothing passes; what was found is named, and removed VMs are nothing to check."""
    play = tmp_path / "play.yml"
    play.write_text(_tasks(task))
    ran = vnuma_here("check", play)
    assert (ran.code, ran.out) == (3, "")
    assert named in ran.err
    assert ran.err.count("stale_vms") == 0


def test_an_omitted_option_names_the_variable_that_omits_it(tmp_path: Path) -> None:
    """`omit` is Ansible's word for an option that is not given."""
    cores = "num_cpu_cores_per_socket: '{{ cores | default(omit) }}'"
    (vm,) = _read(
        tmp_path, _tasks(f"vmware_guest: {{name: a, guest_id: other, hardware: {{num_cpus: 4, {cores}}}}}")
    ).vms
    assert vm.absent["numCoresPerSocket"].count("variable cores ") == 1


def test_host_vars_are_the_vms_of_a_play_and_of_the_role(tmp_path: Path) -> None:
    """Each host of host_vars is a VM; the role's variables are read from the folder alone, too."""
    play = _tasks("vmware_guest: {name: '{{ inventory_hostname }}', hardware: {num_cpus: '{{ cpus }}'}}")
    arm = "vm_topology_arm: {topology: 2x8, memory_mb: 65536, cpu_hot_add: off}\n"
    beside = {"host_vars__sql1": "cpus: 8\n", "host_vars__sql2": f"cpus: 16\n{arm}"}
    made = _vms(_read(tmp_path, play, **beside))
    (role,) = read_design(tmp_path / "host_vars").vms
    assert {name: vm.facts.settings["numCPUs"] for name, vm in made.items()} == {"sql1": 8, "sql2": 16}
    assert role.facts.settings.items() >= {"numCoresPerSocket": 8, "memoryMB": 65536}.items()
    assert role.absent["cpuAffinity"]
    assert role.declared is not None
    assert (role.facts.name, role.declared.line) == ("sql2", 2)


def test_a_file_outside_the_design_is_not_read(tmp_path: Path) -> None:
    """A pull request names files; only those below the playbook are opened."""
    (tmp_path / "secret.yml").write_text("n: 4711\n", encoding="utf-8")
    folder = tmp_path / "repo"
    folder.mkdir()
    task = "    - vmware_guest: {name: 'v{{ n }}', hardware: {}}\n"
    text = f"- hosts: x\n  vars_files: [../secret.yml]\n  tasks:\n{task}"
    estate = _read(folder, text)
    assert str(estate).count("4711") == 0
    assert {"../secret.yml"} <= {item.name for item in estate.unseen}


@pytest.mark.parametrize(
    ("mark", "waived", "note"),
    [
        ("# vnuma:ignore=T01 until 2999-01-31: CR-17", True, ""),
        ("# vnuma:ignore=T01 until 2001-01-31: CR-17", False, "expired"),
        ("# vnuma:ignore=T01 until 2999-01-31:", False, "reason"),
        ("# vnuma:ignore=T01: no end", False, "last day"),
        ("# vnuma:ignore=T01 until 2999-02-31: x", False, "2999-02-31"),
        ("# vnuma:ignore=Z99 until 2999-01-31: x", False, "Z99"),
        ("# vnuma:ignore=T09 until 2999-01-31: x", False, "no finding"),
    ],
)
def test_a_comment_next_to_the_task_waives_its_findings_alone(
    tmp_path: Path, mark: str, waived: bool, note: str
) -> None:
    """For the task below it, with a reason and an end; an invalid mark is named, and waives nothing."""
    task = "    - vmware_guest: {name: NAME, hardware: {num_cpus: 7, num_cpu_cores_per_socket: 2}}\n"
    first, second = (task.replace("NAME", name) for name in ("a", "b"))
    result = checked(_read(tmp_path, f"- hosts: x\n  tasks:\n{first}    {mark}\n{second}"))
    uneven = {vm.name: [item for item in vm.findings if item.finding.rule == "T01"] for vm in result.vms}
    found = {name: [bool(item.waived) for item in items] for name, items in uneven.items()}
    assert found == {"a": [False], "b": [waived]}
    assert note in " ".join(result.waivers)


SAME = "vmware.vmware.vm: {name: sql-d, cpu: {cores: %s, cores_per_socket: 4}%s}"
ROLE = """
- hosts: sql-e
  vars: {{vnuma_vm: sql-e, vm_topology_arm: {{topology: {}, memory_mb: 65536}}}}
  roles: [vnuma.vnuma.vm_topology]
"""


@pytest.mark.parametrize(
    ("text", "last", "places"),
    [
        (
            _tasks(SAME % (8, ", memory: {size_mb: 65536, reservation: 4096}"), SAME % (16, "")),
            {"numCPUs": 16, "memoryReservation": 4096},  # what only one of them states stays
            ["play.yml:3", "play.yml:4"],
        ),
        (ROLE.format("2x8") + ROLE.format("4x4"), {"numCoresPerSocket": 4}, ["play.yml:2", "play.yml:6"]),
    ],
    ids=["two tasks", "two plays of the role"],
)
def test_what_contradicts_itself_is_named_with_both_places(
    tmp_path: Path, text: str, last: dict[str, int], places: list[str]
) -> None:
    """The last counts, as in a run; equal values, such as the memory, are not a contradiction."""
    estate = _read(tmp_path, text)

    (vm,), (told,) = estate.vms, estate.unseen
    assert vm.facts.settings.items() >= last.items()
    assert told.name == vm.facts.name
    assert re.findall(r"play\.yml:\d+", told.why) == places
    assert told.why.count("memory") == 0


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ("vnuma_vm: sql-g, vm_topology_arm: {topology: 2x8}", {"sql-g"}),
        ("vnuma_vm: '{{ vm }}', vm_topology_arm: {topology: 2x8}", {"vm_topology"}),
        ("vm_topology_arm: {topology: 2x8}", {"vm_topology"}),
        ("vnuma_vm: sql-g, vm_topology_arm: {topology: '{{ shape }}'}", set()),
    ],
    ids=["named", "named by a variable", "not named", "with an unknown topology"],
)
def test_a_task_of_the_role_shapes_the_vm_that_its_variables_name(
    tmp_path: Path, variables: str, names: set[str]
) -> None:
    """Without a known name it is called as the role; without a known arm it is not seen, and named."""
    task = f"include_role: {{name: vnuma.vnuma.vm_topology}}\n      vars: {{{variables}}}"
    estate = _read(tmp_path, _tasks(task))

    assert set(_vms(estate)) == names
    assert [one.name for one in estate.unseen] == ([] if names else ["sql-g"])


def test_two_files_of_a_host_that_contradict_each_other_are_both_named(tmp_path: Path) -> None:
    """Ansible takes the last in alphabetical order; equal values are not a contradiction."""
    for name, shape in (("a", "2x8"), ("b", "4x4")):
        file = tmp_path / "host_vars" / "sql-f" / f"{name}.yml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"vnuma_vm: sql-f\nvm_topology_arm: {{topology: {shape}}}\n", encoding="utf-8")

    estate = read_design(tmp_path / "host_vars")

    (vm,), (told,) = estate.vms, estate.unseen
    assert vm.facts.settings["numCoresPerSocket"] == 4
    assert re.findall(r"sql-f/\S+:\d", told.why) == ["sql-f/a.yml:2", "sql-f/b.yml:2"]
    file.write_text(file.with_name("a.yml").read_text(encoding="utf-8"), encoding="utf-8")
    assert not read_design(tmp_path / "host_vars").unseen


OTHERS = """
- hosts: localhost
  roles: [baseline]
  tasks:
    - import_role: name=monitoring
    - include_tasks: vms/first.yml
    - ansible.builtin.include_tasks: {file: "{{ other }}.yml"}
    - name: Shape it
      vmware.vmware_rest.vcenter_vm_hardware_cpu: {vm: vm-1, count: 16}
    - community.vmware.vmware_guest:
        name: sql-a
        hardware: {num_cpus: 8, memory_mb: 4096}
        advanced_settings: [{key: sched.cpu.affinity, value: 0-7}, {key: numa.vcpu.min, value: 8}]
"""


def test_what_other_files_roles_and_modules_do_is_read_or_named(tmp_path: Path) -> None:
    """Files of tasks below the folder are read; nothing else that may make a VM is silently left out."""
    estate = _read(
        tmp_path,
        OTHERS,
        vms__first="- include_tasks: second.yml",
        vms__second="- vmware_guest: {name: sql-b, hardware: {num_cpus: 4, memory_mb: 4096}}",
    )

    assert set(_vms(estate)) == {"sql-a", "sql-b"}
    told = {one.name: one.why for one in estate.unseen}
    assert set(told) == {"baseline", "name=monitoring", "{{ other }}.yml", "Shape it", "sql-a"}
    assert told["Shape it"].count("vcenter_vm_hardware_cpu") == 1
    # Affinity has a field of its own: the VM stays unpinned, and no rule on affinity sees the key.
    assert re.findall(r"the key (\S+): its field is (\w+)", told["sql-a"]) == [
        ("sched.cpu.affinity", "cpuAffinity")
    ]


@pytest.mark.parametrize("text", ["$ANSIBLE_VAULT;1.1;AES256\n6134\n", "a: [\n"])
def test_a_file_of_tasks_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    """The design's other VMs are checked all the same."""
    estate = _read(tmp_path, OTHERS, vms__first=text)

    assert set(_vms(estate)) == {"sql-a"}
    assert {"vms/first.yml"} <= {one.name for one in estate.unseen}


def test_files_of_tasks_that_include_each_other_end(tmp_path: Path) -> None:
    """The depth is bounded, and the file named."""
    text = "- hosts: localhost\n  tasks: [{include_tasks: again.yml}]\n"
    estate = _read(tmp_path, text, again="- include_tasks: again.yml")

    assert [one.name for one in estate.unseen] == ["again.yml"]


def test_files_of_tasks_that_multiply_each_other_are_refused(tmp_path: Path) -> None:
    """Sixteen includes, nine deep, are more tasks than a machine can read."""
    text = "- hosts: localhost\n  tasks: [{include_tasks: again.yml}]\n"

    with pytest.raises(InputError):
        _read(tmp_path, text, again="- include_tasks: again.yml\n" * 16)


def test_vms_of_a_loop_keep_names_of_their_own(tmp_path: Path) -> None:
    """A part that only a run can resolve does not make them one VM."""
    text = (
        "- hosts: all\n  tasks:\n    - vmware_guest: {name: '{{ item }}01_{{ project }}', template: t}\n"
        "      loop: [web, db]\n"
    )
    assert set(_vms(_read(tmp_path, text))) == {"web01_{{ project }}", "db01_{{ project }}"}
