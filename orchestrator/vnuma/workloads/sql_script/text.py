"""The syntax of T-SQL scripts in sqlcmd and Management Studio: variables and batch separators."""

from __future__ import annotations

import re

SIZE = "size"
"""The variable that every script has: `$(size)`."""

VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
"""A variable in a script.

https://learn.microsoft.com/sql/tools/sqlcmd/sqlcmd-use-scripting-variables
"""

SEPARATOR = re.compile(
    r"^[ \t]*GO[ \t]*(?:(?P<times>\d{1,6})[ \t]*)?(?:--[^\r\n]*)?\r?$", re.IGNORECASE | re.MULTILINE
)
"""The line between two batches, with the repetitions of the one before it.

https://learn.microsoft.com/sql/t-sql/language-elements/sql-server-utilities-statements-go
"""

CALL = re.compile(r"\bEXEC(?:UTE)?\b", re.IGNORECASE)
"""A procedure's call."""

_NOT_CODE = re.compile(r"--[^\r\n]*|/\*.*?\*/|N?'(?:[^']|'')*'|\[[^\]]*\]", re.DOTALL)
_TOP = re.compile(r"\bTOP\s*(?:\(|\d|\$)", re.IGNORECASE)
_ORDER = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)


def takes_unordered_top(statement: str) -> bool:
    """Whether a statement takes TOP (n) rows without ordering, so that each run may read other rows.

    https://learn.microsoft.com/sql/t-sql/queries/top-transact-sql
    """
    code = _NOT_CODE.sub(" ", statement)
    return bool(_TOP.search(code)) and not _ORDER.search(code)


BYTE_ORDER_MARK = "\ufeff"
"""Some editors put it at the start of a file; inside a batch SQL Server reads it as a word."""
