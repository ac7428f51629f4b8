"""Predict the vNUMA topology of a VM, what guest and SQL Server see, and the confidence."""
