"""A vCenter that answers with what a real one was recorded to answer, over SOAP on loopback.

Recorded are objects with properties. What no recording has, and every vCenter must have, is completed in the
smallest form that the API documents: the service's content, a login, the present time, all privileges, the
root folder, and the folders and compute resource that recorded objects name as parents. Every other method
answers NotSupported; an unknown object ManagedObjectNotFound.
"""

from __future__ import annotations

import http.server
import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from pyVmomi.VmomiSupport import GetWsdlType

from tests.vsphere.tls_server import self_signed

FOLDER = Path(
    os.environ.get("VNUMA_RECORDINGS") or Path(__file__).parents[3] / "shared" / "field" / "recorded"
)
"""Recorded answers, beside the checkout."""

_XSI = "{http://www.w3.org/2001/XMLSchema-instance}type"
_VIM = "{urn:vim25}"
_NAMESPACES = (
    'xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
)
_MANAGERS = {
    "rootFolder": ("Folder", "group-d1"),
    "propertyCollector": ("PropertyCollector", "propertyCollector"),
    "viewManager": ("ViewManager", "ViewManager"),
    "licenseManager": ("LicenseManager", "LicenseManager"),
    "sessionManager": ("SessionManager", "SessionManager"),
    "authorizationManager": ("AuthorizationManager", "AuthorizationManager"),
    "perfManager": ("PerformanceManager", "PerfMgr"),
    "eventManager": ("EventManager", "EventManager"),
    "searchIndex": ("SearchIndex", "SearchIndex"),
}

Ref = tuple[str, str]
Properties = dict[str, ET.Element]


@dataclass(frozen=True)
class Replay:
    """Where it listens, and the certificate to trust."""

    port: int
    ca_file: Path


@contextmanager
def replaying(recording: Path, folder: Path, *, version: str, build: str, api: str) -> Iterator[Replay]:
    """A vCenter of this release that answers from one recording."""
    service = _Service(_surroundings(_recorded(recording)), version, build, api)
    certificate = self_signed(folder, name="replay")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    handler = type("Handler", (_Handler,), {"service": service})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield Replay(server.server_port, certificate)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _recorded(recording: Path) -> dict[Ref, Properties]:
    objects = {}
    for entry in ET.parse(recording).iter(f"{_VIM}objects"):
        ref = entry.find(f"{_VIM}obj")
        assert ref is not None
        assert ref.text
        objects[ref.get("type", ""), ref.text] = {
            str(one.findtext(f"{_VIM}name")): one[1] for one in entry.findall(f"{_VIM}propSet")
        }
    return objects


def _value(kind: str, body: str, attributes: str = "") -> ET.Element:
    return ET.fromstring(f'<val xmlns="urn:vim25" {_NAMESPACES} xsi:type="{kind}" {attributes}>{body}</val>')


def _to(ref: Ref) -> ET.Element:
    return _value("ManagedObjectReference", ref[1], f'type="{ref[0]}"')


def _list_of(refs: list[Ref]) -> ET.Element:
    body = "".join(
        f'<ManagedObjectReference type="{kind}" xsi:type="ManagedObjectReference">{moid}'
        "</ManagedObjectReference>"
        for kind, moid in refs
    )
    return _value("ArrayOfManagedObjectReference", body)


def _surroundings(objects: dict[Ref, Properties]) -> dict[Ref, Properties]:
    """With parents that no recording has."""
    root, datacenters = ("Folder", "group-d1"), [ref for ref in objects if ref[0] == "Datacenter"]
    objects.setdefault(
        root, {"name": _value("xsd:string", "Datacenters"), "childEntity": _list_of(datacenters)}
    )
    for child in list(objects):
        for parent in _refs(objects[child].get("parent")):
            if parent not in objects and parent[0] == "Folder":
                above = {"name": _value("xsd:string", "vm"), "parent": _to(datacenters[0])}
                objects[parent] = {**above, "childEntity": _list_of([child])}
            elif parent not in objects:
                objects[parent] = {"name": _value("xsd:string", "cluster"), "host": _list_of([child])}
    objects["LicenseManager", "LicenseManager"] = {}
    for ref in [ref for ref in objects if ref in {(kind, f"{kind}-1") for kind, _ in _MANAGERS.values()}]:
        objects[next(one for one in _MANAGERS.values() if one[0] == ref[0])] = objects.pop(ref)
    return objects


