"""Find everything that would spoil or break a study before the first change, and report it together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from vnuma.checks.evaluate import evaluate
from vnuma.checks.facts import Subject
from vnuma.checks.rule import Finding as RuleFinding
from vnuma.checks.rule import Severity
from vnuma.checks.rules.catalogue import RULES
from vnuma.domain.arm.desired_settings import desired_settings, vcpus_of
from vnuma.domain.study.order import assumed_cell_seconds
from vnuma.domain.study.study import Study
from vnuma.domain.topology.release import VIRTUAL_NUMA_SINCE
from vnuma.domain.vm.endpoint import Identity, IdentityComparison, compare
from vnuma.domain.vm.facts import ClusterFacts, HostFacts, VmFacts
from vnuma.domain.vm.role import LOGIN, READS_STATE
from vnuma.domain.vm.setting import Power, Settings
from vnuma.domain.vm.surroundings import ServerUse, Surroundings
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import Target
from vnuma.engine.cell.shape import plan_shape
from vnuma.engine.design_check.check import merge_arms, study_subjects
from vnuma.engine.instance import sql_settings
from vnuma.engine.instance.sql_identity import STATED
from vnuma.engine.lease.hours import LONGER, why_never
from vnuma.engine.lease.whose_vm import parse_mark
from vnuma.engine.preflight.findings import Finding
from vnuma.errors import ArmImpossible, DriverMissing, EnvironmentProblem, LoginRefused, PrivilegeMissing
from vnuma.sqlserver.client.connect import connect, located
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database import ownership
from vnuma.sqlserver.instance import endpoint
from vnuma.sqlserver.instance.endpoint import answers
from vnuma.sqlserver.instance.server import read_permissions
from vnuma.words.plain_text import first_of
from vnuma.workloads.client import client_host, driver_on
from vnuma.workloads.interface import Obstacle, workload_named

some_of = partial(first_of, most=5)
"""The names that a finding shows."""

_RECENT_MINUTES = 10.0
_UNLIMITED = {
    "memory": "Set the limit to Unlimited: ESXi reclaims memory above it from the guest, and refuses a full "
    "reservation.",
    "CPU": "Set the limit to Unlimited: ESXi makes vCPUs wait once the VM has used it up.",
}


def vm_findings(name: str, host: str, seen: Surroundings) -> Iterator[Finding]:
    """Findings about the VM's surroundings in vSphere."""
    yield from _manager_findings(name, seen)
    yield from _device_findings(name, seen)
    if seen.host_trouble:
        yield Finding.block(
            "P36",
            f"{name} could not be powered on again: {seen.host_trouble}",
            "End the host's maintenance or reconnect it, or move the VM, then start again.",
        )
    for limit in seen.limits:
        unit = "MB" if limit.resource == "memory" else "MHz"
        where = "a resource pool above it" if limit.of_pool else "the VM itself"
        yield Finding(
            "P37",
            "block" if limit.resource == "memory" else "warn",
            f"{name} can use only {limit.limit:,} of its {limit.has:,} {unit} of {limit.resource}, because "
            f"of a limit on {where}.",
            _UNLIMITED[limit.resource],
        )
    if many := len(seen.neighbours):
        yield Finding.warn(
            "P10",
            f"{many} other {'VM runs' if many == 1 else 'VMs run'} on {host}: {some_of(seen.neighbours)}.",
            "Move them away during the study, or expect noise from them.",
        )
    if seen.moved_minutes_ago is not None and seen.moved_minutes_ago < _RECENT_MINUTES:
        yield Finding.warn(
            "P19",
            f"{name} was moved to {host} {seen.moved_minutes_ago:.0f} minutes ago.",
            "Find out who moves it, and keep it there during the study.",
        )
    if seen.free_licence:
        yield Finding.block(
            "P18",
            f"{host} has the free hypervisor's licence, whose API only reads (RestrictedVersion).",
            "Use a licensed or evaluation host.",
        )


