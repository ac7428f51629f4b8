"""What a vCenter answers about one VM and what surrounds it, as SOAP with nothing in it that names anything.

Numbers, times, switches and words of the API stay. Every other text is replaced, whatever it may be; so are
references and the keys of extraConfig, but those that vnuma reads.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from typing import Any

from pyVmomi import SoapAdapter, VmomiSupport, vim, vmodl

from vnuma.domain.vm.role import ELSEWHERE, ROLE
from vnuma.errors import PrivilegeMissing, VmNotFound
from vnuma.vsphere.counters import counter_ids
from vnuma.vsphere.facts import HOST_PATHS
from vnuma.vsphere.read import OPTIONS, host_filter, vm_filter
from vnuma.vsphere.session import Query, Session, ask, starting
from vnuma.vsphere.surroundings import surroundings_filter

HOST_OPTIONS = "config.option"
"""Where a recording keeps the answer of a host's QueryOptions("Numa.")."""

_WHILE_RUNNING = ("guest.guestState", "guest.toolsVersionStatus2")
"""Properties that only waiting for a guest reads."""

_WORDS = {
    *("version", "build", "apiVersion", "guestId", "changeVersion", "vendor", "model", "shortName"),
    *("cpuModel", "currentEVCModeKey", "guestFullName", "guestState", "toolsRunningStatus"),
    *("toolsVersionStatus2", "disabledMethod", "descriptionId", "biosVersion", "privId"),
}
"""Properties whose text is a word of VMware's or of a manufacturer."""

_NOT_SHOWN = (vmodl.MethodFault, PrivilegeMissing, VmNotFound)
"""What reading something raises that this account may not see."""

_KEYS = ("numa.", "cpuid.", "sched.cpu.", "sched.mem.", "monitor.")
"""How keys of extraConfig and advanced options begin whose values are kept, if these are plain."""

_PLAIN = re.compile(r"true|false|all|on|off|high|normal|low|auto|[0-9, -]{1,200}", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LONGEST_WORD = 120


def recorded_objects(session: Session, ref: vim.VirtualMachine, most: int) -> tuple[str, str]:
    """The SOAP text of a VM, its host, cluster, folders and pools, and what stands for the VM's name in it.

    Each list keeps its first `most` entries. Raises what reading raises.
    """
    kept: dict[Any, dict[str, Any]] = defaultdict(dict)
    collector = session.content.propertyCollector
    running = ask({vim.VirtualMachine: _WHILE_RUNNING}, starting(ref))
    of_vm = vm_filter(session, ref, (*HOST_PATHS, OPTIONS))
    filters = [of_vm, surroundings_filter(session, ref), host_filter(ref), running]
    page = collector.RetrievePropertiesEx(specSet=filters, options=Query.RetrieveOptions())
    while page:
        for entry in page.objects:
            kept[entry.obj] |= {one.name: one.val for one in entry.propSet}
        page = collector.ContinueRetrievePropertiesEx(token=page.token) if page.token else None
    kept |= _of_managers(session)
    for values in kept.values():
        if manager := values.get(OPTIONS):
            with suppress(*_NOT_SHOWN):
                values[HOST_OPTIONS] = manager.QueryOptions("Numa.")
    clean = Anonymous(most)
    objects = [
        Query.ObjectContent(
            obj=clean.value(one, ""),
            propSet=[
                vmodl.DynamicProperty(name=path, val=clean.value(value, path))
                for path, value in values.items()
            ],
        )
        for one, values in kept.items()
    ]
    text = SoapAdapter.Serialize(Query.RetrieveResult(objects=objects), version=session.transport.version)
    as_sent = re.sub(rb'"(ArrayOf)?ManagedObject"', rb'"\1ManagedObjectReference"', text)
    return as_sent.decode("utf-8"), clean.value(kept[ref]["name"], "name")


def _of_managers(session: Session) -> dict[Any, dict[str, Any]]:
    """The performance counters and privileges that vnuma uses, of all that this account is shown."""
    counters, rights = session.content.perfManager, session.content.authorizationManager
    names = {*ROLE, *(one.privilege for one in ELSEWHERE)}
    found: dict[Any, dict[str, Any]] = {}
    with suppress(*_NOT_SHOWN):
        ids, listed = set(counter_ids(session).values()), counters.perfCounter
        found[counters] = {"perfCounter": type(listed)(one for one in listed if int(one.key) in ids)}
    with suppress(*_NOT_SHOWN):
        known = rights.privilegeList
        found[rights] = {"privilegeList": type(known)(one for one in known if one.privId in names)}
    return found


class Anonymous:
    """Replaces texts and references, the same by the same."""

    def __init__(self, most: int) -> None:
        """Lists keep their first `most` entries."""
        self._most = most
        self._known: dict[tuple[str, str], str] = {}

    def value(self, value: Any, path: str) -> Any:
        """A copy of a value of the property at `path`."""
        name = path.rpartition(".")[2]
        match value:
            case vim.option.OptionValue():
                return self._option(value)
            case vim.ElementDescription():
                texts = {part: self._text(getattr(value, part), part) for part in ("label", "summary")}
                return type(value)(key=value.key, **texts)
            case VmomiSupport.ManagedObject():
                kind = type(value).__name__.rpartition(".")[2]
                return type(value)(self._pseudonym(kind, value._GetMoId()), None)
            case VmomiSupport.DataObject():
                parts = {info.name: getattr(value, info.name) for info in value._GetPropertyList()}
                return type(value)(**{part: self.value(one, part) for part, one in parts.items()})
            case list():
                return type(value)([self.value(one, name) for one in value[: self._most]])
            case bytes():
                return type(value)()
            case str() if type(value) is str or isinstance(value, VmomiSupport.binary | VmomiSupport.URI):
                return self._text(value, name)
        return value

    def _option(self, option: Any) -> Any:
        key, value = option.key, option.value
        if not key.lower().startswith(_KEYS):
            return vim.option.OptionValue(key=self._pseudonym("key", key), value="")
        plain = not isinstance(value, str) or _PLAIN.fullmatch(value)
        return vim.option.OptionValue(key=key, value=value if plain else self._pseudonym("text", value))

    def _text(self, text: str, name: str) -> str:
        if (name in _WORDS or text.startswith("com.vmware.")) and len(text) <= _LONGEST_WORD:
            return text
        if _UUID.fullmatch(text):
            return f"00000000-0000-0000-0000-{self._number('uuid', text):012}"
        return ("[datastore] " if text.startswith("[") else "") + self._pseudonym("text", text)

    def _pseudonym(self, kind: str, text: str) -> str:
        return f"{kind}-{self._number(kind, text)}" if text else text

    def _number(self, kind: str, text: str) -> int:
        of_kind = sum(known == kind for known, _ in self._known)
        return int(self._known.setdefault((kind, text), str(of_kind + 1)))
