"""What `vnuma check` can be asked for: its options, and which of them exclude each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vnuma.checks.fix_as import Tool
from vnuma.cli.options import InventoryOption, StoreOption, study_files, vm_names
from vnuma.cli.shape_options import EsxiOption, HostsOption, LookAhead, ThreadsOption

if TYPE_CHECKING:
    from vnuma.engine.design_check.check import Filters


CheckFormat = Literal["table", "json", "csv", "sarif", "html", "markdown"]
"""What to write."""

FailOn = Literal["block", "warn", "drift"]
"""The lowest severity at which an unwaived finding means exit code 10. Drift counts as a warning."""


@dataclass(frozen=True)
class CheckOptions:
    """Where VMs are read, which of them are checked, with what they are compared, and what is written."""

    designs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DESIGN",
            help="RVTools export, or planned VMs: terraform show -json, Ansible, a table (csv, xlsx, yaml), "
            ".vmx, .ovf, .ova.",
        ),
    ] = None
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Explain a rule: what it checks, why, and the fix. `all` lists the rules.",
        ),
    ] = None
    vm: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One VM, by name or inventory path.", autocompletion=vm_names),
    ] = None
    study: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The VMs of a study, as each arm shapes them.",
            autocompletion=study_files,
        ),
    ] = None
    all_: Annotated[bool, typer.Option("--all", help="Every VM of the vCenters in the inventory.")] = False
    snapshot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A snapshot (vnuma inventory save) instead of a vCenter."),
    ] = None
    rvtools: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An RVTools export (.xlsx, tabvInfo.csv) instead of a vCenter."),
    ] = None
    design: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Planned VMs (as DESIGN above). Repeat it for several."),
    ] = None
    inventory: InventoryOption = None
    host_nodes: HostsOption = None
    esxi: EsxiOption = "8.0"
    threads_per_core: ThreadsOption = 2
    name: Annotated[
        str, typer.Option(metavar="PATTERN", help="Only VMs whose name matches, such as sql-*.")
    ] = ""
    folder: Annotated[str, typer.Option(metavar="PATH", help="Only VMs in this folder and below.")] = ""
    cluster: Annotated[
        str,
        typer.Option(
            metavar="PATTERN",
            help="Only VMs in these clusters; with --design, the cluster they will run in.",
        ),
    ] = ""
    tag: Annotated[
        str, typer.Option(metavar="PATTERN", help="Only VMs with this tag: category:name, or name.")
    ] = ""
    sql: Annotated[
        bool, typer.Option("--sql", help="Log in to SQL Server too, where the inventory has a login.")
    ] = False
    evidence: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="esxtop's memory screen as text, for M05 and M06."),
    ] = None
    waivers: Annotated[Path | None, typer.Option(metavar="FILE", help="Accepted findings (YAML).")] = None
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An earlier check (JSON) or snapshot; show what is new."),
    ] = None
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DESIGN",
            help="Also show how VMs differ from this design (DESIGN or snapshot), and who changed them.",
        ),
    ] = None
    record: Annotated[
        bool, typer.Option("--record", help="Write the findings into the store, to see how they change.")
    ] = False
    full: Annotated[
        bool, typer.Option("--full", help="With --all --record: read every VM, not only what changed.")
    ] = False
    history: Annotated[
        bool,
        typer.Option("--history", help="Check nothing; show what recorded checks found, and since when."),
    ] = False
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="With --history: since this date, for example 2026-11-01."),
    ] = None
    store: StoreOption = None
    format_: Annotated[CheckFormat, typer.Option("--format", help="Output format.")] = "table"
    fix_as: Annotated[
        Tool | None,
        typer.Option(help="Write only the fixes of VMs, to paste into this tool; see docs/check.md."),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File, for example check.html; standard output by default."),
    ] = None
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            help="Exit with 10 if a finding has this severity or a worse one; drift: only for drift.",
        ),
    ] = None
    fail_on_assumed: Annotated[
        bool,
        typer.Option(
            "--fail-on-assumed/--no-fail-on-assumed",
            help="Whether findings that assume defaults count for --fail-on.",
        ),
    ] = True
    least_evaluated: Annotated[
        int,
        typer.Option(
            metavar="PERCENT",
            min=0,
            max=100,
            help="With --fail-on block or warn: also exit with 10 if the topology of fewer VMs was checked.",
        ),
    ] = 100
    assume_defaults: Annotated[
        bool,
        typer.Option(
            "--assume-defaults/--no-assume-defaults",
            help="Where a source never shows numa.* keys or affinity (RVTools, clones), evaluate with their "
            "defaults, which most VMs have, and mark the result. Otherwise these rules are not evaluated.",
        ),
    ] = True

    @property
    def planned(self) -> list[Path]:
        """The designs, however they were named."""
        return [*(self.designs or ()), *(self.design or ())]

    @property
    def live(self) -> bool:
        """Whether the VMs are those of running vCenters."""
        return bool(self.vm or self.study or self.all_)

    def filters(self) -> Filters:
        """Which VMs are checked. Of a design, the cluster is where its VMs will run."""
        from vnuma.engine.design_check.check import Filters

        return Filters(self.name, self.folder, "" if self.planned else self.cluster, self.tag)

    def look_ahead(self) -> LookAhead:
        """Where the VMs of a design are to run."""
        return LookAhead(
            host_nodes=self.host_nodes,
            esxi=self.esxi,
            threads_per_core=self.threads_per_core,
            cluster=self.cluster,
            snapshot=self.snapshot,
            inventory=self.inventory,
        )

    def refuse_contradictions(self) -> None:
        """Raise BadParameter for options that exclude each other, or lack one that they need."""
        planned = self.planned
        sources = (self.vm, self.study, self.all_, None if planned else self.snapshot, self.rvtools, planned)
        number = sum(map(bool, sources))
        refused = (
            (
                bool(self.vm and (self.rvtools or (self.snapshot and not planned))),
                "--vm reads a vCenter. In a snapshot or an RVTools export choose VMs with --name.",
            ),
            (
                number != 1,
                f"Give {'only ' if number else ''}one of --vm, --study, --all, --snapshot, --rvtools, "
                "--design (or --explain).",
            ),
            (
                self.host_nodes and not planned,
                "--host-nodes describes the hosts for --design; every other source has its own.",
            ),
            (
                self.fix_as and (self.study or self.format_ != "table"),
                "--fix-as cannot be combined with --study or --format.",
            ),
            (
                self.fail_on == "drift" and not self.against,
                "--fail-on drift needs --against DESIGN.",
            ),
            (
                self.against and (planned or self.study or self.fix_as),
                "--against cannot be combined with --design, --study or --fix-as.",
            ),
            (self.full and not (self.all_ and self.record), "--full needs --all --record."),
            (
                self.record and (self.study or self.baseline or planned),
                "--record cannot be combined with --study, --baseline or a design.",
            ),
            (
                self.host_nodes and self.cluster,
                "--host-nodes and --cluster both name the hosts: leave one of them out.",
            ),
        )
        for applies, words in refused:
            if applies:
                raise typer.BadParameter(words)
