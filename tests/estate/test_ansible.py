"""Ansible as a design: what tasks and variables say of VMs, without running anything."""

from __future__ import annotations

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


def test_tasks_loops_and_variables_make_vms(tmp_path: Path) -> None:
    """Variables, arithmetic, filters and a second task on the same VM; a removed VM does not count."""
    vms = _vms(_read(tmp_path, PLAY, sizes=SIZES))
    assert set(vms) == {"sql-a", "sql-b", "sql-c"}
    one, three = vms["sql-a"].facts, vms["sql-c"].facts
    assert [one.settings[name] for name in ("numCPUs", "numCoresPerSocket", "memoryMB")] == [16, 4, 131072]
    assert (one.settings["memoryReservation"], one.settings["cpuHotAddEnabled"]) == (1024, True)
    assert (one.settings["numa.vcpu.preferHT"], one.hardware_version) == ("TRUE", 19)
    assert (three.settings["numCPUs"], three.settings["memoryReservationLockedToMax"]) == (24, True)
    assert three.settings["numa.autosize.once"] == "FALSE"
    assert "foo.bar" not in three.settings
    assert "host" in vms["sql-c"].absent[HARDWARE]
    at = vms["sql-c"].declared
    assert at is not None
    assert "vmware.vmware.vm:" in PLAY.splitlines()[at.line - 1]


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
    assert "numCPUs" not in vm.facts.settings
    assert vm.absent["numCPUs"]
    assert vm.facts.settings["memoryMB"] == 4096
    assert not stamp.exists()


def test_what_a_template_brings_is_not_guessed(tmp_path: Path) -> None:
    """A clone has what its template has, an existing VM what it has; a new VM vSphere's defaults."""
    text = "- hosts: all\n  tasks:\n    - vmware_guest: {name: a, hardware: {num_cpus: 4}%s}\n"
    (new,) = _read(tmp_path, text % ", guest_id: windows2019srv_64Guest").vms
    (copied,) = _read(tmp_path, text % ", template: win2022").vms
    assert (new.facts.settings["cpuHotAddEnabled"], new.facts.settings["cpuAffinity"]) == (False, ())
    assert "template" in copied.absent["cpuHotAddEnabled"]
    assert isinstance(copied.absent[EXTRA_CONFIG], NotShown)
    assert "numCoresPerSocket" in new.absent


@pytest.mark.parametrize("how", ["", ", uuid: 4213aaaa", ", moid: vm-7, guest_id: windows2019srv_64Guest"])
def test_a_task_that_can_make_no_vm_changes_one_that_exists(tmp_path: Path, how: str) -> None:
    """A new VM needs a guest_id and has no identity yet; M01 and T11 depend on what the VM has."""
    text = "- hosts: all\n  tasks:\n    - vmware_guest: {name: a%s, hardware: {num_cpus: 24}}\n"
    there = on_hosts(_read(tmp_path, text % how), VmLocation((parse_host("2x16/256", "7.0"),)), None)
    (vm,) = checked(there).vms
    assert {"M01", "T11"} <= vm.not_evaluated.keys()
    assert "exists" in vm.not_evaluated["T11"]
    assert "T11" in vm.undecided


def test_a_later_task_leaves_what_an_earlier_one_made(tmp_path: Path) -> None:
    """The VM is new; the second task finds it by its name and adds cores."""
    text = (
        "- hosts: all\n  tasks:\n    - vmware_guest: {name: a, guest_id: other, hardware: {num_cpus: 4}}\n"
        "    - vmware_guest: {name: a, hardware: {num_cpu_cores_per_socket: 2}}\n"
    )
    (vm,) = _read(tmp_path, text).vms
    settings = vm.facts.settings
    assert (settings["numCPUs"], settings["numCoresPerSocket"], settings["cpuHotAddEnabled"]) == (4, 2, False)


def test_a_task_that_shapes_no_vm_is_no_design(tmp_path: Path) -> None:
    """Powering on or renaming: named, and nothing passes."""
    play = tmp_path / "play.yml"
    play.write_text("- hosts: all\n  tasks:\n    - vmware_guest: {name: pay, state: poweredon}\n")
    ran = vnuma_here("check", play)
    assert (ran.code, ran.out) == (3, "")
    assert "pay" in ran.err


