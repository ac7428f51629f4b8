"""`vnuma version`: versions of everything that results, stores and bug reports depend on."""

from __future__ import annotations

from vnuma.cli.options import TextOrJsonOption
from vnuma.cli.screen import echo, echo_json


def version(format_: TextOrJsonOption = "text") -> None:
    """Show what this machine has: vnuma, Python, the lab's program, the ODBC driver, store and audit log.

    JSON also has the method of analysis, the store's schema, SQLite, and the packages that matter.

    Examples: vnuma version; vnuma version --format json
    """
    from vnuma.engine.doctor.diagnose import machine_document, machine_lines

    if format_ == "json":
        echo_json(machine_document())
        return
    for line in machine_lines():
        echo(line)