def _manager_findings(name: str, seen: Surroundings) -> Iterator[Finding]:
    """Other software that manages the VM or works on it."""
    if seen.fault_tolerance:
        yield Finding.block(
            "P08",
            f"{name} is protected by Fault Tolerance; it can be neither reconfigured nor measured alone.",
            "Study a clone, or turn Fault Tolerance off.",
        )
    if seen.running_tasks:
        yield Finding.block(
            "P09",
            f"vSphere is running tasks on {name}: {some_of(seen.running_tasks)}.",
            "Wait until these tasks have ended.",
        )
    if seen.high_availability:
        yield Finding.warn(
            "P11",
            f"vSphere HA protects {name}: if its host fails, it starts on another host.",
            "Set its HA restart priority to Disabled during the study.",
        )
    if seen.admission_control:
        yield Finding.warn(
            "P41",
            f"vSphere HA's admission control may refuse to power {name} on: it keeps capacity of the cluster "
            "free for failovers.",
            "Reserve no more in an arm than the VM does now; or relax admission control during the study.",
        )
    if seen.heartbeat_watched:
        yield Finding.warn(
            "P38",
            f"vSphere HA's VM monitoring watches {name}: it resets the VM when VMware Tools send no "
            "heartbeat, which a slow boot or a busy guest can cause.",
            "Set its VM monitoring to Disabled (VM overrides of the cluster) during the study.",
        )
    if seen.change_tracking:
        yield Finding.warn(
            "P12",
            f"Changed block tracking is on: a backup of {name} may start during the study.",
            "Suspend its backup job, or run the study outside the backup hours: allowed_hours.",
        )
    if seen.managed_by:
        yield Finding.warn(
            "P17",
            f"{name} is managed by {seen.managed_by}, which may undo or forbid changes.",
            "Ask its administrator first.",
        )


def _device_findings(name: str, seen: Surroundings) -> Iterator[Finding]:
    if seen.shared_disks:
        yield Finding.block(
            "P13",
            f"{name} shares disks with other VMs: {some_of(seen.shared_disks)}.",
            "Study a clone with its own disks.",
        )
    if seen.raw_disks:
        yield Finding.block(
            "P14",
            (
                f"{name} has raw disks (RDM): {some_of(seen.raw_disks)}. A clone may still use production's "
                "disks."
            ),
            "Study a clone on virtual disks.",
        )
    if seen.passthrough:
        yield Finding.warn(
            "P15",
            f"{name} has passthrough devices, which need all memory reserved: {some_of(seen.passthrough)}.",
            "Keep memory_reservation: locked in every arm.",
        )
    if seen.virtual_tpm or seen.encrypted:
        yield Finding.warn(
            "P16",
            f"{name} has {'a virtual TPM' if seen.virtual_tpm else 'encrypted disks'}: "
            "each power-on needs vCenter's key provider.",
            "Make sure that the key provider is available during the whole study.",
        )


def passthrough_findings(study: Study, vm: VmFacts, host: HostFacts, seen: Surroundings) -> Iterator[Finding]:
    """Arms that do not reserve all memory of a VM with passthrough devices: ESXi refuses that power-on."""
    for label in study.labels if seen.passthrough else ():
        arm = study.arm(label)
        try:
            settings = {**vm.settings, **desired_settings(arm, vm, host)}
        except ArmImpossible:
            continue  # reported for the arm itself
        reserved = settings.get("memoryReservation")
        all_reserved = settings.get("memoryReservationLockedToMax") is True or (
            isinstance(reserved, int) and reserved == settings["memoryMB"]
        )
        if not all_reserved:
            yield Finding.block(
                "P15",
                f"{vm.name} has passthrough devices ({some_of(seen.passthrough)}), and could not be powered "
                f"on in arm {arm.label}, which does not reserve all memory.",
                "Set memory_reservation: locked in that arm.",
            )


def accepted(study: Study, finding: Finding) -> Finding:
    """The finding after the study's `accept`: an accepted one only warns."""
    if finding.severity == "block" and finding.id in study.accept:
        return replace(finding, severity="warn", what=f"{finding.what} Accepted by the study.")
    return finding


_BY_ADDRESS = Identity()


