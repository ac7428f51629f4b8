"""The exception tree. Every expected failure is a `VnumaError` whose class has the exit code.

A message says what happened and where; `fix` says what to do next. Anything that is not a `VnumaError` is a
bug: the command line names the log file and exits with 1.
"""

from __future__ import annotations

import errno
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar


class VnumaError(Exception):
    """An expected failure.

    `what` is one sentence: what happened, and where. `fix` is the next step for the reader, a
    command where one exists.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def also(self, later: VnumaError) -> None:
        """Add a failure that happened while undoing this one's consequences."""
        self.what = f"{self.what} Then, while undoing it: {later.what}"
        self.fix = "\n  ".join(fix for fix in (self.fix, later.fix) if fix) or None
        self.args = (self.what,)

    def __str__(self) -> str:
        return f"{self.what}\n  {self.fix}" if self.fix else self.what

    def __reduce__(self) -> tuple[object, ...]:
        """Keep `fix` when an action plugin's worker hands the error to its parent process."""
        return (_rebuild, (type(self), self.what, self.fix))


def _rebuild(cls: type[VnumaError], what: str, fix: str | None) -> VnumaError:
    error = cls.__new__(cls)
    VnumaError.__init__(error, what, fix=fix)
    return error


@contextmanager
def undo_at_end(undo: Callable[[], object]) -> Iterator[None]:
    """Run `undo` at the end, whatever happens. An error of the body is raised, with undo's error added."""
    try:
        yield
    except BaseException as first:
        try:
            undo()
        except VnumaError as second:
            if isinstance(first, VnumaError):
                first.also(second)
            else:
                first.add_note(str(second))
        raise
    undo()


def reason_word(kind: type[Exception]) -> str:
    """A class name as a stable identifier for the store: SqlUnreachable -> sql_unreachable."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__.rpartition(".")[2]).lower()


class UsageError(VnumaError):
    """Contradicting, missing or invalid options of the command line."""

    exit_code = 2


class InputError(VnumaError):
    """A study, inventory or other input file is wrong."""

    exit_code = 3


class EnvironmentProblem(VnumaError):
    """Network, login, privilege, driver: something outside the study has to be fixed."""

    exit_code = 4


class VCenterUnreachable(EnvironmentProblem):
    """Nothing answers at the vCenter's address."""


class UnreadableAnswer(EnvironmentProblem):
    """vCenter answered in a form that vnuma does not know. A retry would get the same answer."""


class CertificateRejected(EnvironmentProblem):
    """The server did not prove its identity: an untrusted certificate, or none. Nothing was sent."""


class LoginRefused(EnvironmentProblem):
    """vCenter or SQL Server does not accept the user or the password."""


class AccountRefused(LoginRefused):
    """vCenter or SQL Server does not accept the account: each further attempt may lock it."""


class PrivilegeMissing(EnvironmentProblem):
    """The account may not do what the study needs."""


class VmNotFound(EnvironmentProblem):
    """No VM has that name or inventory path, or several have that name."""


class DriverMissing(EnvironmentProblem):
    """No ODBC driver for SQL Server could be loaded."""


class SqlUnreachable(EnvironmentProblem):
    """SQL Server does not answer (SQLSTATE 08*, HYT*): after a boot this is waited for."""


class MachineUnreachable(EnvironmentProblem):
    """Ansible's connection to a Linux machine cannot be made, or broke."""


class SqlFailed(EnvironmentProblem):
    """SQL Server answered with an error."""


class PreflightBlocked(VnumaError):
    """Something found before the first change would spoil or break the study."""

    exit_code = 5


class ArmImpossible(PreflightBlocked):
    """This VM on this host cannot have an arm's shape. `rule` is the design rule that says so."""

    rule = ""

    def __init__(self, rule: str, what: str, *, fix: str | None = None) -> None:
        super().__init__(what, fix=fix)
        self.rule = rule


class CellsMissing(VnumaError):
    """The run finished or stopped with cells missing."""

    exit_code = 6


class AttemptFailed(VnumaError):
    """One attempt at a cell ended without a result.

    `reason` is a stable identifier for stores and scripts, by default the class's name in words; `outcome` is
    `failed` (it could not be measured) or `invalid` (it was, but not with the arm's topology).
    """

    exit_code = 6
    reason: ClassVar[str] = "failed"
    outcome: ClassVar[str] = "failed"

    def __init_subclass__(cls) -> None:
        cls.reason = vars(cls).get("reason", reason_word(cls))


class ShutdownTimeout(AttemptFailed):
    """The guest did not shut down in time; the VM was left running."""


class ReconfigureRefused(AttemptFailed):
    """vSphere refused the change."""


class PowerFailed(AttemptFailed):
    """vSphere could not power the VM on or off."""


class QuestionPending(AttemptFailed):
    """The VM is blocked until somebody answers vSphere's question."""


class WaitTimeout(AttemptFailed):
    """vSphere did not reach the expected state in time; `seen` is the last state."""

    reason = "vsphere_timeout"

    def __init__(self, what: str, *, fix: str | None = None, seen: Mapping[str, Any] | None = None) -> None:
        super().__init__(what, fix=fix)
        self.seen: Mapping[str, Any] = dict(seen or {})


class ReadBackDiffers(AttemptFailed):
    """vSphere accepted the change, but another value reads back."""


class ToolsTimeout(AttemptFailed):
    """VMware Tools did not come up in time."""


class SqlTimeout(AttemptFailed):
    """SQL Server did not become ready in time."""


class DatabaseMissing(AttemptFailed):
    """SQL Server is up, and a database that a cell needs does not exist."""


class ConnectionDropped(AttemptFailed):
    """The connection broke during a measurement."""


