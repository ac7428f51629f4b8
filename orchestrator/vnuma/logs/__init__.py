"""Parse output of ESXi, SQL Server and guest tools. Pure; no text makes it fail.

Only unambiguous figures are read; missing ones are None. Formats differ by release and by how a text was
copied, so prefixes, spacing and line breaks are ignored.
"""
