"""The audit log of changes to VMs: written before each change, chained and verified."""
