"""The entry point: the verbs, and the place where errors become messages and exit codes."""

from __future__ import annotations

import io
import os
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer
from typer.main import get_command

from vnuma import __version__, assets
from vnuma.cli.crash import report_bug, report_bug_within
from vnuma.cli.screen import MANNER, error_text, runnable, say
from vnuma.cli.verb import Verb, Verbs, verb
from vnuma.cli.verb_list import VERBS
from vnuma.collector import collect_rarely
from vnuma.engine.access.private_folder import remove_abandoned
from vnuma.errors import Interrupted, VnumaError, from_os_error, is_os_failure
from vnuma.logins import sharing
from vnuma.words.plain_text import escaped

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

EXIT_CODES = """Exit codes: 0 done, 1 a bug, 2 command line, 3 study or input file, 4 environment, 5 preflight
blocks, 6 cells missing, 7 a VM is not at its baseline, 8 VM held by another run, 9 store, 10 a
`--fail-if` or `--fail-on` condition is true, or `vnuma audit verify` found changes, 130
interrupted. After a change to a VM, 7 outranks every other code."""

app = typer.Typer(
    name="vnuma",
    cls=Verbs,
    help="Which virtual NUMA topology should this SQL Server VM have, and how sure are we?",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vnuma {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version_: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Which virtual NUMA topology should this SQL Server VM have, and how sure are we?"""


for _panel, _verbs in VERBS.items():
    for _name, _line in _verbs.items():
        _file = import_module(f"vnuma.cli.{_name}")
        if isinstance(_group := getattr(_file, "app", None), typer.Typer):
            app.add_typer(
                _group, name=_name, cls=_group.info.cls or Verbs, short_help=_line, rich_help_panel=_panel
            )
        else:
            _add = app.command(_name, cls=Verb, short_help=_line, rich_help_panel=_panel)
            _add(verb(getattr(_file, _name)))

COMMAND = get_command(app)


def main() -> None:
    """Run the command line and exit with its code. Only the user can read files that it writes."""
    collect_rarely()
    # numpy's matrices are small here: threads would wait for each other, on a busy machine for seconds.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    mask = os.umask(0o077)
    _open_closed()
    _outlive_readers()
    try:
        _main()
    finally:
        os.umask(mask)


def _main() -> None:
    code: int | None = None
    with suppress(OSError):
        remove_abandoned(assets.home())  # passwords, where a run was killed
    try:
        with sharing():
            code = _run()
    except KeyboardInterrupt:
        if code is None:  # otherwise only logging out of vCenter was interrupted
            sys.stderr.write("Interrupted.\n")
            code = Interrupted.exit_code
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except typer.Abort:
        sys.stderr.write("Aborted.\n")
        sys.exit(Interrupted.exit_code)
    except Exception as error:  # noqa: BLE001 - the last stop: a bug is reported, with its traceback in a file
        sys.exit(_report_unexpected(error))
    _end(code or 0)


def _run() -> int:
    """Run the verb and return its exit code. Its output is complete before its sessions end."""
    try:
        return COMMAND(standalone_mode=False, prog_name="vnuma") or 0
    except VnumaError as error:
        known = error
    except OSError as error:
        if not is_os_failure(error):
            raise
        known = from_os_error(error)
        known.__cause__ = error
    with suppress(OSError):  # the log's disk is full, so only the exit code tells
        _tell(known)
    return known.exit_code


def _tell(error: VnumaError) -> None:
    if MANNER.verbose and error.__cause__ is not None:
        say("".join(traceback.format_exception(error.__cause__)).rstrip(), sys.stderr)
    say(error_text(error), sys.stderr)
    report_bug_within(error)


class _Pipe(io.FileIO):
    """A pipe whose reader may leave, as `| head` does: the verb continues to its own exit code."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(data)


def _open_closed() -> None:
    """Open standard streams that were closed at the start (`>&-`): their output goes nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)  # keeps it open


def _outlive_readers() -> None:
    """Let a verb finish its work when its output is no longer read."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            pipe = io.BufferedWriter(_Pipe(stream.fileno(), "wb", closefd=False))
            line_buffering = stream.line_buffering
            new = io.TextIOWrapper(pipe, stream.encoding, stream.errors, line_buffering=line_buffering)
            setattr(sys, name, new)


def _end(code: int) -> None:
    """Exit with this code even if output cannot be written: Python would replace it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _report_unexpected(error: Exception) -> int:
    """A usage error explains itself; anything else is a bug, and its traceback goes to a file."""
    show = getattr(error, "show", None)
    if callable(show):  # click's own errors: they print usage and know their code
        _say_plainly(error)
        usage = io.StringIO()
        show(file=usage)
        sys.stderr.write(escaped(runnable(usage.getvalue())))
        return int(getattr(error, "exit_code", 2))

    report_bug(error)
    return 1


def _say_plainly(error: Exception) -> None:
    """Replace the words of a library that found an option's value wrong by those of a study's errors."""
    from pydantic import ValidationError

    from vnuma.words.validation import message

    if isinstance(error.__cause__, ValidationError) and hasattr(error, "message"):
        error.message = f"{message(error.__cause__.errors()[0])}".removesuffix(".") + "."