def _refs(value: ET.Element | None) -> list[Ref]:
    """The objects to which a property refers."""
    if value is None:
        return []
    if "ManagedObjectReference" in value.get(_XSI, "") and value.get("type") and value.text:
        return [(str(value.get("type")), value.text)]
    return [(str(one.get("type")), str(one.text)) for one in value if one.get("type")]


def _type(name: str) -> type:
    return GetWsdlType("urn:vim25", name)  # type: ignore[no-any-return]


class _Fault(Exception):
    def __init__(self, kind: str, inside: str = "") -> None:
        super().__init__(kind)
        self.kind, self.inside = kind, inside


class _Service:
    def __init__(self, objects: dict[Ref, Properties], version: str, build: str, api: str) -> None:
        self.objects, self.api = objects, api
        self._about = (
            f"<about><name>VMware vCenter Server</name><fullName>vCenter {version} build-{build}"
            f"</fullName><vendor>VMware, Inc.</vendor><version>{version}</version><build>{build}</build>"
            "<osType>linux-x64</osType><productLineId>vpx</productLineId><apiType>VirtualCenter</apiType>"
            f"<apiVersion>{api}</apiVersion><instanceUuid>11111111-2222-3333-4444-555555555555</instanceUuid></about>"
        )

    def versions(self) -> str:
        return (
            '<?xml version="1.0"?><namespaces version="1.0"><namespace><name>urn:vim25</name>'
            f"<version>{self.api}</version></namespace></namespaces>"
        )

    def answer(self, body: bytes) -> tuple[int, str]:
        call = ET.fromstring(body).find("{http://schemas.xmlsoap.org/soap/envelope/}Body")
        assert call is not None
        method = call[0].tag.removeprefix(_VIM)
        try:
            reply = getattr(self, f"on_{method}", self._unknown)(call[0])
        except _Fault as fault:
            detail = (
                f"<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>{fault.kind}</faultstring>"
                f'<detail><{fault.kind}Fault xmlns="urn:vim25" xsi:type="{fault.kind}">{fault.inside}'
                f"</{fault.kind}Fault></detail></soapenv:Fault>"
            )
            return 500, self._envelope(detail)
        return 200, self._envelope(f'<{method}Response xmlns="urn:vim25">{reply}</{method}Response>')

    @staticmethod
    def _envelope(body: str) -> str:
        head = f'<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope {_NAMESPACES}>'
        return f"{head}<soapenv:Body>{body}</soapenv:Body></soapenv:Envelope>"

    def _unknown(self, call: ET.Element) -> str:
        raise _Fault("NotSupported")

    def on_RetrieveServiceContent(self, call: ET.Element) -> str:
        managers = {
            name: f'<{name} type="{kind}">{moid}</{name}>' for name, (kind, moid) in _MANAGERS.items()
        }
        root, collector, view = (managers.pop(name) for name in list(_MANAGERS)[:3])
        return f"<returnval>{root}{collector}{view}{self._about}{''.join(managers.values())}</returnval>"

    def on_Login(self, call: ET.Element) -> str:
        now = "2024-01-01T00:00:00Z"
        return (
            "<returnval><key>k</key><userName>u</userName><fullName>u</fullName>"
            f"<loginTime>{now}</loginTime><lastActiveTime>{now}</lastActiveTime><locale>en</locale>"
            "<messageLocale>en</messageLocale></returnval>"
        )

    def on_CurrentTime(self, call: ET.Element) -> str:
        return f"<returnval>{datetime.now(UTC).isoformat()}</returnval>"

    on_QueryDateTime = on_CurrentTime

    def on_Logout(self, call: ET.Element) -> str:
        return ""

    on_DestroyView = on_Logout

    def on_CreateContainerView(self, call: ET.Element) -> str:
        kinds = tuple(_type(str(one.text)) for one in call.findall(f"{_VIM}type"))
        seen = [ref for ref in self.objects if issubclass(_type(ref[0]), kinds)]
        moid = f"view-{len(self.objects)}"
        self.objects["ContainerView", moid] = {"view": _list_of(seen)}
        return f'<returnval type="ContainerView">{moid}</returnval>'

    def on_HasPrivilegeOnEntities(self, call: ET.Element) -> str:
        """Everything is granted: no recording has an answer."""
        entity = call.find(f"{_VIM}entity")
        assert entity is not None
        granted = "".join(
            f"<privAvailability><privId>{one.text}</privId><isGranted>true</isGranted></privAvailability>"
            for one in call.findall(f"{_VIM}privId")
        )
        return f"<returnval>{_xml(entity, 'entity')}{granted}</returnval>"

    def on_QueryOptions(self, call: ET.Element) -> str:
        """`config.option` of the host stands for its options Numa.*."""
        manager = (str(call[0].get("type")), str(call[0].text))
        path = "configManager.advancedOption"
        hosts = [one for one in self.objects.values() if manager in _refs(one.get(path))]
        options = hosts[0].get("config.option") if hosts else None
        return "".join(_xml(one, "returnval") for one in options) if options is not None else ""

    def on_Fetch(self, call: ET.Element) -> str:
        value = self._object((str(call[0].get("type")), str(call[0].text))).get(str(call[1].text))
        return "" if value is None else _xml(value, "returnval")

    def on_RetrievePropertiesEx(self, call: ET.Element) -> str:
        entries = "".join(self._filtered(one) for one in call.findall(f"{_VIM}specSet"))
        return f"<returnval>{entries}</returnval>" if entries else ""

    def _object(self, ref: Ref) -> Properties:
        if ref not in self.objects:
            raise _Fault("ManagedObjectNotFound", f'<obj type="{ref[0]}">{ref[1]}</obj>')
        return self.objects[ref]

    def _filtered(self, spec: ET.Element) -> str:
        wanted = [
            (_type(str(one.findtext(f"{_VIM}type"))), [str(p.text) for p in one.findall(f"{_VIM}pathSet")])
            for one in spec.findall(f"{_VIM}propSet")
        ]
        return "".join(self._entry(ref, wanted) for ref in self._selected(spec))

    def _selected(self, spec: ET.Element) -> dict[Ref, None]:
        found: dict[Ref, None] = {}
        named = {
            str(one.findtext(f"{_VIM}name")): one
            for one in spec.iter(f"{_VIM}selectSet")
            if one.find(f"{_VIM}path") is not None
        }
        for start in spec.findall(f"{_VIM}objectSet"):
            obj = start.find(f"{_VIM}obj")
            assert obj is not None
            ref = (str(obj.get("type")), str(obj.text))
            if start.findtext(f"{_VIM}skip") != "true":
                found[ref] = None
            self._onward(ref, start, named, found, set())
        return found

    def _onward(
        self, ref: Ref, step: ET.Element, named: dict[str, ET.Element], found: dict[Ref, None], seen: set[Any]
    ) -> None:
        for one in step.findall(f"{_VIM}selectSet"):
            path = one.find(f"{_VIM}path")
            rule = one if path is not None else named[str(one.findtext(f"{_VIM}name"))]
            kind = _type(str(rule.findtext(f"{_VIM}type")))
            if (ref, id(rule)) in seen or not issubclass(_type(ref[0]), kind):
                continue
            seen.add((ref, id(rule)))
            for target in _refs(self.objects.get(ref, {}).get(str(rule.findtext(f"{_VIM}path")))):
                if target in self.objects and rule.findtext(f"{_VIM}skip") != "true":
                    found[target] = None
                self._onward(target, rule, named, found, seen)

    def _entry(self, ref: Ref, wanted: list[tuple[Any, list[str]]]) -> str:
        paths = [path for kind, some in wanted if issubclass(_type(ref[0]), kind) for path in some]
        if not paths:
            return ""
        has = self._object(ref)
        sets = "".join(
            f"<propSet><name>{escape(path)}</name>{_xml(has[path], 'val')}</propSet>"
            for path in dict.fromkeys(paths)
            if path in has
        )
        return f'<objects><obj type="{ref[0]}">{ref[1]}</obj>{sets}</objects>'


def _xml(element: ET.Element, name: str) -> str:
    """An element under another name, as the text of a recording has it."""
    inside = escape(element.text or "") + "".join(_xml(one, one.tag.removeprefix(_VIM)) for one in element)
    attributes = "".join(
        f' {"xsi:type" if key == _XSI else key}="{escape(value)}"' for key, value in element.attrib.items()
    )
    return f"<{name}{attributes}>{inside}</{name}>"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # headers and body in one packet
    service: _Service

    def do_GET(self) -> None:
        found = self.path == "/sdk/vimServiceVersions.xml"
        self._answer(200 if found else 404, self.service.versions() if found else "")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/sdk":
            self._answer(*self.service.answer(body))
        else:
            self._answer(404, "")

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.send_header("Set-Cookie", "vmware_soap_session=replay; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
