"""The least-privilege role, and which of it a study needs."""

from __future__ import annotations

from vnuma.domain.vm.role import ROLE, needed_privileges
from vnuma.domain.vm.setting import TYPED


def test_settings_mark_and_power_are_all_counted() -> None:
    """Each setting's own privilege is needed; mark and power-cycle even without one."""
    power = ("VirtualMachine.Interact.PowerOff", "VirtualMachine.Interact.PowerOn")
    mark = "VirtualMachine.Config.AdvancedConfig"
    config = ("VirtualMachine.Config.CPUCount", "VirtualMachine.Config.Resource")

    assert needed_privileges([]) == (mark, *power)
    assert needed_privileges(["numCPUs", "cpuAffinity", "numa.vcpu.min"]) == (mark, *config, *power)


def test_the_role_is_what_a_study_of_every_setting_needs() -> None:
    """No more and no less: each privilege once."""
    names = list(ROLE)
    assert sorted(names) == list(needed_privileges([*TYPED, "numa.vcpu.min"]))
