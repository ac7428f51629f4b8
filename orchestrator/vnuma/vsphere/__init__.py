"""vSphere through pyVmomi: connect, find, read, reconfigure, power, wait.

Domain values go in and come out; pyVmomi's own objects appear only as references to a VM or host.
"""
