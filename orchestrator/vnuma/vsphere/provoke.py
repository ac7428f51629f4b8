"""A vCenter's fault texts for harmless invalid requests, for recordings only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyVmomi import vmodl

from vnuma.errors import VnumaError
from vnuma.vsphere.faults import fault_name
from vnuma.vsphere.query import Query, ask, starting
from vnuma.vsphere.session import Session

_NOBODY = "vm-0"


def provoked_faults(session: Session) -> list[dict[str, Any]]:
    """Request missing objects. Nothing is changed, and no login is tried."""
    collector = session.content.propertyCollector
    absent, root = session.vm(_NOBODY), session.content.rootFolder
    unknown = ask({type(root): ("nosuchproperty",)}, starting(root))
    questions: dict[str, Callable[[], object]] = {
        "a VM that is not there": lambda: session.read(absent, ("name",)),
        "a property that does not exist": lambda: session.retrieve(unknown),
        "an update version that was never given": lambda: collector.WaitForUpdatesEx(
            version="0", options=Query.WaitOptions(maxWaitSeconds=0)
        ),
    }
    return [{"asked": asked, **_answer(question)} for asked, question in questions.items()]


def _answer(question: Callable[[], object]) -> dict[str, Any]:
    try:
        question()
    except VnumaError as error:
        fault = error.__cause__
        if isinstance(fault, vmodl.MethodFault):
            return _fault(fault)
        return {"error": type(error).__name__}
    except vmodl.MethodFault as fault:
        return _fault(fault)
    return {"fault": None}


def _fault(fault: vmodl.MethodFault) -> dict[str, Any]:
    return {"fault": fault_name(fault), "message": str(getattr(fault, "msg", None) or "")}
