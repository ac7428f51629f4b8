"""Driver errors become ours, with the sentence that helps."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import yaml

from vnuma.errors import DriverMissing, SqlUnreachable
from vnuma.sqlserver.client.failures import ServerError, natives, sentence, sqlstate, translate
from vnuma.sqlserver.client.odbc import pyodbc

CASES = yaml.safe_load((Path(__file__).parent / "driver_errors.yml").read_text(encoding="utf-8"))


def _error(name: str) -> pyodbc.Error:
    return pyodbc.Error(CASES[name]["state"], CASES[name]["text"].replace("DIGITS", "7" * 5_000))


@pytest.mark.parametrize("name", CASES)
def test_each_error_becomes_its_class(name: str) -> None:
    """State and message number decide its class; the next step names the permission that lacks."""
    error = translate(_error(name), "sql16:1433")

    assert type(error).__name__ == CASES[name]["error"]
    assert error.what.startswith("sql16:1433") or isinstance(error, DriverMissing)
    assert CASES[name].get("fix", "") in (error.fix or "")


def test_the_number_of_an_answer_is_kept() -> None:
    """Callers decide by message number, never by words; the number survives pickling."""
    error = translate(_error("syntax"), "sql16:1433")

    assert isinstance(error, ServerError)
    assert error.native == 102
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.native, copy.what, copy.fix) == (error.native, error.what, error.fix)


def test_an_unknown_error_says_what_it_likely_was() -> None:
    """FreeTDS has no more to say of a connection that was cut: ours says that, and where to look."""
    error = translate(_error("cut"), "sql16:1433")

    assert str(error) == (
        "sql16:1433: the driver gives no reason; FreeTDS does this when the connection was cut.\n"
        "  Check whether the guest or SQL Server restarted: see SQL Server's error log."
    )


def test_a_number_in_a_message_s_words_is_not_its_number() -> None:
    """As recorded by FreeTDS: message 2627 shows the key's value in parentheses."""
    text = "[23000] [FreeTDS][SQL Server]The duplicate key value is (18456). (2627) (SQLExecDirectW)"

    assert natives(pyodbc.IntegrityError("23000", text)) == (2627,)


def test_a_sentence_has_no_driver_brackets() -> None:
    """What people read is the server's sentence alone, the first one."""
    error = _error("no_such_database")

    assert sentence(error) == 'Cannot open database "x" requested by the login. The login failed'
    assert natives(error) == (4060, 18456)
    assert sqlstate(error) == "28000"


def test_an_error_of_pyodbc_itself_keeps_its_text() -> None:
    """It carries text and state the other way round than a driver's."""
    text = "The SQL contains 1 parameter markers, but 2 were supplied"
    own = pyodbc.ProgrammingError(text, "HY000")

    assert sqlstate(own) == "HY000"
    assert translate(own, "sql16:1433").what == f"sql16:1433: {text}."


def test_freetds_number_for_a_cut_is_a_lost_connection_only_as_its_own_error() -> None:
    """SQL Server's own message of that number comes with another SQLSTATE."""
    cut = pyodbc.Error("01000", "[01000] [FreeTDS][SQL Server]Unexpected EOF from the server (20017) (SQLx)")
    own = pyodbc.Error("42000", "[42000] [FreeTDS][SQL Server]The subscription does not exist. (20017)")

    assert isinstance(translate(cut, "sql16:1433"), SqlUnreachable)
    assert isinstance(translate(own, "sql16:1433"), ServerError)


def test_an_error_without_state_is_still_translated() -> None:
    """A driver's odd error becomes a failure with its text, not a crash of the translation."""
    error = translate(pyodbc.Error("something odd"), "sql16:1433")

    assert isinstance(error, ServerError)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_ticket", ("kinit", "klist", "-k -t KEYTAB")),
        ("expired_ticket", ("expired", "kinit", "-k -t KEYTAB")),
        ("no_spn", ("SPN", "MSSQLSvc", "clocks")),
        ("entra_only", ("Entra ID", "not supported", "kerberos: true")),
        ("no_encryption", ("refuses to encrypt", "Nothing was sent", "encrypt: no")),
    ],
)
def test_what_helps_is_named(name: str, words: tuple[str, ...]) -> None:
    """A ticket has to be renewed, an SPN to be set; each has its own next step."""
    said = str(translate(_error(name), "sql16:1433"))

    assert [word for word in words if word not in said] == []
