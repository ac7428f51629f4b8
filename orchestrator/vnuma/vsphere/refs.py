"""References to vSphere objects, for callers without pyVmomi."""

from __future__ import annotations

from pyVmomi import vim

VmRef = vim.VirtualMachine
