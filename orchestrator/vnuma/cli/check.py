"""`vnuma check`: the design rules, over one VM, a study or a whole estate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vnuma.checks.fixes.tool import Tool
from vnuma.cli.check_designs import read_designs
from vnuma.cli.check_history import recorded, show
from vnuma.cli.check_notify import telling
from vnuma.cli.check_output import WITH_DRIFT, CheckFormat, FailOn, judge, write, write_fixes
from vnuma.cli.completion import study_files, vm_names
from vnuma.cli.evidence import read_text
from vnuma.cli.options import InventoryOption, StoreOption, find_inventory, read_study
from vnuma.cli.screen import echo_json, width
from vnuma.cli.shape_options import EsxiOption, HostsOption, LookAhead, ThreadsOption
from vnuma.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vnuma.domain.vm.estate import Estate
    from vnuma.engine.design_check.check import Asked


def check(
    designs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DESIGN]...",
            help="Planned VMs: terraform show -json, Ansible, a table (csv, xlsx, yaml), .vmx, .ovf, .ova.",
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="RULE",
            help=(
                "Explain a rule: what it checks, why, and the fix. `all` lists the rules; `markdown` "
                "prints docs/reference/rules.md."
            ),
        ),
    ] = None,
    vm: Annotated[
        str | None,
        typer.Option(
            "--vm",
            metavar="NAME",
            help="One VM, by name or inventory path.",
            autocompletion=vm_names,
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study",
            metavar="FILE",
            help="The VMs of a study, as each arm shapes them.",
            autocompletion=study_files,
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every VM of the vCenters in the inventory.")] = False,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--snapshot", metavar="FILE", help="A snapshot (vnuma inventory save) instead of a vCenter."
        ),
    ] = None,
    rvtools: Annotated[
        Path | None,
        typer.Option("--rvtools", metavar="FILE", help="An RVTools export (.xlsx) instead of a vCenter."),
    ] = None,
    design: Annotated[
        list[Path] | None,
        typer.Option(
            "--design", metavar="FILE", help="Planned VMs (as DESIGN above). Repeat it for several."
        ),
    ] = None,
    inventory: InventoryOption = None,
    host_nodes: HostsOption = None,
    esxi: EsxiOption = "8.0",
    threads_per_core: ThreadsOption = 2,
    name: Annotated[
        str, typer.Option("--name", metavar="PATTERN", help="Only VMs whose name matches, such as sql-*.")
    ] = "",
    folder: Annotated[
        str, typer.Option("--folder", metavar="PATH", help="Only VMs in this folder and below.")
    ] = "",
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster",
            metavar="PATTERN",
            help="Only VMs in these clusters; with --design, the clusters they will run in.",
        ),
    ] = "",
    tag: Annotated[
        str,
        typer.Option("--tag", metavar="PATTERN", help="Only VMs with this tag: category:name, or name."),
    ] = "",
    sql: Annotated[
        bool, typer.Option("--sql", help="Log in to SQL Server too, where the inventory has a login.")
    ] = False,
    evidence: Annotated[
        Path | None,
        typer.Option("--evidence", metavar="FILE", help="esxtop's memory screen as text, for M05 and M06."),
    ] = None,
    waivers: Annotated[
        Path | None, typer.Option("--waivers", metavar="FILE", help="Findings that were accepted (YAML).")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", metavar="FILE", help="An earlier check (JSON) or snapshot; show what is new."
        ),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against",
            metavar="DESIGN",
            help="Also show how VMs differ from this design (DESIGN or snapshot), and who changed them.",
        ),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write the findings into the store, to see how they change.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="With --all --record: read every VM, not only what changed.")
    ] = False,
    history: Annotated[
        bool,
        typer.Option("--history", help="Check nothing; show what recorded checks found, and since when."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="DATE", help="With --history: since this date, for example 2026-11-01."
        ),
    ] = None,
    store: StoreOption = None,
    format_: Annotated[CheckFormat, typer.Option("--format", help="Output format.")] = CheckFormat.TABLE,
    fix_as: Annotated[
        Tool | None,
        typer.Option(
            "--fix-as", help="Write only the fixes of VMs, to paste into this tool; see docs/check.md."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; standard output by default.")
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on",
            help="Exit with 10 if a finding has this severity or a worse one; drift: only for drift.",
        ),
    ] = None,
) -> None:
    """Check VMs, hosts and clusters against the design rules. Nothing is changed.

    Examples: vnuma check --all --name 'sql-*'; vnuma check --rvtools export.xlsx --format html -o check.html;
    vnuma check --vm sql16 --sql --fail-on block; vnuma check plan.json --host-nodes 2x16/256@8.0;
    vnuma check --vm sql16 --fix-as govc; vnuma check --explain T14; vnuma check --explain all --format json
    """
    if explain is not None:
        _explain(explain, format_)
        return
    if history:
        show(store, since, as_json=_history_format(format_) is CheckFormat.JSON)
        return
    from vnuma.engine.design_check.against_design import drift
    from vnuma.engine.design_check.against_design import read_designs as read_intended
    from vnuma.engine.design_check.check import Asked, compare, run_check
    from vnuma.engine.design_check.earlier_check import earlier, require_same_estate
    from vnuma.engine.design_check.filters import Filters
    from vnuma.engine.design_check.placement import placements
    from vnuma.estate.waivers import load as load_waivers

    planned = [*(designs or ()), *(design or ())]
    _one_source(vm, study, all_, None if planned else snapshot, rvtools, planned)
    if host_nodes and not planned:
        raise typer.BadParameter(
            "--host-nodes describes the hosts for --design; every other source has its own."
        )
    if fix_as and (study or format_ is not CheckFormat.TABLE):
        raise typer.BadParameter("--fix-as cannot be combined with --study or --format.")
    _check_against(against, fail_on, format_, unfit=bool(planned or study or fix_as))
    if full and not (all_ and record):
        raise typer.BadParameter("--full needs --all --record.")
    if record and (study or baseline or planned):
        raise typer.BadParameter("--record cannot be combined with --study, --baseline or a design.")
    if host_nodes and cluster:
        raise typer.BadParameter("--host-nodes and --cluster both name the hosts: leave one of them out.")
    asked = Asked(
        filters=Filters(name, folder, "" if planned else cluster, tag),
        study=read_study(study)[0] if study else None,
        waivers=load_waivers(waivers) if waivers else (),
        placements=placements(read_text(str(evidence)), evidence) if evidence else {},
    )
    site_file = find_inventory(inventory) if vm or study or all_ else None
    with telling(site_file if all_ and record else None) as tell:
        intended = read_intended(against) if against else []
        estates: Sequence[Estate]
        if site_file is None:
            if sql:
                raise UsageError("--sql needs running VMs.", fix="Use it with --vm, --study or --all.")
            if planned:
                where = LookAhead(
                    host_nodes=host_nodes,
                    esxi=esxi,
                    threads_per_core=threads_per_core,
                    cluster=cluster,
                    snapshot=snapshot,
                    inventory=inventory,
                )
                estates, present = read_designs(planned, where)
                asked = replace(asked, present=present)
            else:
                estates = _from_file(snapshot, rvtools)
        else:
            estates, asked = _live(site_file, asked, vm, sql=sql, recorded=record, full=full)
        asked.filters.require_any(estates)
        result = run_check(estates, asked)
        if against:
            result = replace(result, drift=drift(intended, estates, asked.filters, site_file))
        if record:
            result = recorded(result, store)
        tell(result)
    if baseline:
        then = earlier(baseline, asked)
        require_same_estate(result, then, baseline)
        result = compare(result, then)
    if fix_as:
        write_fixes(result, fix_as, output)
    else:
        write(result, format_, output)
    judge(result, fail_on)


def _check_against(
    against: list[Path] | None, fail_on: FailOn | None, format_: CheckFormat, *, unfit: bool
) -> None:
    """Refuse what does not go with a comparison with a design, and what needs one."""
    if fail_on is FailOn.DRIFT and not against:
        raise typer.BadParameter("--fail-on drift needs --against DESIGN.")
    if against and unfit:
        raise typer.BadParameter("--against cannot be combined with --design, --study or --fix-as.")
    if against and format_ not in WITH_DRIFT:
        raise typer.BadParameter(
            f"--against has no --format {format_}: drift is not a finding of a rule. "
            f"Use {', '.join(WITH_DRIFT[:-1])} or {WITH_DRIFT[-1]}."
        )


def _explain(rule: str, format_: CheckFormat) -> None:
    from vnuma.checks.explain import WIDTH as EXPLAINED_WIDTH
    from vnuma.checks.explain import as_markdown, document
    from vnuma.checks.explain import explain as explanation

    if format_ is CheckFormat.JSON:
        echo_json(document(rule))
    elif rule.strip().lower() == "markdown":
        typer.echo(as_markdown(), nl=False)
    elif format_ is CheckFormat.TABLE:
        typer.echo(explanation(rule, min(EXPLAINED_WIDTH, width() or EXPLAINED_WIDTH)))
    else:
        raise typer.BadParameter("--explain is available as table or json.")


def _history_format(given: CheckFormat) -> CheckFormat:
    if given not in (CheckFormat.TABLE, CheckFormat.JSON):
        raise typer.BadParameter("--history is available as table or json.")
    return given


def _one_source(*given: object) -> None:
    number = sum(bool(source) for source in given)
    if number != 1:
        raise typer.BadParameter(
            f"Give {'only ' if number else ''}one of --vm, --study, --all, --snapshot, --rvtools, --design "
            "(or --explain)."
        )


def _live(
    site: Path, asked: Asked, vm: str | None, *, sql: bool, recorded: bool, full: bool
) -> tuple[Sequence[Estate], Asked]:
    """The estates of running vCenters, and the SQL Servers to log in to if requested."""
    from vnuma.engine.access.inventory import read_targets
    from vnuma.engine.design_check import estates as live
    from vnuma.engine.design_check.sql_facts import SqlServers

    if sql:
        asked = replace(asked, sql=SqlServers(read_targets(site).values()))
    wanted = [vm] if vm else asked.study.vms if asked.study else None
    if wanted is not None:
        return live.read_some(site, wanted), asked
    if recorded:
        return live.read_changes(site, full=full, tags=bool(asked.filters.tag)), asked
    return (live.read_all_tagged(site) if asked.filters.tag else live.read_all(site)), asked


def _from_file(snapshot: Path | None, rvtools: Path | None) -> Sequence[Estate]:
    """A file's estates. Raises InputError for a file without VMs: checking nothing would look like a pass."""
    from vnuma.estate.rvtools import read_rvtools
    from vnuma.estate.snapshot import load

    found = load(snapshot) if snapshot else (read_rvtools(rvtools),) if rvtools else ()
    if not any(estate.vms for estate in found):
        raise InputError(
            f"No VM to check in {snapshot or rvtools}: it contains no readable VM.",
            fix="Save it again with an account that can see VMs: vnuma inventory save FILE",
        )
    return found
