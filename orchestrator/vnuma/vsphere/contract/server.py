"""Beliefs about a vCenter or ESXi host itself: what it says of itself, faults, clocks, reading, waiting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from pyVmomi import vim, vmodl

from vnuma.domain.contract.belief import DiffersError, NotEvaluableError, expect
from vnuma.domain.vm.role import ELSEWHERE, ROLE
from vnuma.errors import VnumaError
from vnuma.vsphere.contract.asked import API, READING, AskedVm
from vnuma.vsphere.counters import OF_HOST, OF_VM, counter_ids
from vnuma.vsphere.faults import fault_name, name_behind
from vnuma.vsphere.query import Query, along, ask, starting
from vnuma.vsphere.uptime import CLOCK_PATH, vcenter_clock

_COLLECTOR = f"{API}vmodl.query.PropertyCollector.html"
_SERVICE = f"{API}vim.ServiceInstance.html"


@READING.declare("server.kind", f"{API}vim.AboutInfo.html")
def _kind(asked: AskedVm) -> str:
    """A server says whether it is a vCenter (`VirtualCenter`) or an ESXi host (`HostAgent`)."""
    seen = str(asked.session.content.about.apiType)
    if seen not in ("VirtualCenter", "HostAgent"):
        raise DiffersError(seen)
    return seen


@READING.declare("server.version", f"{API}vim.AboutInfo.html")
def _version(asked: AskedVm) -> str:
    """Its version is three numbers and its build is one."""
    about = asked.session.content.about
    if [part.isdecimal() for part in about.version.split(".")] != [True] * 3 or not about.build.isdecimal():
        raise DiffersError("another form")
    return f"{about.version} build {about.build}"


@READING.declare("server.api_version", f"{API}vim.AboutInfo.html")
def _api_version(asked: AskedVm) -> str:
    """Its API version is numbers separated by dots."""
    seen = str(asked.session.content.about.apiVersion)
    if not all(part.isdecimal() for part in seen.split(".")):
        raise DiffersError("another form")
    return seen


@READING.declare("server.instance_uuid", f"{API}vim.AboutInfo.html")
def _instance_uuid(asked: AskedVm) -> str:
    """A vCenter has an instance UUID, and an ESXi host has none."""
    return expect(bool(asked.session.content.about.instanceUuid), asked.session.about.is_vcenter)


@READING.declare("server.custom_attributes", f"{API}vim.CustomFieldsManager.html")
def _custom_attributes(asked: AskedVm) -> str:
    """A vCenter has custom attributes, and an ESXi host has none."""
    return expect(asked.session.content.customFieldsManager is not None, asked.session.about.is_vcenter)


@READING.declare("server.current_session", f"{API}vim.SessionManager.html")
def _current_session(asked: AskedVm) -> str:
    """The session manager's current session is the one of this login."""
    return expect(asked.session.content.sessionManager.currentSession.key == asked.session.key, True)


@READING.declare("server.privileges_exist", f"{API}vim.AuthorizationManager.html")
def _privileges(asked: AskedVm) -> str:
    """Each privilege of the role for a study exists."""
    known = {one.privId for one in asked.session.content.authorizationManager.privilegeList}
    wanted = {need.privilege for need in ROLE} | {helps.privilege for helps in ELSEWHERE}
    return expect(sorted(wanted - known), [])


@READING.declare("server.privileges_asked", f"{API}vim.AuthorizationManager.html")
def _has_privilege(asked: AskedVm) -> str:
    """It answers for each privilege of a session on a VM."""
    wanted = sorted({one.privilege for one in ROLE})
    manager = asked.session.content.authorizationManager
    answers = manager.HasPrivilegeOnEntities([asked.ref], asked.session.key, wanted)
    return expect(sorted(one.privId for answer in answers for one in answer.privAvailability), wanted)


@READING.declare("server.counters", f"{API}vim.PerformanceManager.html")
def _counters(asked: AskedVm) -> str:
    """It has each performance counter that vnuma reads, by name."""
    return expect(sorted({*OF_VM, *OF_HOST} - set(counter_ids(asked.session))), [])


@READING.declare("clock.has_a_zone", f"{_SERVICE}#currentTime")
def _zone(asked: AskedVm) -> str:
    """CurrentTime is a moment with its time zone."""
    return expect(vcenter_clock(asked.session).tzinfo is not None, True)


@READING.declare("clock.runs_forward", f"{_SERVICE}#currentTime")
def _forward(asked: AskedVm) -> str:
    """CurrentTime never goes back from one call to the next."""
    first = vcenter_clock(asked.session)
    return expect(vcenter_clock(asked.session) >= first, True)