def server_use_findings(
    name: str, guest_name: str | None, found: ServerUse, *, test_clone: bool, identity: Identity = _BY_ADDRESS
) -> Iterator[Finding]:
    """Other users of this SQL Server, as it reports them. `guest_name` is the guest's name in
    VMware Tools.
    """
    if found.machine_name and guest_name and _short(found.machine_name) != _short(guest_name):
        yield Finding(
            "P27",
            "warn" if identity.is_stated else "block",
            (
                f"The SQL Server of {name} runs on {found.machine_name}, but the VM's guest is called "
                f"{guest_name}."
            ),
            f"Correct vnuma_sql.host: vnuma would measure another machine. {STATED}",
        )
    if found.replica_databases:
        yield _depended_on("P21", name, "an availability group", found.replica_databases)
    elif found.availability_groups:
        yield Finding.warn(
            "P21", f"Availability groups are enabled on {name}; no database is in one.", "None needed."
        )
    if found.clustered:
        yield Finding.block(
            "P22",
            f"SQL Server on {name} is a failover cluster instance: shutting it down causes a failover.",
            "Study a stand-alone instance.",
        )
    if found.replicated:
        yield _depended_on("P23", name, "replication", found.replicated)
    if found.log_shipped:
        yield _depended_on("P24", name, "log shipping", found.log_shipped)
    if found.backups:
        yield Finding.block(
            "P25", f"Backups run on {name}: {some_of(found.backups)}.", "Wait until they have ended."
        )
    if found.sessions:
        yield Finding(
            "P26",
            "warn" if test_clone else "block",
            f"{len(found.sessions)} other sessions are open on {name}: "
            f"{some_of(tuple(dict.fromkeys(found.sessions)))}.",
            "Close them: each power-cycle ends them, and their work adds noise.",
        )
    if found.not_seen:
        yield Finding.warn(
            "P20",
            f"This login cannot read {', '.join(found.not_seen)} on {name}: not evaluated.",
            "Grant it VIEW SERVER STATE, and for log shipping SELECT on msdb.dbo.log_shipping_%.",
        )


def identity_findings(name: str, where: str, found: IdentityComparison) -> Iterator[Finding]:
    """Whether SQL Server at `where` runs in this VM, as far as the facts show."""
    if found.address == "contradicts":
        yield Finding.block(
            "P31",
            f"{where} is not the SQL Server of {name}: {found.contradictions[0]}.",
            f"Correct vnuma_sql.host. {STATED}",
        )
    if found.uptime == "contradicts":
        yield Finding.block(
            "P32",
            f"{where} is not the SQL Server of {name}: {found.contradictions[-1]}.",
            (
                "Correct vnuma_sql.host: this server started before the VM was powered on, so it does not "
                "run in it."
            ),
        )
    if found.missing and not found.contradictions:
        yield Finding.warn(
            "P33",
            f"Not proven yet that {where} is the SQL Server of {name}: {found.missing}.",
            "A run needs no fix: its first power-cycle proves it, and nothing is written before that.",
        )


def server_findings(target: Target, vm: VmFacts, seen: Surroundings) -> list[Finding]:
    """Ask SQL Server who else uses it; if that fails, one finding says why.

    Raises DriverMissing.
    """
    server, users = sql_server(target), f"Other users of SQL Server on {vm.name} were"
    again = ". Then run the command again, or make sure that nobody else uses this SQL Server."
    if vm.power is not Power.ON:
        answer = answers(server) if vm.power is Power.OFF else None
        return [
            Finding.block(
                "P32",
                f"{server.where} is not the SQL Server of {vm.name}: the VM is off, and {answer}.",
                "Correct vnuma_sql.host.",
            )
            if answer
            else _not_evaluated("P20", users, "it is powered off.", "Power it on", again)
        ]
    try:
        with connect(server) as connection:
            found = endpoint.read_use(connection)
    except DriverMissing:  # a fault of this machine, which every cell would meet
        raise
    except LoginRefused as error:  # no cell could log in either, and each attempt counts towards a lock-out
        refused = f"The study could not log in to SQL Server on {vm.name}: {error.what}"
        return [Finding.block("P20", refused, error.fix or "Correct vnuma_sql.user and its password.")]
    except EnvironmentProblem as error:
        return [_not_evaluated("P20", users, error.what, error.fix, again)]
    known_by = target.server.known_by
    findings = server_use_findings(
        vm.name, seen.guest_name, found, test_clone=target.test_clone, identity=known_by
    )
    if seen.running is None or found.side is None:
        return list(findings)
    likeness = compare(seen.running, found.side, known_by)
    return [*findings, *identity_findings(vm.name, server.where, likeness)]


def unencrypted_connection(target: Target) -> Iterator[Finding]:
    """Protection of the connection to SQL Server that the inventory turns off."""
    sql = target.server
    if sql.encrypt == "no":
        yield Finding.warn(
            "P35",
            f"The session with SQL Server on {target.name} is not encrypted (encrypt: no): anyone on "
            "the network path can read and change it, and can get the password by refusing encryption.",
            "Write encrypt: mandatory, and name the CA of its certificate in vnuma_sql.ca_file.",
        )
    elif sql.trust_server_certificate:
        yield Finding.warn(
            "P35",
            f"The certificate of SQL Server on {target.name} is not verified "
            "(trust_server_certificate: true): anyone on the network path can impersonate the server "
            "and get the password.",
            "Name the CA of its certificate in vnuma_sql.ca_file, and remove trust_server_certificate.",
        )


