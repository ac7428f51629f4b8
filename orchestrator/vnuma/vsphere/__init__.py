"""vSphere through pyVmomi: connect, find, read, reconfigure, power, wait.

Callers pass and get domain values; pyVmomi's objects appear only as references to a VM or host.
"""