def test_an_omitted_option_names_the_variable_that_omits_it(tmp_path: Path) -> None:
    """`omit` is Ansible's word for an option that is not given."""
    text = (
        "- hosts: all\n  tasks:\n    - vmware_guest: {name: a, guest_id: other, hardware: {num_cpus: 4, "
        "num_cpu_cores_per_socket: '{{ cores | default(omit) }}'}}\n"
    )
    (vm,) = _read(tmp_path, text).vms
    assert "variable cores " in vm.absent["numCoresPerSocket"]


def test_numbers_that_no_vm_has_end_in_one_sentence(tmp_path: Path) -> None:
    """Not a number at all, or one that Python would not even print."""
    play = tmp_path / "play.yml"
    for number in ("many", "-8", f"0x{'f' * 5000}"):
        play.write_text(
            f"- hosts: all\n  tasks:\n    - vmware_guest: {{name: a, hardware: {{num_cpus: {number}}}}}\n"
        )
        assert vnuma_here("check", play).code == 3


def test_host_vars_are_the_vms_of_a_play_and_of_the_role(tmp_path: Path) -> None:
    """Each host of host_vars is a VM; the role's variables are read from the folder alone, too."""
    play = (
        "- hosts: sql\n  tasks:\n    - community.vmware.vmware_guest:\n"
        "        name: '{{ inventory_hostname }}'\n        hardware: {num_cpus: '{{ cpus }}'}\n"
    )
    arm = "vm_topology_arm: {topology: 2x8, memory_mb: 65536, cpu_hot_add: off}\n"
    beside = {"host_vars__sql1": "cpus: 8\n", "host_vars__sql2": f"cpus: 16\n{arm}"}
    made = _vms(_read(tmp_path, play, **beside))
    assert {name: vm.facts.settings["numCPUs"] for name, vm in made.items()} == {"sql1": 8, "sql2": 16}
    (role,) = read_design(tmp_path / "host_vars").vms
    assert (role.facts.name, role.facts.settings["numCoresPerSocket"]) == ("sql2", 8)
    assert role.facts.settings["memoryMB"] == 65536
    assert role.absent["cpuAffinity"]
    assert role.declared is not None
    assert role.declared.line == 2


def test_a_file_outside_the_design_is_not_read(tmp_path: Path) -> None:
    """A pull request names files; only those below the playbook are opened."""
    (tmp_path / "secret.yml").write_text("n: 4711\n", encoding="utf-8")
    folder = tmp_path / "repo"
    folder.mkdir()
    task = "    - vmware_guest: {name: 'v{{ n }}', hardware: {}}\n"
    text = f"- hosts: x\n  vars_files: [../secret.yml]\n  tasks:\n{task}"
    estate = _read(folder, text)
    assert "4711" not in str(estate)
    assert any(item.name == "../secret.yml" for item in estate.unseen)


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- hosts: x\n  tasks: [{debug: {msg: hi}}]\n", "nothing of vSphere"),
        ("a: b\n", "nothing of vSphere"),
        ("$ANSIBLE_VAULT;1.1;AES256\n6134\n", "Vault"),
        ("a: [\n", "not YAML"),
        ("[" * 5_000, "nested"),
        ("", "nothing of vSphere"),
        ("name: q\nreference: a\nvms: [{path: /dc/vm/x}]\narms: [{name: a}]\n", "is a study"),
    ],
)
def test_another_file_is_refused_in_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    """What it is instead, and what to name."""
    with pytest.raises(InputError, match=words):
        _read(tmp_path, text)


def test_two_tasks_that_contradict_each_other_are_both_named(tmp_path: Path) -> None:
    """The last counts, as in a run; what only one of them states stays, and no default hides it."""
    estate = _read(
        tmp_path,
        """
- hosts: localhost
  tasks:
    - vmware.vmware.vm:
        name: sql-d
        cpu: {cores: 8, cores_per_socket: 4}
        memory: {size_mb: 65536, reservation: 4096}
    - vmware.vmware.vm:
        name: sql-d
        cpu: {cores: 16, cores_per_socket: 4}
""",
    )

    (vm,), (told,) = estate.vms, estate.unseen
    assert (vm.facts.settings["numCPUs"], vm.facts.settings["memoryReservation"]) == (16, 4096)
    assert told.name == "sql-d"
    assert "play.yml:4" in told.why
    assert "play.yml:8" in told.why