def unused_login(target: Target) -> Iterator[Finding]:
    """A SQL login in the inventory that nobody uses, because Kerberos logs in."""
    sql = target.server
    if sql.kerberos and (sql.user or sql.password):
        given = " and ".join(
            name for name, value in (("user", sql.user), ("password", sql.password)) if value
        )
        yield Finding.warn(
            "P39",
            f"vnuma_sql of {target.name} has {given} and kerberos: true: vnuma logs in by Kerberos and does "
            f"not use {given}.",
            f"Remove {given}; or, to use the SQL login, remove kerberos: true.",
        )


def _not_evaluated(id_: str, what: str, why: str, fix: str | None, then: str) -> Finding:
    """What could not be asked; `fix` makes it possible, and `then` says how to go on."""
    return Finding.warn(id_, f"{what} not evaluated: {why}", f"{(fix or 'Fix this').rstrip('.')}{then}")


def _depended_on(id_: str, name: str, what: str, databases: tuple[str, ...]) -> Finding:
    return Finding.block(
        id_,
        f"Databases on {name} are part of {what}: {some_of(databases)}.",
        "Study a clone on an isolated network, removed from it.",
    )


def _short(name: str) -> str:
    """The NetBIOS name: Windows cuts MachineName after 15 characters, and Tools may append the domain."""
    return name.partition(".")[0].casefold()[:15]


WORKLOAD = "P29"


def workload_findings(study: Study, target: Target, vm: VmFacts) -> list[Finding]:
    """Findings that prevent the workload from running; they block. An unreachable server is a warning.

    Raises DriverMissing.
    """
    can_run = f"Whether the workload {study.workload.name} can run was"
    again = ", then start again; otherwise the first cell will show it."
    if vm.power is not Power.ON:
        return [_not_evaluated(WORKLOAD, can_run, f"{vm.name} is powered off.", "Power it on", again)]
    workload = workload_named(study.workload.name)
    found: list[Obstacle] = []
    rights: list[Finding] = []
    try:
        server = sql_server(target)
        with connect(server) as connection:
            rights = list(_lacking_rights(study, vm.name, connection))
            found += workload.obstacles(connection, study.workload, study.dataset)
            found += sql_settings.obstacles(study, server, connection)
    except PrivilegeMissing as error:  # every cell would meet it too
        found.append(Obstacle(error.what, error.fix or ""))
    except DriverMissing:
        raise
    except EnvironmentProblem as error:
        return [_not_evaluated(WORKLOAD, can_run, error.what, error.fix, again)]
    return [*rights, *(Finding.block(WORKLOAD, one.what, one.fix) for one in found)]


def _lacking_rights(study: Study, vm: str, connection: pyodbc.Connection) -> Iterator[Finding]:
    """The rights that the study's login lacks: found now, not in the first cell."""
    may = read_permissions(connection)
    work, made = study.workload, study.dataset.database
    own = "database" in work.needs and not work.waits_for() and ownership.state(connection, made) is None
    for right in LOGIN if own else (READS_STATE,):
        if not right.held(may):
            name = right.named_for(may)
            yield Finding.block(
                "P00",
                f"the login for SQL Server on {vm} lacks {name}, needed for {right.purpose}.",
                f"GRANT {name} TO the login.",
            )


_BROWSER_S = 5.0


def client_findings(
    inventory: Inventory, name: str, targets: Mapping[str, Target]
) -> dict[str, list[Finding]]:
    """What prevents that host from calling each VM's SQL Server, by VM. Changes nothing.

    `targets` are the VMs that are on. Raises InputError as `Inventory.client` does.
    """
    client = inventory.client(name)
    found: dict[str, list[Finding]] = {}
    try:
        with client_host(client) as (host, hello):
            for vm, target in targets.items():
                server = located(sql_server(target), _BROWSER_S)
                driver_on(client, hello, server.driver)
                if why := host.why_not(server.host, server.port):
                    what = f"{client.name} does not reach SQL Server at {server.where}: {why}."
                    fix = "Open its firewall for that machine, or name another client."
                    found[vm] = [Finding.block(WORKLOAD, what, fix)]
    except EnvironmentProblem as error:
        return {vm: [Finding.block(WORKLOAD, error.what, error.fix or "")] for vm in targets}
    return found


