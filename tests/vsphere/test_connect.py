"""Logging in and out, and what a session knows."""

from __future__ import annotations

import base64
import gc
import traceback
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.connect_proxy import connect_proxy
from tests.support.lab import LabHandle
from tests.vsphere.support import LabFactory, saml, vcenter_of
from vnuma.errors import (
    AccountRefused,
    CertificateRejected,
    InputError,
    LoginRefused,
    VCenterUnreachable,
    VmNotFound,
)
from vnuma.logins import Logins
from vnuma.vsphere.connect import Session, SessionExpired, agreed_version, connect, log_out
from vnuma.vsphere.faults import UnexpectedFault
from vnuma.vsphere.read import find_vm, read_vm


def test_a_session_knows_its_vcenter(session: Session) -> None:
    """After login it is known which vCenter this is, of which release and API."""
    assert session.about.is_vcenter
    assert session.about.uuid
    assert session.about.api_version == "8.0.3.0"
    assert session.about.release.key >= (6, 0)


def test_a_wrong_password_is_refused_without_naming_it(shared_lab: LabHandle) -> None:
    """A refused login names host and user; the password is in no part of the error."""
    secret = uuid4().hex
    with pytest.raises(LoginRefused) as caught:
        connect(vcenter_of(shared_lab, password=secret))
    assert shared_lab.vcenter.user in caught.value.what
    assert secret not in "".join(traceback.format_exception(caught.value))


def test_a_version_agreed_before_serves_later_connections_and_checks_the_certificate_all_the_same(
    shared_lab: LabHandle,
) -> None:
    """The same session comes of it; a server that is not trusted gets no password either."""
    known = vcenter_of(shared_lab)
    agreed = replace(known, api_version=agreed_version(known))

    with connect(known) as asked, connect(agreed) as told:
        assert told.transport.version == asked.transport.version
        assert told.about == asked.about
    with pytest.raises(CertificateRejected):
        connect(replace(agreed, ca_file=None))


def test_a_closed_session_is_logged_out(shared_lab: LabHandle) -> None:
    """After the context the login is gone: the server refuses what follows."""
    with connect(vcenter_of(shared_lab)) as session:
        pass
    with pytest.raises(SessionExpired):
        find_vm(session, "sql16")
    session.transport.close()


def test_a_lost_connection_is_unreachable(lab: LabFactory) -> None:
    """A vCenter that goes away in the middle of a session is unreachable, not a bug."""
    own = lab()
    with connect(vcenter_of(own)) as session:
        ref = find_vm(session, "sql16")
        own.stop()
        with pytest.raises(VCenterUnreachable):
            read_vm(session, ref)


def test_an_object_that_is_gone_is_named(session: Session) -> None:
    """A reference that vCenter does not know becomes a sentence with its identifier."""
    with pytest.raises(VmNotFound):
        read_vm(session, session.vm("vm-0"))


def test_round_trips_are_counted(session: Session) -> None:
    """Every call counts once, so that the cost of a step is known."""
    before = session.round_trips
    session.read(session.content.rootFolder, ("name",))
    session.read(session.content.rootFolder, ("name",))
    assert session.round_trips - before == 2


def test_a_fault_that_nobody_expected_leaves_the_session_in_words(lab: LabFactory) -> None:
    """Callers know one tree of errors: a raw fault would end the work on other VMs too."""
    off = lab({"vms": [{"name": "sql16", "power": "off"}]})
    with (
        pytest.raises(UnexpectedFault),
        connect(vcenter_of(off)) as opened,
    ):
        find_vm(opened, "sql16").ShutdownGuest()


def test_everything_goes_through_the_proxy_and_the_certificate_stays_vcenters(shared_lab: LabHandle) -> None:
    """Agreement, login and reads are tunnelled; a CA that did not sign vCenter's certificate is refused."""
    end = shared_lab.vcenter
    with connect_proxy() as proxy:
        host, _, port = proxy.address.rpartition(":")
        through = vcenter_of(shared_lab, proxy=(host, int(port)))
        with connect(through) as session:
            assert read_vm(session, find_vm(session, "sql16")).name == "sql16"
        assert set(proxy.asked) == {f"{end.host}:{end.port}"}
        with pytest.raises(CertificateRejected):
            connect(replace(through, ca_file=None))