@READING.declare("clock.of_the_host", f"{API}vim.host.DateTimeSystem.html")
def _host_clock(asked: AskedVm) -> str:
    """A host tells its own clock to an account that may read it."""
    return expect(asked.of_host(CLOCK_PATH).QueryDateTime().tzinfo is not None, True)


@READING.declare("clock.boot_time", f"{API}vim.vm.RuntimeInfo.html")
def _boot_time(asked: AskedVm) -> str:
    """The bootTime of a VM that is on lies before its host's clock; one that is off has none."""
    booted = asked.value("runtime.bootTime")
    on = str(asked.value("runtime.powerState")) == "poweredOn"
    if not on or booted is None:
        return expect(booted is None, not on)
    now = asked.of_host(CLOCK_PATH).QueryDateTime()
    return expect(booted <= now + timedelta(seconds=1), True)


def _fault(question: Callable[[], object]) -> str:
    """The name of the fault that `question` is answered with; `none` without one."""
    try:
        question()
    except VnumaError as error:
        return name_behind(error)
    except vmodl.MethodFault as fault:
        return fault_name(fault)
    return "none"


@READING.declare("fault.missing_object", f"{API}vmodl.fault.ManagedObjectNotFound.html")
def _missing_object(asked: AskedVm) -> str:
    """Reading a missing VM is ManagedObjectNotFound."""
    absent = asked.session.vm("vm-0")
    return expect(_fault(lambda: asked.session.read(absent, ("name",))), "ManagedObjectNotFound")


@READING.declare("fault.unknown_task", f"{API}vim.Task.html")
def _unknown_task(asked: AskedVm) -> str:
    """Reading a task that vCenter has forgotten is ManagedObjectNotFound."""
    gone = vim.Task("task-0", asked.session.transport)
    return expect(_fault(lambda: asked.session.read(gone, ("info.state",))), "ManagedObjectNotFound")


@READING.declare("read.unset_is_absent", _COLLECTOR)
def _unset(asked: AskedVm) -> str:
    """An unset property is left out of the answer, neither null nor a fault."""
    spec = ask({vim.VirtualMachine: ("name", "runtime.question")}, starting(asked.ref))
    answer = asked.session.content.propertyCollector.RetrievePropertiesEx([spec], Query.RetrieveOptions())
    (found,) = answer.objects
    names = sorted(one.name for one in found.propSet)
    if names == ["name", "runtime.question"]:
        raise NotEvaluableError("the VM asks a question now")
    return expect((names, list(found.missingSet)), (["name"], []))


@READING.declare("read.traversal_of_the_host", _COLLECTOR)
def _traversal(asked: AskedVm) -> str:
    """One request reads a VM and, along `runtime.host`, its host."""
    asked.of_host("name")
    objects = starting(asked.ref, along(vim.VirtualMachine, "runtime.host"))
    found = asked.session.retrieve(ask({vim.VirtualMachine: ("name",), vim.HostSystem: ("name",)}, objects))
    return expect(
        sorted(type(one.ref).__name__.rpartition(".")[2] for one in found), ["HostSystem", "VirtualMachine"]
    )


@READING.declare("read.find_by_uuid", f"{API}vim.SearchIndex.html")
def _by_uuid(asked: AskedVm) -> str:
    """A VM is found by its instance UUID."""
    uuid = asked.value("config.instanceUuid")
    found = asked.session.content.searchIndex.FindByUuid(None, uuid, vmSearch=True, instanceUuid=True)
    return expect(bool(found) and found._GetMoId() == asked.ref._GetMoId(), True)


def _updates(asked: AskedVm) -> tuple[list[str], bool]:
    """What a new filter on the VM's name reports first, and whether anything follows at once."""
    collector = asked.session.content.propertyCollector.CreatePropertyCollector()
    try:
        spec = ask({vim.VirtualMachine: ("name",)}, starting(asked.ref))
        collector.CreateFilter(spec=spec, partialUpdates=False)
        now = Query.WaitOptions(maxWaitSeconds=0)
        first = collector.WaitForUpdatesEx("", now)
        kinds = [str(one.kind) for entry in first.filterSet for one in entry.objectSet]
        return kinds, collector.WaitForUpdatesEx(first.version, now) is not None
    finally:
        collector.DestroyPropertyCollector()


@READING.declare("wait.first_is_everything", f"{_COLLECTOR}#waitForUpdatesEx")
def _first_update(asked: AskedVm) -> str:
    """The first update of a new filter is the present state: the object enters."""
    return expect(_updates(asked)[0], ["enter"])


@READING.declare("wait.nothing_new_is_no_update", f"{_COLLECTOR}#waitForUpdatesEx")
def _no_update(asked: AskedVm) -> str:
    """Without changes, a wait of 0 seconds ends without an update."""
    return expect(_updates(asked)[1], False)
