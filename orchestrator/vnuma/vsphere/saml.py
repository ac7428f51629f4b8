"""Check a site's SAML token before it is sent."""

from __future__ import annotations

import base64
import binascii
from xml.etree import ElementTree

from vnuma.errors import InputError

_ASSERTION = "{urn:oasis:names:tc:SAML:2.0:assertion}Assertion"
_CONFIRMATION = ".//{urn:oasis:names:tc:SAML:2.0:assertion}SubjectConfirmation"
_HOLDER_OF_KEY = "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"


def bearer_token(given: str, address: str) -> str:
    """The assertion as XML, byte for byte since it is signed, from XML or from base64 on one line.

    Raises InputError for anything else, and for a token that requires a private key.
    """
    text = given.strip()
    if not text.startswith("<"):
        try:
            text = base64.b64decode(text, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            text = ""
    try:
        root = ElementTree.fromstring(text) if "<!" not in text else None
    except ElementTree.ParseError:
        root = None
    if root is None or root.tag != _ASSERTION:
        raise InputError(
            f"vcenter.token of {address} is not a SAML 2.0 assertion.",
            fix="Give only the Assertion: as XML on one line, or as base64 of it on one line.",
        )
    if any(one.get("Method") == _HOLDER_OF_KEY for one in root.iterfind(_CONFIRMATION)):
        raise InputError(
            f"vcenter.token of {address} is a holder-of-key token: each login must be signed with its "
            "key, which vnuma does not support.",
            fix="Get a bearer token, or open a session and give its cookie as vcenter.session.",
        )
    return text
