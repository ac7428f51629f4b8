"""The steps of a cell: shape the VM, boot it, verify the guest, measure."""
