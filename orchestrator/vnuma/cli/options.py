"""Options shared by several verbs, how a shell completes them, and what they resolve to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vnuma import assets
from vnuma.assets import asset
from vnuma.cli.screen import MANNER, note
from vnuma.errors import InputError, UsageError, VnumaError, text_of
from vnuma.words.plain_text import escaped

if TYPE_CHECKING:
    from vnuma.domain.study.study import Study
    from vnuma.engine.access.inventory import Inventory
    from vnuma.engine.access.target import Target
    from vnuma.engine.preflight.findings import Permit
    from vnuma.store.open import Store

_ENDINGS = (".yml", ".yaml")


def _begun(names: Callable[[], list[str]]) -> Callable[[str], list[str]]:
    """The names that start with what was typed; after an error none: a prompt is no place for a message."""

    @wraps(names)
    def offered(incomplete: str) -> list[str]:
        with suppress(VnumaError, OSError):
            return [name for name in names() if name.startswith(incomplete)]
        return []

    offered.__annotations__ = {"incomplete": str, "return": list[str]}
    del offered.__wrapped__  # its signature has no `incomplete`
    return offered


@_begun
def run_names() -> list[str]:
    from vnuma.engine.access.places import store_url
    from vnuma.store.open import open_store
    from vnuma.store.runs import measuring_runs

    with open_store(store_url(), create=False).read() as connection:
        return [*(run.name for run in measuring_runs(connection)), "latest"]


@_begun
def vm_names() -> list[str]:
    """Names of the inventory's VMs and machines."""
    MANNER.quiet = True
    return sorted(find_inventory(None).hosts)


def study_files(incomplete: str) -> list[str]:
    """Study files in the folder typed, and in `studies`; without any, the shell offers its own files."""
    folder = incomplete.rpartition("/")[0]
    places = [Path(folder)] if folder else [Path(), Path("studies")]
    found = [
        str(file) for place in places if place.is_dir() for file in place.iterdir() if file.suffix in _ENDINGS
    ]
    return sorted(name for name in found if name.startswith(incomplete))


StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="Store: sqlite:///FILE or postgresql://... (VNUMA_STORE)."),
]
InventoryOption = Annotated[
    Path | None,
    typer.Option(
        "--inventory",
        "-i",
        metavar="PATH",
        help="Ansible inventory (VNUMA_INVENTORY, ./inventory, or the lab's).",
    ),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Name of a run, such as quick.4, or `latest`.", autocompletion=run_names
    ),
]
ReadRunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Name of a run, such as quick.4, or `latest`; or an archive, RUN.vnuma.zip.",
        autocompletion=run_names,
    ),
]
TicketOption = Annotated[
    str | None,
    typer.Option(
        "--ticket", metavar="ID", help="Change ticket; it appears in the report and in every audit line."
    ),
]


@dataclass(frozen=True)
class PermitOptions:
    """Which VMs may be changed besides test clones."""

    production: Annotated[
        bool,
        typer.Option("--production", help="Allow VMs that are not marked as test clones; needs --ticket."),
    ] = False
    ticket: TicketOption = None
    require_tag: Annotated[
        str | None,
        typer.Option(metavar="CATEGORY:NAME", help="Only VMs with this vSphere tag; it also permits them."),
    ] = None

    def permit(self) -> Permit:
        """As the engine takes it. Raises UsageError for production without a ticket, or an invalid value."""
        from vnuma.engine.preflight.findings import Permit

        try:
            return Permit.given(self.production, self.ticket, self.require_tag)
        except InputError as error:
            raise UsageError(error.what, fix=error.fix) from error


TextOrJsonOption = Annotated[Literal["text", "json"], typer.Option("--format", help="text or json.")]
TableOrJsonOption = Annotated[Literal["table", "json"], typer.Option("--format", help="table or json.")]
VmsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="VM", help="Inventory names; all by default.", autocompletion=vm_names),
]
SiteOption = Annotated[
    str | None,
    typer.Option("--site", metavar="SITE", help="The VMs whose vnuma_site this is: docs/sites.md."),
]
AllowOption = Annotated[
    list[str] | None, typer.Option("--allow", metavar="KEY", help="Accept this difference; may be repeated.")
]
StudyArgument = Annotated[
    Path, typer.Argument(metavar="STUDY", help="A study file.", autocompletion=study_files)
]


def opened_store(given: str | None, *, create: bool = False) -> Store:
    """The store of --store, VNUMA_STORE or the default place; only who writes may `create` it.

    It says, once, why it is waited for. Raises StoreError.
    """
    from vnuma.engine.access.places import store_url
    from vnuma.store.open import open_store

    told: set[str] = set()

    def tell(error: VnumaError) -> None:
        if error.what not in told:
            told.add(error.what)
            note(f"Waiting   {error.what}")

    store = open_store(store_url(given), create=create)
    store.while_away(tell)
    return store


def opened_run(run: str, store: str | None) -> tuple[Store, str]:
    """Where the run is read, and its name there: the store, or an archive if `run` is such a file.

    Raises StoreError, and InputError for a file that is not an archive of vnuma.
    """
    from vnuma.report.archive.read import is_archive, open_archive

    return open_archive(Path(run)) if is_archive(run) else (opened_store(store), run)


def label_of(name: str, run: str) -> str:
    """A run's name, with the file if `run` names the archive that it was read from."""
    from vnuma.report.archive.read import is_archive

    return f"{name} (from {escaped(Path(run).name)})" if is_archive(run) else name


def read_study(path: Path) -> tuple[Study, str]:
    """Read and validate a study file. Returns its text too, because a run stores it."""
    from vnuma.domain.study.study_file import parse_study

    meant = path.with_name(f"{path.name}.yml")
    fix = f"Did you mean {meant}?" if meant.is_file() else f"See {asset('studies/quick.yml')} for an example."
    text = text_of(path, "The study", fix=fix)
    return parse_study(text, str(path)), text


def inventory_of(given: Path | None, names: Iterable[str]) -> Inventory:
    """The inventory that contains these names; this machine alone needs none."""
    from vnuma.engine.access.inventory import LOCAL, Inventory

    if given is None and set(names) == {LOCAL}:
        return Inventory(assets.asset("inventories/localhost/hosts.yml"))
    return find_inventory(given)


def find_inventory(given: Path | None) -> Inventory:
    """The inventory to use: the given one, VNUMA_INVENTORY, ./inventory, or the running lab's."""
    from vnuma import lab
    from vnuma.engine.access.inventory import Inventory

    stated = given or os.environ.get("VNUMA_INVENTORY") or (Path("inventory").exists() and "inventory")
    if stated:
        return Inventory(Path(stated))
    if lab.status():
        note("inventory: the running lab")
        return Inventory(assets.asset("inventories/lab/lab.vnuma.yml"))
    raise InputError(
        "No inventory found: ./inventory does not exist, and no lab is running.",
        fix="vnuma init writes one for your vCenter; vnuma lab up starts the lab.",
    )


def reached_by(inventory: Inventory, targets: Mapping[str, Target]) -> str:
    """The inventory, and the vCenters or ESXi hosts through which its targets are reached."""
    servers = (target.vcenter for target in targets.values() if target.vcenter)
    hosts = dict.fromkeys(
        server.host if server.port == 443 else f"{server.host}:{server.port}" for server in servers
    )
    return f"inventory {inventory}" + (f", vSphere at {', '.join(hosts)}" if hosts else "")
