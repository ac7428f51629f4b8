"""A VM's configuration as settings."""

from __future__ import annotations

import pytest
from pyVmomi import vim

from vnuma.domain.vm.setting import TYPED
from vnuma.vsphere.facts import extra_config, settings_of


def option(key: str, value: object) -> vim.option.OptionValue:
    """One entry of extraConfig."""
    return vim.option.OptionValue(key=key, value=value)


def test_every_typed_setting_is_named() -> None:
    """A configuration without any field still names every typed setting."""
    assert settings_of({}).keys() == TYPED.keys()


def test_fields_of_later_releases_are_none() -> None:
    """Where a release has no automatic cores per socket and no vNUMA fields, the settings are None."""
    hardware = {"numCPU": 16, "numCoresPerSocket": 4, "memoryMB": 65536}
    settings = settings_of({f"config.hardware.{name}": value for name, value in hardware.items()})
    assert (settings["numCPUs"], settings["numCoresPerSocket"], settings["memoryMB"]) == (16, 4, 65536)
    assert settings["autoCoresPerSocket"] is None
    assert settings["coresPerNumaNode"] is None


def test_virtual_numa_is_read() -> None:
    """The vNUMA fields of hardware version 20 are settings."""
    numa = {"coresPerNumaNode": 8, "autoCoresPerNumaNode": False, "vnumaOnCpuHotaddExposed": True}
    settings = settings_of({f"config.numaInfo.{name}": value for name, value in numa.items()})
    assert settings["coresPerNumaNode"] == 8
    assert settings["autoCoresPerNumaNode"] is False
    assert settings["exposeVnumaOnCpuHotadd"] is True


def test_a_cpu_set_is_in_order() -> None:
    """CPU numbers come ascending, whatever order vSphere keeps them in."""
    affinity = vim.vm.AffinityInfo(affinitySet=[4, 0, 2])
    assert settings_of({"config.cpuAffinity": affinity})["cpuAffinity"] == (0, 2, 4)


@pytest.mark.parametrize("none", [None, vim.vm.AffinityInfo(affinitySet=[])])
def test_no_affinity_has_one_form(none: vim.vm.AffinityInfo | None) -> None:
    """An absent affinity and an empty one are the same."""
    assert settings_of({"config.cpuAffinity": none})["cpuAffinity"] == ()


def test_a_setting_that_was_not_asked_for_is_not_there() -> None:
    """A setting that nobody read is absent, which is not the same as None: no such field."""
    settings = settings_of({"config.hardware.numCPU": 8}, ["numCPUs", "coresPerNumaNode"])
    assert settings == {"numCPUs": 8, "coresPerNumaNode": None}


@pytest.mark.parametrize(("level", "number", "shown"), [("normal", 655360, "normal"), ("custom", 1000, 1000)])
def test_shares_show_what_was_set(level: str, number: int, shown: object) -> None:
    """A level of shares is a word, since its number follows the VM's size; custom shares are a number."""
    allocation = {"reservation": 1024, "limit": -1, "shares": vim.SharesInfo(level=level, shares=number)}
    settings = settings_of({f"config.memoryAllocation.{name}": value for name, value in allocation.items()})
    assert (settings["memoryReservation"], settings["memoryLimit"]) == (1024, -1)
    assert settings["memoryShares"] == shown
    assert settings["cpuShares"] == "normal"  # absent: nobody has set them


def test_only_governed_and_evidence_keys_are_settings() -> None:
    """Of extraConfig, the NUMA keys, the power-cycle key and the evidence keys are kept."""
    options = [
        option("numa.autosize.cookie", "160001"),
        option("NUMA.vcpu.min", "4"),
        option("vmx.reboot.PowerCycle", "TRUE"),
        option("sched.cpu.affinity", "all"),
        option("guestinfo.secret", "x"),
        option("vnuma.run", "{}"),
    ]
    keys = settings_of({"config.extraConfig": options}).keys() - TYPED.keys()
    assert keys == {"numa.autosize.cookie", "NUMA.vcpu.min", "vmx.reboot.PowerCycle", "sched.cpu.affinity"}


def test_an_empty_value_is_not_set() -> None:
    """vSphere may keep a key that was removed with an empty value: it is not set."""
    assert extra_config([option("numa.vcpu.min", ""), option("a", 3)]) == {"a": "3"}
