"""The least-privilege role, and which of it a study needs."""

from __future__ import annotations

from vnuma.domain.vm.role import ROLE, needed_privileges
from vnuma.domain.vm.setting import TYPED


def test_settings_mark_and_power_are_all_counted() -> None:
    """Each setting's own privilege is needed, and those of the lease's mark and of power."""
    assert needed_privileges(["numCPUs", "cpuAffinity", "numa.vcpu.min"]) == (
        "VirtualMachine.Config.AdvancedConfig",
        "VirtualMachine.Config.CPUCount",
        "VirtualMachine.Config.Resource",
        "VirtualMachine.Interact.PowerOff",
        "VirtualMachine.Interact.PowerOn",
    )


def test_a_study_that_changes_nothing_still_marks_and_powers() -> None:
    """Even without a setting to change, the VM is marked and power-cycled."""
    assert needed_privileges([]) == (
        "VirtualMachine.Config.AdvancedConfig",
        "VirtualMachine.Interact.PowerOff",
        "VirtualMachine.Interact.PowerOn",
    )


def test_the_role_is_what_a_study_of_every_setting_needs() -> None:
    """No more and no less: each privilege once."""
    names = [need.privilege for need in ROLE]
    assert sorted(names) == list(needed_privileges([*TYPED, "numa.vcpu.min"]))
