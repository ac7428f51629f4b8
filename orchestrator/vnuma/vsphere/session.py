"""A logged-in session: the service's entry points, bulk reads and their queries, a count of round trips."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from pyVmomi import vim, vmodl
from pyVmomi.Version import IsChildVersion

from vnuma.domain.vm.facts import Release
from vnuma.errors import VCenterUnreachable, VnumaError
from vnuma.vsphere import tls
from vnuma.vsphere.declared import INFORMS, wrong_type
from vnuma.vsphere.faults import expected, unexpected, unreadable
from vnuma.vsphere.http_response import BadAnswer
from vnuma.vsphere.transport import Transport

Query = vmodl.query.PropertyCollector

Wanted = Mapping[Any, Iterable[str]]
"""Property paths by the kind of object that has them."""


def along(
    kind: type, path: str, *onward: Query.SelectionSpec, name: str | None = None, skip: bool = False
) -> Query.TraversalSpec:
    """The objects to which `path` of a `kind` refers (with `skip`, without them), and those `onward`.

    The property collector recurses where an `onward` refers to a `name`.
    """
    return Query.TraversalSpec(name=name, type=kind, path=path, skip=skip, selectSet=list(onward))


def starting(ref: object, *onward: Query.SelectionSpec, wanted: bool = True) -> Query.ObjectSpec:
    """An object and those `onward` from it; itself only if `wanted`."""
    return Query.ObjectSpec(obj=ref, skip=not wanted, selectSet=list(onward))


def ask(wanted: Wanted, *objects: Query.ObjectSpec, or_gone: bool = False) -> Query.FilterSpec:
    """The properties `wanted` of these objects; `or_gone`: objects that are gone are left out."""
    kinds = [Query.PropertySpec(type=kind, pathSet=list(paths)) for kind, paths in wanted.items()]
    return Query.FilterSpec(
        objectSet=list(objects), propSet=kinds, reportMissingObjectsInResults=or_gone or None
    )


VmRef = vim.VirtualMachine
"""A reference to a VM, for callers without pyVmomi."""

_MOST_PAGES = 10_000
"""Most pages of one bulk read; vCenter puts a hundred objects on a page."""

_NOT_UNDERSTOOD = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)


@dataclass(frozen=True)
class About:
    """The server's description of itself. `uuid` identifies it; an ESXi host's is its hardware's."""

    name: str
    release: Release
    api_version: str
    uuid: str
    is_vcenter: bool


@dataclass(frozen=True)
class ReadObject:
    """One object of a bulk read: the properties that are set, and why others could not be read.

    Every value has the type that the API declares. `unread`: what arrived for a property of another type.
    """

    ref: Any
    values: Mapping[str, Any]
    missing: Mapping[str, vmodl.MethodFault]
    unread: Mapping[str, str] = field(default_factory=dict)


