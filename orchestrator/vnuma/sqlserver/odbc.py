"""The one place that imports pyodbc, so that a missing driver manager becomes one sentence."""

from __future__ import annotations

from vnuma.errors import DriverMissing

try:
    import pyodbc
except ImportError as error:
    raise DriverMissing(
        f"pyodbc could not be loaded: {error}.",
        fix="It needs unixODBC's libodbc.so.2. Debian: apt install unixodbc. macOS: brew install unixodbc.",
    ) from error

# A pooled handle outlives the restart of the guest that it was connected to. The driver manager
# reads this once, before the first connection of the process.
pyodbc.pooling = False

__all__ = ["pyodbc"]
