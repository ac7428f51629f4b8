"""Which virtual NUMA topology should a SQL Server VM have, and how sure are we?"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("vnuma")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
