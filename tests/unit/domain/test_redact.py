"""What leaves a site names nobody."""

from __future__ import annotations

import pytest

from vnuma.engine.doctor.first_contact import Redactor


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("sql16 runs on ESX01.corp.local", "<vm> runs on <host>"),
        ("uuid 4211f1c0-3f0e-2f9b-5d6c-0123456789ab", "uuid <uuid>"),
        ("42 11 f1 c0 3f 0e 2f 9b-5d 6c 01 23 45 67 89 ab", "<uuid>"),
        ("from 10.20.30.40 port 1433", "from <address> port 1433"),
        ("fe80:0:0:0:250:56ff:fe9a:1b2c", "<address>"),
        ("00:50:56:9a:1b:2c", "<mac>"),
        ("by CORP\\jdoe or jdoe@corp.local", "by <user> or <user>"),
        ("/vmfs/volumes/5f1/sql16/sql16.vmdk", "<path>"),
        ("numa.vcpu.min = 9, vim.fault.InvalidPowerState", "numa.vcpu.min = 9, vim.fault.InvalidPowerState"),
        ("sql160 is another VM", "sql160 is another VM"),
    ],
)
def test_names_addresses_and_identifiers_are_replaced(text: str, clean: str) -> None:
    """Known names wherever they stand as words; patterns wherever they occur; settings and faults stay."""
    assert Redactor({"sql16": "<vm>", "esx01.corp.local": "<host>"}).text(text) == clean


def test_a_whole_document_is_redacted_keys_included() -> None:
    """Values that are no text stay as they are."""
    clean = Redactor({"sql16": "<vm>"}).all({"sql16": ["on sql16", 3, None, True]})
    assert clean == {"<vm>": ["on <vm>", 3, None, True]}
