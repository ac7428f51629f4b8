"""What ESXi, SQL Server and tools in the guest print, read into values. Pure; no text makes it fail.

A figure is read only where there is no doubt about it; whatever is missing stays None. Formats differ by
release and by how a text was copied, so prefixes, spacing and line breaks do not matter.
"""
