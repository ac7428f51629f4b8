"""What leaves a site names nobody."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyVmomi import vim

from vnuma.vsphere.recording import Anonymous

ZERO = "00000000-0000-0000-0000-000000000001"
MOMENT = datetime(2026, 11, 28, tzinfo=UTC)


@pytest.mark.parametrize(
    ("path", "value", "kept"),
    [
        ("name", "sql16", "text-1"),
        ("guest.ipAddress", "10.20.30.40", "text-1"),
        ("config.files", "[ds1] sql16/sql16.vmx", "[datastore] text-1"),
        ("config.instanceUuid", "4211f1c0-3f0e-2f9b-5d6c-0123456789ab", ZERO),
        ("config.version", "vmx-20", "vmx-20"),
        ("config.managedBy.extensionKey", "com.vmware.vim.eam", "com.vmware.vim.eam"),
        ("config.managedBy.extensionKey", "com.corp.backup", "text-1"),
        ("config.guestId", "x" * 200, "text-1"),
        ("runtime.bootTime", MOMENT, MOMENT),
        ("config.hardware.numCPU", 16, 16),
        ("config.hardware.numCPU", None, None),
        ("disabledMethod", ["Destroy_Task", "ExportVm", "AnswerVM"], ["Destroy_Task", "ExportVm"]),
    ],
)
def test_texts_are_replaced_but_for_words_of_the_api(path: str, value: Any, kept: Any) -> None:
    """Numbers, times and switches stay; a list keeps its first entries."""
    assert Anonymous(2).value(value, path) == kept


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("numa.vcpu.min", "9", ("numa.vcpu.min", "9")),
        ("sched.cpu.affinity", "0-3,8", ("sched.cpu.affinity", "0-3,8")),
        ("numa.nodeAffinity", "10.1.2.3", ("numa.nodeAffinity", "text-1")),
        ("sched.mem.pin", "payroll", ("sched.mem.pin", "text-1")),
        ("guestinfo.owner", "ann", ("key-1", "")),
    ],
)
def test_only_keys_that_vnuma_reads_keep_a_value(key: str, value: str, kept: tuple[str, str]) -> None:
    """And of them only plain ones."""
    option = Anonymous(2).value(vim.option.OptionValue(key=key, value=value), "config.extraConfig")

    assert (option.key, option.value) == kept


def test_the_same_stays_the_same() -> None:
    """References and texts are numbered by kind, so that the answers fit together."""
    clean = Anonymous(2)
    refs = [vim.HostSystem("host-14"), vim.HostSystem("host-15"), vim.HostSystem("host-14")]

    assert [clean.value(one, "host")._GetMoId() for one in refs] == [f"HostSystem-{n}" for n in (1, 2, 1)]
    assert clean.value("a", "name") == clean.value("a", "parent")
