"""References to vSphere objects, under a name that callers can use without pyVmomi."""

from __future__ import annotations

from pyVmomi import vim

VmRef = vim.VirtualMachine