class MeasurementFailed(AttemptFailed):
    """An iteration gave no trustworthy figure. `execution` is what is known of it, for its sample."""

    execution: Mapping[str, object] | None = None


class NoFigure(MeasurementFailed):
    """A program gave no figure for a reason that may be the study's: it may run or read it wrongly."""


class StudySetupFailed(AttemptFailed):
    """A program that prepares the whole study failed: it would fail again before every cell."""


class HostChanged(AttemptFailed):
    """The VM runs on another ESXi host than at the start of the run."""

    outcome = "invalid"


class HostNotReady(AttemptFailed):
    """The VM's host would not power it on again, so it was not shut down."""


class TopologyMismatch(AttemptFailed):
    """The guest does not see the topology that the arm needs."""

    outcome = "invalid"


class WrongServer(AttemptFailed):
    """The SQL Server that answers does not run inside the VM, or this is not proven. Nothing was written."""

    outcome = "invalid"


class PlacementNotProven(AttemptFailed):
    """The positive control's tables are not where they were placed, or the guest has only one node."""

    outcome = "invalid"


class NotAtBaseline(VnumaError):
    """A VM is not as it was before the study, and its lease is kept.

    `bug` is an unexpected exception that prevented the restore: it is to be reported as a bug too.
    """

    exit_code = 7
    bug: Exception | None = None


class RestoreConflict(NotAtBaseline):
    """Somebody else changed the VM since the study began: nothing was overwritten."""


class VmHeld(VnumaError):
    """Another run holds the VM's lease."""

    exit_code = 8


class LeaseLost(VmHeld):
    """This process's fencing token is no longer the VM's current one: it must stop writing."""


class StoreError(VnumaError):
    """The store cannot be opened, read or written."""

    exit_code = 9


class StoreBusy(StoreError):
    """Another process kept the store locked: unlike a full store, others can write to it."""


class StoreAway(StoreError):
    """The store's server stopped, restarted, took no connection or lost it; the transaction is undone."""


class StoreUnwritable(StoreError):
    """Disk or memory is full, or the audit log cannot be written: nothing is stored until a person acts."""


class ThresholdMet(VnumaError):
    """A `--fail-if` or `--fail-on` condition is true."""

    exit_code = 10


class AuditAltered(VnumaError):
    """The audit log was altered, or lacks lines."""

    exit_code = 10


class Interrupted(VnumaError):
    """The user stopped the run; the VMs were restored."""

    exit_code = 130


_NOT_STORED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.ENOTDIR)
_TO_WRITE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Free some space: df -h {folder}"),
    errno.EFBIG: "Raise the limit on the size of files: ulimit -f",
    errno.EROFS: "Mount that file system so that it can be written, or keep vnuma's files elsewhere "
    "(VNUMA_HOME=FOLDER): findmnt --target {folder}",
    errno.EIO: "Check the disk: dmesg | tail",
    errno.ENOTDIR: "A part of that path is a file. Correct the path, or VNUMA_HOME if it begins with it.",
}


def write_fix(error: OSError, folder: Path | str = ".") -> str:
    """What to do about a file that could not be written, by the system's reason.

    `folder` is its place, unless the error itself names a file.
    """
    if isinstance(error.filename, str | Path):
        folder = Path(error.filename).absolute().parent
    fix = _TO_WRITE.get(error.errno or 0, "Check owner and mode: ls -la {folder}")
    return fix.format(folder=shlex.quote(str(folder)))


def is_os_failure(error: OSError) -> bool:
    """Whether the machine is at fault rather than vnuma: full disk, no permission, a file for a folder."""
    return error.errno in _NOT_STORED or (error.errno in _FORBIDDEN and bool(error.filename))


def from_os_error(error: OSError) -> VnumaError:
    """StoreError if nothing can be stored, else EnvironmentProblem, for a refusal by the operating system."""
    where = f": {error.filename}" if error.filename else ""
    what = f"The operating system refused a request ({error.strerror or error}{where})."
    if error.errno in _NOT_STORED:
        return StoreError(what, fix=write_fix(error))
    if error.errno in _FORBIDDEN:
        return EnvironmentProblem(what, fix=write_fix(error))
    return EnvironmentProblem(what, fix="Look at this machine's limits and memory: ulimit -a; free -m")


def adding(*packages: str) -> str:
    """How to add packages to this Python environment."""
    names = shlex.join(packages)
    return f"{sys.executable} -m pip install {names} (installed by pipx: pipx inject vnuma {names})"


def require_packages(what: str, *packages: str) -> None:
    """Raise EnvironmentProblem without the optional packages, named as on PyPI, that `what` needs."""
    missing = [name for name in packages if find_spec(name.replace("-", "_")) is None]
    if missing:
        raise EnvironmentProblem(
            f"{what} needs packages that this Python environment lacks: {', '.join(missing)}.",
            fix=adding(*missing),
        )


@contextmanager
def reading(path: Path, kind: str = "", *, fix: str = "Check the name.") -> Iterator[None]:
    """Raise InputError where the system does not let `path` be read; `kind` says what it is."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError(f"{kind} {path} is not a file but a pipe or device.".lstrip(), fix=fix)
        yield
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{kind} {path} cannot be read ({why}).".lstrip(), fix=fix) from error


def text_of(path: Path, kind: str = "", *, fix: str = "Check the name.") -> str:
    """The text of a file. Raises InputError as `reading`, and for what is not UTF-8."""
    try:
        with reading(path, kind, fix=fix):
            return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{kind} {path} is not UTF-8 text.".lstrip(), fix="Save it as UTF-8.") from error


@contextmanager
def writing(path: Path, what: str, *, fix: str = "Name another file.") -> Iterator[None]:
    """Raise InputError where the system does not let `what`, as "The report", be written to `path`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{what} cannot be written to {path} ({error.strerror}).", fix=fix) from error