def test_two_plays_that_shape_one_vm_differently_are_both_named(tmp_path: Path) -> None:
    """By the variables of the role vm_topology; equal memory is not a contradiction."""
    play = """
- hosts: sql-e
  vars: {{vnuma_vm: sql-e, vm_topology_arm: {{topology: {}, memory_mb: 65536}}}}
  roles: [vnuma.vnuma.vm_topology]
"""
    estate = _read(tmp_path, play.format("2x8") + play.format("4x4"))

    (told,) = estate.unseen
    assert "numCoresPerSocket is 8 at" in told.why


def test_two_files_of_a_host_that_contradict_each_other_are_both_named(tmp_path: Path) -> None:
    """Ansible takes the last in alphabetical order; equal values are not a contradiction."""
    for name, shape in (("a", "2x8"), ("b", "4x4")):
        file = tmp_path / "host_vars" / "sql-f" / f"{name}.yml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"vnuma_vm: sql-f\nvm_topology_arm: {{topology: {shape}}}\n", encoding="utf-8")

    estate = read_design(tmp_path / "host_vars")

    (vm,), (told,) = estate.vms, estate.unseen
    assert vm.facts.settings["numCoresPerSocket"] == 4
    assert "sql-f/a.yml:2 and sql-f/b.yml:2" in told.why
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
    assert "vcenter_vm_hardware_cpu" in told["Shape it"]


@pytest.mark.parametrize("text", ["$ANSIBLE_VAULT;1.1;AES256\n6134\n", "a: [\n"])
def test_a_file_of_tasks_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    """The design's other VMs are checked all the same."""
    estate = _read(tmp_path, OTHERS, vms__first=text)

    assert set(_vms(estate)) == {"sql-a"}
    assert "vms/first.yml" in {one.name for one in estate.unseen}


def test_a_key_that_vsphere_ignores_is_named(tmp_path: Path) -> None:
    """Affinity has a field of its own: the VM stays unpinned, and no rule on affinity sees the key."""
    estate = _read(tmp_path, OTHERS, vms__first="[]")

    (told,) = [one.why for one in estate.unseen if one.name == "sql-a"]
    assert "ignores the key sched.cpu.affinity: its field is cpuAffinity" in told


def test_files_of_tasks_that_include_each_other_end(tmp_path: Path) -> None:
    """The depth is bounded, and the file named."""
    text = "- hosts: localhost\n  tasks: [{include_tasks: again.yml}]\n"
    estate = _read(tmp_path, text, again="- include_tasks: again.yml")

    assert [one.name for one in estate.unseen] == ["again.yml"]


def test_files_of_tasks_that_multiply_each_other_are_refused(tmp_path: Path) -> None:
    """Sixteen includes, nine deep, are more tasks than a machine can read."""
    text = "- hosts: localhost\n  tasks: [{include_tasks: again.yml}]\n"

    with pytest.raises(InputError, match="more than 100,000 tasks"):
        _read(tmp_path, text, again="- include_tasks: again.yml\n" * 16)


def test_vms_of_a_loop_keep_names_of_their_own(tmp_path: Path) -> None:
    """A part that only a run can resolve does not make them one VM."""
    text = (
        "- hosts: all\n  tasks:\n    - vmware_guest: {name: '{{ item }}01_{{ project }}', template: t}\n"
        "      loop: [web, db]\n"
    )
    assert set(_vms(_read(tmp_path, text))) == {"web01_{{ project }}", "db01_{{ project }}"}


def test_removed_vms_are_nothing_to_check(tmp_path: Path) -> None:
    """Also those of a loop that only a run can resolve."""
    play = tmp_path / "play.yml"
    play.write_text(
        "- hosts: all\n  tasks:\n    - vmware_guest: {name: '{{ item }}', state: absent}\n"
        "      loop: '{{ stale_vms }}'\n"
    )
    ran = vnuma_here("check", play)
    assert ran.code == 3
    assert "stale_vms" not in ran.err
