"""`vnuma init`: write an inventory for your own vCenter."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.screen import can_ask, say
from vnuma.errors import InputError, UsageError


def init(
    folder: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("inventory"),
    vcenter: Annotated[
        str | None, typer.Option(help="Name or address, with its port unless that is 443: vc1:8443.")
    ] = None,
    proxy: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="HTTP CONNECT proxy to it, without a login.")
    ] = "",
    user: Annotated[str | None, typer.Option(help="User name, such as vnuma@vsphere.local.")] = None,
    ca_file: Annotated[
        str | None, typer.Option(help="PEM file with the CA of vCenter's certificate; default: the system's.")
    ] = None,
    vm: Annotated[str | None, typer.Option(help="Name or inventory path of a test clone.")] = None,
    sql_host: Annotated[
        str | None, typer.Option(help="Its SQL Server: HOST, HOST:PORT or HOST\\INSTANCE.")
    ] = None,
    sql_user: Annotated[
        str | None, typer.Option(help="A SQL Server login with VIEW SERVER STATE; default: vnuma.")
    ] = None,
    sql_ca_file: Annotated[
        str | None,
        typer.Option(help="PEM file with the CA of SQL Server's certificate; default: the system's."),
    ] = None,
    test_clone: Annotated[
        bool | None,
        typer.Option(
            "--test-clone/--no-test-clone",
            help="Whether the VM is a test clone, not production; default: no.",
        ),
    ] = None,
) -> None:
    """Write an inventory with references to passwords, never passwords themselves.

    On a terminal it asks for missing values. Elsewhere it uses defaults; values without one are required.

    Examples: vnuma init; vnuma init --vcenter vc1 --user u --vm sql16 --sql-host sql16 --test-clone;
    vnuma init --vcenter vc1:8443 --user u --vm sql16 --sql-host 'sql16\\PROD' --folder site2
    """
    from vnuma.engine.access.new_inventory import Answers, free_place, write_inventory

    free_place(folder)
    told = _answers(
        {
            "vcenter": vcenter,
            "user": user,
            "ca_file": ca_file,
            "vm": vm,
            "sql_host": sql_host,
            "sql_user": sql_user,
            "sql_ca_file": sql_ca_file,
        }
    )
    if test_clone is None:
        test_clone = can_ask() and typer.confirm("Is the VM a test clone", default=False, err=True)
    answers = Answers(**told, test_clone=test_clone, proxy=proxy)
    path = write_inventory(folder, answers)
    typer.echo(f"Wrote {path}.")
    typer.echo("Passwords are read from the environment:")
    typer.echo("  read -rs VNUMA_VCENTER_PASSWORD && export VNUMA_VCENTER_PASSWORD")
    typer.echo("  read -rs VNUMA_SQL_PASSWORD && export VNUMA_SQL_PASSWORD")
    say(f"Next: vnuma doctor -i {shlex.quote(str(folder))}")


@dataclass(frozen=True)
class _Question:
    text: str
    default: str | None = None
    """The value for an empty answer; None: an answer is required."""
    read: Callable[[str], object] = str
    """Parses the answer. Raises InputError."""


def _questions() -> dict[str, _Question]:
    from vnuma.engine.access.new_inventory import require_ca_file, sql_address, vcenter_address

    ca_file = "File with the CA certificate (empty: the system's)"
    return {
        "vcenter": _Question("vCenter or ESXi host", read=vcenter_address),
        "user": _Question("User", read=_some),
        "ca_file": _Question(ca_file, "", require_ca_file),
        "vm": _Question("VM, by name or inventory path", read=_some),
        "sql_host": _Question("SQL Server in it (HOST, HOST:PORT or HOST\\INSTANCE)", read=sql_address),
        "sql_user": _Question("SQL login", "vnuma", _some),
        "sql_ca_file": _Question(
            "File with the CA of SQL Server's certificate (empty: the system's)", "", require_ca_file
        ),
    }


def _some(text: str) -> str:
    """The text. Raises InputError when it is empty."""
    if not text.strip():
        raise InputError("A value is required here.")
    return text


def _answers(given: Mapping[str, str | None]) -> dict[str, str]:
    """An answer to each question: given, asked for, or the default. Raises UsageError."""
    questions = _questions()
    for name, value in given.items():
        if value is not None:
            try:
                questions[name].read(value)
            except InputError as error:
                raise UsageError(f"{_option(name)}: {error.what}", fix=error.fix) from error
    if can_ask():
        return {name: _ask(questions[name]) if value is None else value for name, value in given.items()}
    told = {name: one.default if given[name] is None else given[name] for name, one in questions.items()}
    if missing := [_option(name) for name, value in told.items() if value is None]:
        raise UsageError(
            f"Missing: {', '.join(missing)}. This is not a terminal, so vnuma cannot ask.",
            fix="vnuma init --help",
        )
    return {name: str(value) for name, value in told.items()}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _ask(question: _Question) -> str:
    """Ask until the answer is valid. Spaces around it, as of a pasted one, do not count."""

    def read(text: str) -> str:
        answer = text.strip() or question.default or ""
        try:
            question.read(answer)
        except InputError as error:
            raise typer.BadParameter(" ".join(filter(None, (error.what, error.fix)))) from error
        return answer

    shown = bool(question.default)
    return str(
        typer.prompt(question.text, default=question.default, show_default=shown, value_proc=read, err=True)
    )