_INSTEAD = "Choose arms with vNUMA nodes on two host nodes, by affinity or more vCPUs; or disable it."


def locality_findings(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    """Findings about the two vNUMA nodes on two physical nodes that some workloads need in every arm, and the
    positive control in its own.
    """
    remote = study.workload.needs_remote_memory
    if not remote and study.control_arm is None:
        return
    who = f"workload {study.workload.name}" if remote else "design.control"
    if len(host.numa_nodes) < 2:  # no remote memory, whatever the arms are
        yield Finding.block(
            "C03",
            f"{who} needs vNUMA nodes on two physical nodes, but {host.name} has one NUMA node.",
            "Use a host with two NUMA nodes and no node interleaving in its BIOS; or disable it.",
        )
        return
    for label in study.labels if remote else (study.reference,):
        yield from _two_nodes(study, label, who, vm, host)


def _two_nodes(study: Study, label: str, who: str, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    arm = study.arm(label)
    try:
        prediction = plan_shape(arm, vm, host).prediction
        settings = {**vm.settings, **desired_settings(arm, vm, host)}
    except ArmImpossible:
        return  # reported for the arm itself
    fewest = min((prediction.vnuma_nodes, *prediction.alternatives))
    if prediction.vnuma_nodes < 2:
        yield Finding.block(
            "C01",
            f"{who} needs two vNUMA nodes, but arm {arm.label} gives the guest "
            f"{prediction.vnuma_nodes}: {prediction.because}.",
            _INSTEAD,
        )
        return
    if fewest < 2:
        yield Finding.warn(
            "C02",
            f"Arm {arm.label} may give the guest {fewest} vNUMA node; {who} then fails.",
            "Run one block first.",
        )
    vcpus = vcpus_of(arm, vm)
    nodes = physical_nodes(vcpus, settings, host)
    if nodes < 2:
        yield Finding.block(
            "C03",
            f"{who} needs vNUMA nodes on two physical nodes, but the {vcpus} vCPUs of arm {arm.label} "
            f"fit on one node of {host.name}: all memory would be local.",
            _INSTEAD,
        )


def physical_nodes(vcpus: int, settings: Settings, host: HostFacts) -> int:
    """The fewest host nodes that the VM may run on, by its CPU affinity or else its size."""
    affinity = settings.get("cpuAffinity")
    if isinstance(affinity, tuple) and affinity:
        return sum(bool(set(affinity) & set(node.cpus)) for node in host.numa_nodes)
    return min(len(host.numa_nodes), -(-vcpus // host.cores_per_node))


LOCK = "P28"
"""Another study's lock; on its own it has its own exit code."""


def check(study: Study, vm: VmFacts, host: HostFacts) -> list[Finding]:
    """Findings from vSphere's facts about this study on this VM."""
    impossible = list(_arms(study, vm, host))
    said = {finding.id for finding in impossible if finding.severity == "block"}
    rules = [finding for finding in rule_findings(study, vm, host) if finding.id not in said]
    return [*impossible, *_vm(study, vm), *_power(study, host), *rules]


def under_study(name: str, lease: str | None) -> Iterator[Finding]:
    """The finding that another study has the VM."""
    mark = parse_mark(lease)
    if mark:
        yield Finding.block(
            LOCK,
            f"{name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}.",
            f"Wait, or ask them to: vnuma stop {mark['run']}",
        )


def touched_settings(study: Study, vm: VmFacts, host: HostFacts) -> set[str]:
    """Every setting that some arm of the study sets on this VM."""
    touched: set[str] = {"rebootPowerOff"} if study.power.guest_is_asked_to == "reboot" else set()
    for label in study.labels:
        try:
            touched |= set(desired_settings(study.arm(label), vm, host))
        except ArmImpossible:
            continue  # reported by `check`; the other arms still report theirs
    return touched


def _arms(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    for label in study.labels:
        arm = study.arm(label)
        try:
            desired = desired_settings(arm, vm, host)
        except ArmImpossible as error:
            yield Finding.block(error.rule, error.what, error.fix or "")
            continue
        if desired.get("memoryAffinity"):
            yield Finding.warn(
                "A03",
                (
                    "Memory affinity is deprecated since vSphere 6.0; vnuma cannot tell whether ESXi "
                    "honours it."
                ),
                "Read its arms as experimental, or use numa_node_affinity.",
            )


def _vm(study: Study, vm: VmFacts) -> Iterator[Finding]:
    if vm.is_template:
        yield Finding.block("P01", f"{vm.name} is a template; it cannot be powered on.", "Use a clone.")
    if vm.question:
        yield Finding.block(
            "P02",
            f"{vm.name} waits for an answer to a question: {vm.question}",
            "Answer it in the vSphere Client.",
        )
    if "ReconfigVM_Task" in vm.disabled_methods:
        yield Finding.block(
            "P03",
            f"{vm.name} cannot be reconfigured now: a backup or replication holds it.",
            "Wait until it has ended.",
        )
    if vm.unread:
        yield Finding.warn(
            "P40",
            f"{vm.name}: not evaluated, as vCenter answered in an unexpected form: {'; '.join(vm.unread)}.",
            "Report it with the file of vnuma doctor --record FILE.",
        )
    if vm.power is Power.SUSPENDED:
        yield Finding.block("P04", f"{vm.name} is suspended.", "Resume it, shut it down, then start again.")
    if study.sets_soft_numa and vm.power is not Power.ON:
        yield Finding.block(
            "S05",
            f"an arm sets soft_numa, but {vm.name} is not on: SQL Server's own setting cannot be read.",
            "Start the VM, or remove soft_numa.",
        )
    if vm.power is Power.ON and not vm.tools_running:
        yield Finding.warn(
            "P05",
            f"VMware Tools do not run in {vm.name}; its first shutdown waits for them.",
            "Check whether the guest is still booting, or start Tools in it.",
        )
    if vm.has_snapshot:
        yield Finding.warn(
            "P06",
            f"{vm.name} has a snapshot; its disks are slower than usual.",
            "Delete it before measuring.",
        )


def _power(study: Study, host: HostFacts) -> Iterator[Finding]:
    if study.power.guest_is_asked_to == "reboot" and host.release.key < VIRTUAL_NUMA_SINCE:
        yield Finding.block(
            "T18",
            f"A reboot that ends in power-off needs ESXi 8.0; {host.name} is {host.release.version}.",
            "Remove guest_is_asked_to from the study's power section.",
        )


def measurement_findings(study: Study) -> Iterator[Finding]:
    """Problems of the design: no verdict possible, or a cell that can never start."""
    if study.design.order == "fixed":
        yield Finding.warn(
            "D01",
            "Fixed order: drift looks like an effect, so there will be no verdict.",
            "Set order: randomised.",
        )
    if study.design.most_blocks < 6:
        yield Finding.warn(
            "D02", f"{study.design.most_blocks} blocks: verdicts need at least 6.", "Set blocks: 6 or more."
        )
    never = why_never(study, assumed_cell_seconds(study))
    if never:
        yield Finding.block("D04", never, LONGER)
    caution = study.workload.caution()
    if caution is not None:
        yield Finding.warn("D03", *caution)


_RULES = tuple(rule for rule in RULES if rule.id[0] in "TAMRQ")

# How a study measures is its author's choice: the report says so, and nothing is refused.
_NEVER_BLOCKS = "Q"


def rule_findings(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    """Findings of the rules on the VM as each arm would leave it, those of several arms merged.

    Informational findings and those that wait for another rule are left out. Only the VM's own host is known
    here, so rules that compare the cluster's hosts are not evaluated.
    """
    others = ("other hosts",) if host.in_drs_cluster else ()
    cluster = ClusterFacts(host.moid, f"the cluster of {host.name}", host.in_drs_cluster, (host,), others)
    subjects = study_subjects(study, Subject(vm=vm, host=host, cluster=cluster))
    found = [
        finding
        for evaluation in evaluate(subjects, _RULES)
        for finding in evaluation.failures
        if finding.severity is not Severity.INFO and not finding.superseded_by
    ]
    for finding in merge_arms(found, study.labels):
        yield _worded(finding)


def _worded(finding: RuleFinding) -> Finding:
    arms = f" ({finding.arm})" if finding.arm else ""
    seen = "; ".join(f"{name} {value}" for name, value in finding.observed.items())
    severity = "warn" if finding.rule[0] in _NEVER_BLOCKS else str(finding.severity)
    return Finding(
        finding.rule,
        "block" if severity == "block" else "warn",
        f"{finding.title}{arms}: {seen}. {finding.consequence}",
        finding.fix.text,
    )
