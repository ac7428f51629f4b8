"""VM tags from vCenter's REST API, since the SOAP API has none.

Sources: https://developer.broadcom.com/xapis/vsphere-automation-api/latest/cis-tagging for the operations,
govmomi's `vapi/rest` for the session header. REST has tags since vCenter 6.5.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterable
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from vnuma.errors import EnvironmentProblem, LoginRefused, PrivilegeMissing
from vnuma.vsphere import tls
from vnuma.vsphere.vcenter import VCenter

_SESSION = "/rest/com/vmware/cis/session"
_TAGGING = "/rest/com/vmware/cis/tagging"
_SESSION_HEADER = "vmware-api-session-id"
_VM = "VirtualMachine"


def read_tags(vcenter: VCenter) -> dict[str, tuple[str, ...]]:
    """Sorted tags as `category:name` by the VM's managed object id; untagged VMs are left out.

    One call returns all attachments; names are requested only for tags on VMs. vCenter silently omits what
    the account may not read. Raises LoginRefused, PrivilegeMissing, VCenterUnreachable, CertificateRejected,
    and EnvironmentProblem if there is no such API.
    """
    with _Rest(vcenter) as rest:
        ids = rest.get(f"{_TAGGING}/tag")
        attached = rest.post(
            f"{_TAGGING}/tag-association?~action=list-attached-objects-on-tags", {"tag_ids": ids}
        )
        vms = {
            entry["tag_id"]: [item["id"] for item in entry.get("object_ids") or () if item["type"] == _VM]
            for entry in attached
        }
        names = rest.names(id_ for id_, some in vms.items() if some)
    found: dict[str, list[str]] = {}
    for id_, name in names.items():
        for moid in vms[id_]:
            found.setdefault(moid, []).append(name)
    return {moid: tuple(sorted(names)) for moid, names in found.items()}


def read_tags_of(vcenter: VCenter, moid: str) -> frozenset[str]:
    """The tags of one VM as `category:name`, by its managed object id. Raises as `read_tags` does."""
    with _Rest(vcenter) as rest:
        attached = rest.post(
            f"{_TAGGING}/tag-association?~action=list-attached-tags",
            {"object_id": {"id": moid, "type": _VM}},
        )
        return frozenset(rest.names(attached).values())


class _Rest:
    """A session of vCenter's REST API over one connection, with the certificate checked as usual."""

    def __init__(self, vcenter: VCenter) -> None:
        self._vcenter = vcenter
        self._connection = tls.channel(vcenter, tls.context_for(vcenter))
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}

    def __enter__(self) -> Self:
        if not self._vcenter.password:
            raise EnvironmentProblem(
                "Tags are read by vCenter's REST API, which accepts neither the session nor the token "
                f"given for {self._vcenter.address}.",
                fix="Give vnuma_vcenter user and password, or use no tags.",
            )
        named = f"{self._vcenter.user}:{self._vcenter.password}".encode()
        login = {"Authorization": f"Basic {base64.b64encode(named).decode()}"}
        try:
            session = self._call("POST", _SESSION, None, login)
        except BaseException:
            self._connection.close()
            raise
        self._headers[_SESSION_HEADER] = str(session)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._call("DELETE", _SESSION, None)
        finally:
            self._connection.close()

    def get(self, path: str) -> Any:
        return self._call("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """POST that path, for a request with a body."""
        return self._call("POST", path, body)

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        """Tags as `category:name`, by id."""
        tags = {id_: self.get(f"{_TAGGING}/tag/id:{quote(id_)}") for id_ in ids}
        categories = {
            id_: self.get(f"{_TAGGING}/category/id:{quote(id_)}")["name"]
            for id_ in {tag["category_id"] for tag in tags.values()}
        }
        return {id_: f"{categories[tag['category_id']]}:{tag['name']}" for id_, tag in tags.items()}

    def _call(self, method: str, path: str, body: Any, extra: dict[str, str] | None = None) -> Any:
        try:
            self._connection.request(
                method, path, None if body is None else json.dumps(body), self._headers | (extra or {})
            )
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise tls.failed(self._vcenter, error) from error
        if response.status != HTTPStatus.OK:
            raise self._refused(response.status)
        return self._value(answer)

    def _value(self, answer: bytes) -> Any:
        """The `value` that wraps every answer of /rest; an empty answer may lack it."""
        try:
            return json.loads(answer).get("value") or [] if answer else []
        except (ValueError, AttributeError) as error:
            raise EnvironmentProblem(
                f"{self._vcenter.address} answers at {_TAGGING}, but not like a vCenter.",
                fix="Check vnuma_vcenter.host and its port.",
            ) from error

    def _refused(self, status: int) -> EnvironmentProblem:
        at, user = self._vcenter.address, self._vcenter.user
        if status == HTTPStatus.UNAUTHORIZED:
            return LoginRefused(
                f"{at} does not accept the user {user} at its REST API, which has the tags.",
                fix="Check that the account may log in there; SAML-only accounts may not.",
            )
        if status == HTTPStatus.FORBIDDEN:
            return PrivilegeMissing(
                f"{user} may not read tags at {at}.", fix="Give the account Read-only on the tags, globally."
            )
        return EnvironmentProblem(
            f"{at} has no API for tags (HTTP {status}): vCenter has one since 6.5, ESXi hosts do not.",
            fix="Choose VMs by --name, --folder or --cluster.",
        )
