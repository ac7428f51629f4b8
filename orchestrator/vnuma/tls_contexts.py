"""TLS contexts: one that checks certificates, and one that does not."""

from __future__ import annotations

import ssl


def checking(cafile: str | None, capath: str | None = None) -> ssl.SSLContext:
    """Checks signature, dates and name; by this system's CAs where none is given. Raises OSError.

    Not the optional extensions that Python 3.13 checks too: certificates of vCenter's own CA may lack them.
    """
    context = ssl.create_default_context(cafile=cafile, capath=capath)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def unchecked() -> ssl.SSLContext:
    """Checks nothing: to read a certificate that is judged before anything is sent, and for servers that the
    user trusts explicitly.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
