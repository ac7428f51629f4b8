"""Which of a ticket's thumbprints a host is held to."""

from __future__ import annotations

from pyVmomi import vim

from vnuma.vsphere.tls import thumbprint_of

SHA1, SHA256 = ":".join(["AB"] * 20), ":".join(["CD"] * 32)
Ticket = vim.SessionManager.GenericServiceTicket


def test_the_strongest_is_taken_as_hexadecimal_digits() -> None:
    """vCenter writes them with colons, in capitals."""
    entry = vim.vm.CertThumbprint(thumbprint=SHA256, hashAlgorithm="sha256")

    assert thumbprint_of(Ticket(sslThumbprint=SHA1, certThumbprintList=[entry])) == "cd" * 32
    assert thumbprint_of(Ticket(sslThumbprint=SHA1)) == "ab" * 20


def test_without_one_that_is_known_there_is_none() -> None:
    """The host must then be authenticated by its certificate's chain."""
    assert thumbprint_of(Ticket()) is None
    assert thumbprint_of(Ticket(sslThumbprint="AB:CD")) is None