class Session:
    """A login at a vCenter or ESXi host; a context manager that logs out.

    `key` names the login to the authorization manager. `content` is the ServiceContent; pyVmomi types its
    managers as optional, but those used here are always present.
    """

    def __init__(
        self, transport: Transport, content: Any, key: str, about: About, *, is_shared: bool = False
    ) -> None:
        """`is_shared`: another process, or another session here, logs out."""
        self.is_shared = is_shared
        self.transport = transport
        self.content = content
        self.key = key
        self.about = about

    @property
    def round_trips(self) -> int:
        """Number of calls so far."""
        return self.transport.round_trips

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Log out. An unexpected fault is raised as an EnvironmentProblem."""
        try:
            if isinstance(error, vmodl.MethodFault):
                translated = self.translate(error) or unexpected(error, self.transport.vcenter.address)
                raise translated from error
        finally:
            self.close()

    def close(self) -> None:
        """Log out, unless it is shared, and close the connections; an expired session needs no logout."""
        if not self.is_shared:
            with suppress(VCenterUnreachable):
                self.content.sessionManager.Logout()
        self.transport.close()

    def vm(self, moid: str) -> vim.VirtualMachine:
        """The reference of a VM by its managed object id, without a request."""
        return vim.VirtualMachine(moid, self.transport)

    def host(self, moid: str) -> vim.HostSystem:
        """The reference of an ESXi host by its managed object id, without a request."""
        return vim.HostSystem(moid, self.transport)

    def translate(self, fault: vmodl.MethodFault, on: vim.ManagedEntity | None = None) -> VnumaError | None:
        """The error for a fault of a task (`on` a VM), if the fault means the same everywhere."""
        there = self.transport.vcenter
        return expected(fault, there.address, there.user, self.transport.name_of, on=on)

    def knows(self, kind: type, path: str) -> bool:
        """Whether this API version has a property. An older server faults on it, and pyVmomi silently omits
        unknown fields of a request.
        """
        for name in path.split("."):
            info = kind._GetPropertyInfo(name)  # type: ignore[attr-defined]
            if not IsChildVersion(self.transport.version, info.version):
                return False
            kind = info.type
        return True

    def known(self, kind: type, paths: Iterable[str]) -> list[str]:
        """The paths that this API version has."""
        return [path for path in paths if self.knows(kind, path)]

    def retrieve(self, *filters: Query.FilterSpec) -> list[ReadObject]:
        """Read many properties of many objects at once (RetrievePropertiesEx), all pages.

        Raises UnreadableAnswer for a property that decides something and has another type than declared.
        """
        read = self.retrieve_readable(*filters)
        for found in read:
            words = [why for path, why in found.unread.items() if path not in INFORMS]
            if words:
                raise unreadable(
                    self.transport.vcenter.address, f"{'; '.join(words)} (of {found.ref._GetMoId()})"
                )
        return read

    def retrieve_readable(self, *filters: Query.FilterSpec) -> list[ReadObject]:
        """The same, where a property of another type is `unread`, whatever it decides."""
        return [found for page in self._pages(filters) for found in page]

    def _pages(self, filters: Sequence[Query.FilterSpec]) -> Iterator[list[ReadObject]]:
        collector = self.content.propertyCollector
        page = collector.RetrievePropertiesEx(specSet=list(filters), options=Query.RetrieveOptions())
        for _ in range(_MOST_PAGES):
            if page is None:
                return
            with self.understanding():
                found = [_found(entry) for entry in page.objects]
            yield found
            page = collector.ContinueRetrievePropertiesEx(token=page.token) if page.token else None
        raise tls.unreachable(self.transport.vcenter, BadAnswer("an endless answer in pages"))

    @contextmanager
    def second_connection(self) -> Iterator[Session]:
        """The same login on a connection of its own, for another thread.

        Requests with one cookie belong to one session, whichever connection they come by.
        https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.SessionManager.html
        """
        twin = self.transport.twin()
        try:
            content = vim.ServiceInstance("ServiceInstance", twin).RetrieveContent()
            yield Session(twin, content, self.key, self.about, is_shared=True)
        finally:
            twin.close()
            self.transport.round_trips += twin.round_trips

    @contextmanager
    def understanding(self) -> Iterator[None]:
        """Treat an answer from which the body cannot make facts as invalid.

        Raises VCenterUnreachable.
        """
        try:
            yield
        except (BadAnswer, *_NOT_UNDERSTOOD) as error:
            what = f"an answer that vnuma cannot interpret: {type(error).__name__}: {error}"[:200]
            why = error if isinstance(error, BadAnswer) else BadAnswer(what)
            raise tls.unreachable(self.transport.vcenter, why) from error

    def read(self, ref: vim.ManagedEntity | vim.Task, paths: Iterable[str]) -> ReadObject:
        """Read some properties of one object in one round trip.

        Raises PrivilegeMissing when the account may not read one of them.
        """
        entries = self.retrieve(ask({type(ref): self.known(type(ref), paths)}, starting(ref)))
        found = entries[0] if entries else ReadObject(ref, {}, {})
        self.require(found)
        return found

    def require(self, found: ReadObject) -> None:
        """Raise the error for a property that the account may not read."""
        for fault in found.missing.values():
            error = self.translate(fault)
            if error:
                raise error from fault


def _found(entry: Any) -> ReadObject:
    values = {item.name: item.val for item in entry.propSet if item.val is not None}
    seen = {path: wrong_type(type(entry.obj), path, value) for path, value in values.items()}
    unread = {path: words for path, words in seen.items() if words is not None}
    return ReadObject(
        ref=entry.obj,
        values={path: value for path, value in values.items() if path not in unread},
        missing={item.path: item.fault for item in entry.missingSet},
        unread=unread,
    )
