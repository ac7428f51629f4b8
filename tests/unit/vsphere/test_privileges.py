"""Which privileges a study needs."""

from __future__ import annotations

from vnuma.vsphere.privileges import needed_privileges


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
