"""The entry point: verbs, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vnuma import __version__
from vnuma.cli import (
    advise,
    archive,
    audit,
    baseline,
    calibrate,
    check,
    compare,
    demo,
    doctor,
    evidence,
    init,
    inventory,
    lab,
    plan,
    power,
    predict,
    reanalyse,
    report,
    restore,
    results,
    run,
    schema,
    setup,
    status,
    stop,
)
from vnuma.errors import Interrupted, VnumaError

EXIT_CODES = """Exit codes: 0 done, 1 a bug, 2 command line, 3 study or input file, 4 environment, 5 preflight
blocks, 6 cells missing, 7 a VM is not at its baseline, 8 VM held by another run, 9 store, 10 a
`--fail-if` or `--fail-on` is met or a target was missed, 130 interrupted. 7 outranks every other code."""

app = typer.Typer(
    name="vnuma",
    help="Which virtual NUMA topology should this SQL Server VM have, and how sure are we?",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vnuma {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Which virtual NUMA topology should this SQL Server VM have, and how sure are we?"""


app.command("check")(check.check)
app.command("predict")(predict.predict)
app.command("advise")(advise.advise)
app.command("plan")(plan.plan)
app.command("power")(power.power)
app.command("run")(run.run)
app.command("status")(status.status)
app.command("stop")(stop.stop)
app.command("restore")(restore.restore)
app.command("results")(results.results)
app.command("report")(report.report)
app.command("reanalyse")(reanalyse.reanalyse)
app.command("compare")(compare.compare)
app.command("export")(archive.export)
app.command("import")(archive.import_)
app.command("audit")(audit.audit)
app.command("calibrate")(calibrate.calibrate)
app.command("doctor")(doctor.doctor)
app.command("evidence")(evidence.evidence)
app.command("init")(init.init)
app.command("demo")(demo.demo)
app.command("setup")(setup.setup)
app.command("schema")(schema.schema)
app.add_typer(inventory.app, name="inventory")
app.add_typer(baseline.app, name="baseline")
app.add_typer(lab.app, name="lab")


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        code = app(standalone_mode=False)
    except VnumaError as error:
        from vnuma.cli.screen import error_text

        sys.stderr.write(error_text(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(Interrupted.exit_code)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except typer.Abort:
        sys.stderr.write("Aborted.\n")
        sys.exit(Interrupted.exit_code)
    except Exception as error:  # noqa: BLE001 - the last stop: a bug is reported, with its traceback in a file
        sys.exit(_report_unexpected(error))
    sys.exit(code or 0)


def _report_unexpected(error: Exception) -> int:
    """A usage error speaks for itself; anything else is a bug, and its traceback goes to a file."""
    show = getattr(error, "show", None)
    if callable(show):  # click's own errors: they print usage and know their code
        show()
        return int(getattr(error, "exit_code", 2))
    from vnuma.cli.crash import write_crash

    path = write_crash(error)
    sys.stderr.write(
        f"This is a bug in vnuma: {type(error).__name__}: {error}\n  Its traceback is in {path}\n"
    )
    return 1
