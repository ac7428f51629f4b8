"""The SOAP channel, which counts round trips and translates failures."""

from __future__ import annotations

import http.client
import ssl
from typing import Any
from xml.etree import ElementTree

from pyVmomi import vmodl
from pyVmomi.SoapAdapter import SoapStubAdapter
from pyVmomi.VmomiSupport import GetServiceVersions, versionIdMap

from vnuma.errors import EnvironmentProblem, VCenterUnreachable
from vnuma.vsphere import tls
from vnuma.vsphere.declared import require_result
from vnuma.vsphere.faults import expected
from vnuma.vsphere.http_response import BadAnswer, BoundedResponse
from vnuma.vsphere.vcenter import VCenter

# Firewalls and vCenter's proxy drop idle connections; reconnect before a request would fail.
_KEEP_IDLE_S = 30

_SOAP_TYPES = ("text/xml", "application/soap+xml")


class _Channel(http.client.HTTPSConnection):
    """Gives pyVmomi whole documents, and refuses a proxy's error page.

    pyVmomi would take such a page for an empty answer.
    """

    response_class = BoundedResponse

    def getresponse(self) -> Any:
        response = super().getresponse()
        assert isinstance(response, BoundedResponse)
        kind = response.headers.get_content_type()
        if response.status not in (http.HTTPStatus.OK, http.HTTPStatus.INTERNAL_SERVER_ERROR):
            return response
        if "Content-Type" in response.headers and kind not in _SOAP_TYPES:
            self.close()
            raise BadAnswer(f"HTTP {response.status} with {kind} instead of an answer")
        return response.document()


class Transport(SoapStubAdapter):
    """pyVmomi's stub, with round trips counted and unambiguous faults translated.

    Raises VCenterUnreachable, SessionExpired, PrivilegeMissing, VmNotFound and EnvironmentProblem; other
    faults pass through as pyVmomi raises them. Any other failure after a request was started is
    VCenterUnreachable: an answer that pyVmomi cannot read is not vCenter's.
    """

    def __init__(self, vcenter: VCenter, context: ssl.SSLContext, version: str) -> None:
        stub: Any = super()  # pyVmomi's own code has no types
        stub.__init__(
            host=vcenter.host,
            port=vcenter.port,
            version=version,
            sslContext=context,
            httpConnectionTimeout=vcenter.timeout_s,
            connectionPoolTimeout=_KEEP_IDLE_S,
            httpProxyHost=vcenter.proxy[0] if vcenter.proxy else None,
            httpProxyPort=vcenter.proxy[1] if vcenter.proxy else None,
        )
        self.scheme: Any = _Channel
        self.vcenter = vcenter
        self._context = context
        self.round_trips = 0
        self._naming = False
        self._connection: Any = None
        self._ended = False

    def twin(self) -> Transport:
        """A channel of its own in the same session. A channel serves one thread at a time."""
        twin = Transport(self.vcenter, self._context, self.version)
        twin.cookie = self.cookie
        return twin

    def InvokeMethod(self, mo: Any, info: Any, args: Any, outerStub: Any = None) -> Any:
        """One call, one round trip."""
        if self._ended:
            raise tls.unreachable(self.vcenter, BadAnswer("the reading was given up"))
        self.round_trips += 1
        self._connection = None
        try:
            stub: Any = super()
            return require_result(stub.InvokeMethod(mo, info, args, outerStub), info)
        except (OSError, http.client.HTTPException) as error:
            raise tls.failed(self.vcenter, error) from error
        except vmodl.MethodFault as fault:
            if type(fault) is vmodl.RuntimeFault and not getattr(fault, "msg", None):
                # pyVmomi's result for a fault without a name; vSphere's always have one.
                raise tls.unreachable(self.vcenter, BadAnswer("a fault without a name")) from fault
            if self._naming:
                raise
            translated = expected(fault, self.vcenter.address, self.vcenter.user, self.name_of, on=mo)
            if translated:
                raise translated from fault
            raise
        except Exception as error:
            if self._connection is None:
                raise  # nothing was sent: the mistake is ours
            self._connection.close()
            words = f"an unreadable answer: {type(error).__name__}: {error}"[:200]
            raise tls.unreachable(self.vcenter, BadAnswer(words)) from error
        except BaseException:
            # Ctrl-C during an answer: pyVmomi would leave the connection open.
            if self._connection is not None:
                self._connection.close()
            raise

    def GetConnection(self) -> Any:
        """The connection for one call, stored so that an interrupted call can close it."""
        stub: Any = super()
        self._connection = stub.GetConnection()
        return self._connection

    def end(self) -> None:
        """Refuse further calls: a thread that still works here need not go on."""
        self._ended = True

    def close(self) -> None:
        stub: Any = super()
        stub.DropConnections()

    def name_of(self, entity: Any) -> str:
        """An object's name for messages; its identifier if it has none or it is not readable."""
        self._naming = True
        try:
            return str(entity.name)
        except (vmodl.MethodFault, AttributeError):  # managers have no name
            return f"{type(entity).__name__.rpartition('.')[2]} {entity._GetMoId()}"
        finally:
            self._naming = False


def api_version(vcenter: VCenter, context: ssl.SSLContext) -> str:
    """The newest API version that both sides know, under pyVmomi's name.

    The first contact with a server, before any credential is sent. Raises VCenterUnreachable,
    CertificateRejected, and EnvironmentProblem without a common version.
    """
    served = _served_versions(vcenter, context)
    for version in GetServiceVersions("vim25"):
        if versionIdMap[version] in served:
            return str(version)
    raise EnvironmentProblem(
        f"{vcenter.address} offers no version of the vSphere API that vnuma supports.",
        fix="Use vSphere 6.0 or newer.",
    )


def _served_versions(vcenter: VCenter, context: ssl.SSLContext) -> set[str]:
    connection = tls.channel(vcenter, context)
    try:
        connection.request("GET", "/sdk/vimServiceVersions.xml")
        response = connection.getresponse()
        body = response.read()
        if response.status != http.HTTPStatus.OK:
            raise _no_vsphere(vcenter, f"HTTP {response.status}")
        tree = ElementTree.fromstring(body)
    except (OSError, http.client.HTTPException) as error:
        raise tls.failed(vcenter, error) from error
    except ElementTree.ParseError as error:
        raise _no_vsphere(vcenter, "no list of API versions") from error
    finally:
        connection.close()
    served = {
        text
        for namespace in tree.iter("namespace")
        if namespace.findtext("name") == "urn:vim25"
        for element in namespace.iter("version")
        if (text := element.text)
    }
    if not served:
        raise _no_vsphere(vcenter, "no list of API versions")
    return served


def _no_vsphere(vcenter: VCenter, why: str) -> VCenterUnreachable:
    return VCenterUnreachable(
        f"{vcenter.address} answers, but is neither a vCenter nor an ESXi host ({why}).",
        fix="Check vnuma_vcenter.host and its port.",
    )
