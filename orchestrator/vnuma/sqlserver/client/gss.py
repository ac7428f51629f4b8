"""The Kerberos library's reason for a failed login, which drivers hide or word differently.

Uses the drivers' own library, so ticket cache, configuration and KDC are the same. RFC 2744 has the calls.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from vnuma.errors import EnvironmentProblem

_INITIATE = 1
_MECHANISM_CODE = 2
_OF_ANY_LENGTH = 0xFFFFFFFF
_ERROR_CLASSES = 0xFFFF0000
_NO_CREDENTIALS = 7 << 16
_EXPIRED = 11 << 16
_TABLE_START = -1765328384
"""Kerberos' errors start here: https://web.mit.edu/kerberos/krb5-latest/doc/appdev/refs/macros/index.html"""

NO_KDC = 156
"""KRB5_KDC_UNREACH, counted from there."""


class _Oid(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint32), ("elements", ctypes.c_char_p))


class _Buffer(ctypes.Structure):
    _fields_ = (("length", ctypes.c_size_t), ("value", ctypes.c_void_p))


_KERBEROS = _Oid(9, b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02")
_PRINCIPAL_NAME = _Oid(10, b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01")


class _Element(ctypes.Structure):
    _fields_ = (("key", ctypes.c_char_p), ("value", ctypes.c_char_p))


class _Store(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint32), ("elements", ctypes.POINTER(_Element)))


class _Oids(ctypes.Structure):
    _fields_ = (("count", ctypes.c_size_t), ("elements", ctypes.POINTER(_Oid)))


@dataclass(frozen=True)
class Said:
    """The library's answer: its status, the error's number in Kerberos' table, and a text."""

    status: int
    code: int
    words: str

    @property
    def no_credentials(self) -> bool:
        """Whether there is no ticket at all."""
        return self.status == _NO_CREDENTIALS

    @property
    def expired(self) -> bool:
        """Whether there is a ticket, whose time is over."""
        return self.status == _EXPIRED or self.code == 32


@cache
def _library() -> ctypes.CDLL | None:
    for name in ("libgssapi_krb5.so.2", ctypes.util.find_library("gssapi_krb5")):
        if name:
            with suppress(OSError):
                return ctypes.CDLL(name)
    return None


def ask_for_ticket(spn: str) -> Said | None:
    """Ask the KDC for a service ticket, as a driver does. None on success, or without a library."""
    library = _library()
    if library is None:
        return None
    minor, context, token = ctypes.c_uint32(), ctypes.c_void_p(), _Buffer()
    status, name = _imported(library, minor, spn)
    if not status & _ERROR_CLASSES:
        status = library.gss_init_sec_context(
            *(ctypes.byref(minor), None, ctypes.byref(context), name, ctypes.byref(_KERBEROS)),
            *(ctypes.c_uint32(0), ctypes.c_uint32(0), None, None, None, ctypes.byref(token), None, None),
        )
    said = _call_error(library, status, minor)
    spare = ctypes.c_uint32()
    library.gss_release_buffer(ctypes.byref(spare), ctypes.byref(token))
    library.gss_delete_sec_context(ctypes.byref(spare), ctypes.byref(context), None)
    library.gss_release_name(ctypes.byref(spare), ctypes.byref(name))
    return said


def get_ticket(keytab: str, principal: str, cache: str) -> Said | int:
    """Get an account's ticket by a keytab, into a new cache. Returns how many seconds it lasts.

    Without a `principal` it is the keytab's first account. Raises EnvironmentProblem without MIT's library,
    which has the call since 1.11: https://web.mit.edu/kerberos/krb5-latest/doc/appdev/gssapi.html
    """
    library = _library()
    if library is None or not hasattr(library, "gss_acquire_cred_from"):
        raise EnvironmentProblem(
            "vnuma_sql.keytab needs MIT's Kerberos library, libgssapi_krb5 1.11 or later, which is not "
            "installed here.",
            fix="Debian and Ubuntu: apt install libgssapi-krb5-2. Fedora, RHEL: dnf install krb5-libs.",
        )
    minor, left, name = ctypes.c_uint32(), ctypes.c_uint32(), ctypes.c_void_p()
    status, credentials = 0, ctypes.c_void_p()
    if principal:
        status, name = _imported(library, minor, principal)
    places = (_Element * 2)(_Element(b"client_keytab", keytab.encode()), _Element(b"ccache", cache.encode()))
    store, wanted = _Store(2, places), _Oids(1, ctypes.pointer(_KERBEROS))
    if not status & _ERROR_CLASSES:
        status = library.gss_acquire_cred_from(
            *(ctypes.byref(minor), name, ctypes.c_uint32(_OF_ANY_LENGTH), ctypes.byref(wanted), _INITIATE),
            *(ctypes.byref(store), ctypes.byref(credentials), None, ctypes.byref(left)),
        )
    said = _call_error(library, status, minor)
    spare = ctypes.c_uint32()
    library.gss_release_cred(ctypes.byref(spare), ctypes.byref(credentials))
    library.gss_release_name(ctypes.byref(spare), ctypes.byref(name))
    return said or left.value


def ticket_left_s() -> int:
    """How many seconds the user's own ticket lasts; 0 without one that is valid."""
    library = _library()
    if library is None:
        return 0
    minor, left, credentials = ctypes.c_uint32(), ctypes.c_uint32(), ctypes.c_void_p()
    wanted = _Oids(1, ctypes.pointer(_KERBEROS))
    status = library.gss_acquire_cred(
        *(ctypes.byref(minor), None, ctypes.c_uint32(0), ctypes.byref(wanted), _INITIATE),
        *(ctypes.byref(credentials), None, ctypes.byref(left)),
    )
    library.gss_release_cred(ctypes.byref(minor), ctypes.byref(credentials))
    return 0 if status & _ERROR_CLASSES else left.value


def use_cache(cache: str | None) -> None:
    """Let logins of this thread, and of no other, use a ticket cache; None: the environment's."""
    library = _library()
    if library is not None and hasattr(library, "gss_krb5_ccache_name"):
        spare = ctypes.c_uint32()
        library.gss_krb5_ccache_name(ctypes.byref(spare), cache.encode() if cache else None, None)


def _imported(library: ctypes.CDLL, minor: ctypes.c_uint32, principal: str) -> tuple[int, ctypes.c_void_p]:
    """The status, and the principal's name as the library has it."""
    name, text = ctypes.c_void_p(), ctypes.create_string_buffer(principal.encode())
    given = _Buffer(len(principal.encode()), ctypes.addressof(text))
    status: int = library.gss_import_name(
        ctypes.byref(minor), ctypes.byref(given), ctypes.byref(_PRINCIPAL_NAME), ctypes.byref(name)
    )
    return status, name


def _call_error(library: ctypes.CDLL, status: int, minor: ctypes.c_uint32) -> Said | None:
    """The error of a call; None where it succeeded."""
    if not status & _ERROR_CLASSES:
        return None
    code = ctypes.c_int32(minor.value).value - _TABLE_START
    return Said(status & _ERROR_CLASSES, code, _words(library, minor.value))


def _words(library: ctypes.CDLL, code: int) -> str:
    spare, more, text = ctypes.c_uint32(), ctypes.c_uint32(), _Buffer()
    library.gss_display_status(
        *(ctypes.byref(spare), ctypes.c_uint32(code), _MECHANISM_CODE, ctypes.byref(_KERBEROS)),
        *(ctypes.byref(more), ctypes.byref(text)),
    )
    words = ctypes.string_at(text.value, text.length).decode(errors="replace") if text.value else ""
    library.gss_release_buffer(ctypes.byref(spare), ctypes.byref(text))
    return " ".join(words.split()).rstrip(".")