@pytest.mark.parametrize("status", [403, 407])
def test_a_proxy_that_refuses_is_named(shared_lab: LabHandle, status: int) -> None:
    """Not vCenter is to blame: the message has both addresses, and what the proxy said."""
    with connect_proxy(refuse=status) as proxy:
        host, _, port = proxy.address.rpartition(":")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # http.client of 3.11.2 leaves the refusal open
            with pytest.raises(VCenterUnreachable) as caught:
                connect(vcenter_of(shared_lab, proxy=(host, int(port))))
            what = caught.value.what
            del caught
            gc.collect()
    assert proxy.address in what
    assert shared_lab.vcenter.host in what
    assert str(status) in what


@pytest.mark.parametrize("encoded", [False, True], ids=["XML", "base64"])
def test_a_token_logs_in_instead_of_a_password(shared_lab: LabHandle, encoded: bool) -> None:
    """The session is its subject's, the token shows nowhere, and no later request carries it."""
    text = saml(shared_lab)
    given = base64.b64encode(text.encode()).decode() if encoded else text
    by_token = vcenter_of(shared_lab, user="", password="", token=given)

    with connect(by_token) as session:
        assert find_vm(session, "sql16")
        assert session.content.sessionManager.currentSession.userName == shared_lab.vcenter.user
        assert session.transport.samlToken is None
    assert given not in repr(by_token)
    assert given not in str(by_token.without_secrets())


@pytest.mark.parametrize("wrong", [{"minutes": -1}, {"key": "another"}], ids=["expired", "of another issuer"])
def test_a_token_that_vcenter_does_not_take_is_refused(shared_lab: LabHandle, wrong: dict[str, Any]) -> None:
    """It says that the token is to blame, and does not repeat it."""
    text = saml(shared_lab, **wrong)

    with pytest.raises(AccountRefused) as caught:
        connect(vcenter_of(shared_lab, user="", password="", token=text))

    assert text not in str(caught.value)
    assert "locked" not in str(caught.value)


def test_a_refused_token_does_not_keep_another_one_out(shared_lab: LabHandle, tmp_path: Path) -> None:
    """Sessions and refusals that a run shares are each token's own; none of their files has a token."""
    texts = [saml(shared_lab, minutes=-1), saml(shared_lab)]
    logins = Logins(tmp_path)
    expired, good = (
        replace(vcenter_of(shared_lab, user="", password="", token=text), logins=logins) for text in texts
    )
    with pytest.raises(AccountRefused):
        connect(expired)

    with connect(good) as session:
        assert session.content.sessionManager.currentSession.userName == shared_lab.vcenter.user

    log_out(logins)
    with pytest.raises(AccountRefused):
        connect(expired)
    kept = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("*.json"))
    assert [text for text in texts if text in kept + expired.account + good.account] == []


@pytest.mark.parametrize(
    "given",
    ["no token", "PGE+", "<a/>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "holder-of-key"],
)
def test_what_is_no_bearer_token_is_not_sent(shared_lab: LabHandle, given: str) -> None:
    """Not a token, not a bearer token, or XML that would expand: refused before any login."""
    token = saml(shared_lab, method=given) if given == "holder-of-key" else given
    before = shared_lab.logins()

    with pytest.raises(InputError):
        connect(vcenter_of(shared_lab, user="", password="", token=token))

    assert shared_lab.logins() == before


def test_a_given_session_is_used_and_left_open(shared_lab: LabHandle) -> None:
    """What somebody else has opened, they close; nothing logs in."""
    with connect(vcenter_of(shared_lab)) as opened:
        cookie = str(opened.transport.cookie).partition("=")[2].partition(";")[0].strip('"')
        given = vcenter_of(shared_lab, user="", password="", session=cookie)
        with connect(given) as joined:
            assert joined.key == opened.key
            assert find_vm(joined, "sql16")
        assert cookie not in repr(given)
        assert find_vm(opened, "sql16")
    with pytest.raises(LoginRefused) as caught:
        connect(given)
    assert cookie not in str(caught.value)
