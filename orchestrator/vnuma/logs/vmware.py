"""vmware.log: the vNUMA nodes of a power-on, and their physical nodes.

Two forms are known. Up to ESXi 6.0 a line for each vCPU, `numa: VCPU 3: VPD 0 (PPD 0)`, and a summary; from
6.5 on `numaHost: 16 VCPUs 2 VPDs 2 PPDs` and then `numaHost: VCPU 3 VPD 0 PPD 0`, later with a NodeMask. VPD:
virtual proximity domain, a vNUMA node. PPD: physical proximity domain, a NUMA client.

A text may have several power-ons, of one VM or of several: another begins with a log's first line, and with a
setting that is said again after a layout, or that every VM has.

DICT lines are the configuration at the power-on; excerpts also have them without quotes, or as lines of the
.vmx. A DICT line takes precedence over a .vmx line, which may be a user's text. In it, ESXi's own sizing
(`numa.autosize.*`) is that of the previous power-on; only `ConfigDB: Setting` lines show the new values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

_TIME = re.compile(r"^\W{0,8}(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d))", re.ASCII)
_DICT = re.compile(r'\bDICT\s+([\w.:\-]+)\s*=\s*"([^"]*)"', re.ASCII)
_UNQUOTED = re.compile(r'\bDICT\s+([\w.:\-]+)\s*=\s*([^"\s][^"]{0,400})$', re.ASCII)
_VMX = re.compile(r'^\s*([A-Za-z][\w.:\-]*)\s*=\s*"([^"]*)"\s*$', re.ASCII)
_SETTING = re.compile(r'\bConfigDB: Setting ([\w.:\-]+)\s*=\s*"([^"]*)"', re.ASCII)
_REMOVED = re.compile(r'\bConfigDB: Unsetting "?([\w.:\-]+)', re.ASCII)
_ONCE = frozenset({"displayname", "memsize", "numvcpus"})
_BEGIN = re.compile(r"\bLog for VMware ESX\b")
_NUMA = re.compile(r"(?<![\w.])numa(?:Host)?(?::\s*|\s+)(?=\S)", re.ASCII)
_N = r"(?<![\d.-])(\d{1,9})(?!\d)"
_VCPU = re.compile(rf"VCPU\s+{_N}\s*:?\s+VPD\s+{_N}\s+\(?PPD\s+{_N}", re.ASCII)
_HEADER = re.compile(rf"{_N}\s+VCPUs?\s+{_N}\s+VPDs?\s+{_N}\s+PPDs?", re.ASCII)
_SUMMARY = re.compile(
    rf"{_N}\s+virtual nodes?,\s*{_N}\s+virtual sockets?,\s*{_N}\s+physical domains?", re.ASCII
)
_FIGURES = {
    "suggested_cores_per_socket": re.compile(
        rf"cpuid\.coresPerSocket\s*=\s*{_N}\s+is suggested", re.ASCII | re.I
    ),
    "cores_per_socket": re.compile(rf"(?<![\w.])coresPerSocket\s*=\s*{_N},?\s+maxVcpusPerVPD\b", re.ASCII),
    "max_vcpus_per_vpd": re.compile(rf"(?:maxVcpusPerVPD|maxPerVirtualNode)\s*=\s*{_N}", re.ASCII),
    "consolidation": re.compile(rf"\bconsolidation\s*=\s*{_N}", re.ASCII),
    "prefer_ht": re.compile(rf"\bpreferHT\s*=\s*{_N}", re.ASCII),
    "mem_slices": re.compile(rf"{_N}\s+mem slices", re.ASCII),
    "resume_vpd": re.compile(rf"Resuming from checkpoint using VPD\s*=\s*{_N}", re.ASCII),
}
_VCPUS = re.compile(rf"\bNumVCPUs\s+{_N}", re.ASCII)
_FLAGS = {
    "forced_uma": re.compile(r"\bhot[ -]?(?:add|plug)\b.{0,80}\bforcing UMA\b", re.I),
    "overridden": re.compile(r"\bmanual override\b|\bsizing request\b.{0,40}\bignored\b", re.I),
    "invalid_cookie": re.compile(r"Invalid NUMA cookie", re.I),
}

_MOST_LINES = 2000
"""Most raw lines kept: more than a VM of the largest size has."""


@dataclass(frozen=True)
class VmwareLog:
    """A vmware.log's content on vNUMA; None or empty where missing.

    `began` is the first line's time, `numa_at` that of the last description of the layout. Sizes are vCPUs by
    node in the order of their numbers, and present only if they match the totals, of which `has_total` says
    whether there are any. `settings` are the DICT lines, `written` what ESXi stored; keys in lower case.
    `lines` are those on vNUMA, unchanged.
    """

    began: datetime | None = None
    numa_at: datetime | None = None
    vcpus: int | None = None
    vpds: int | None = None
    ppds: int | None = None
    vpd_sizes: tuple[int, ...] = ()
    ppd_sizes: tuple[int, ...] = ()
    has_total: bool = False
    virtual_sockets: int | None = None
    suggested_cores_per_socket: int | None = None
    cores_per_socket: int | None = None
    max_vcpus_per_vpd: int | None = None
    consolidation: int | None = None
    prefer_ht: int | None = None
    mem_slices: int | None = None
    resume_vpd: int | None = None
    forced_uma: bool = False
    overridden: bool = False
    """ESXi says that a manual setting overrides its own sizing."""
    invalid_cookie: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def hot_add(self) -> bool:
        """CPU hot-add, from the configuration or because it made the VM uniform."""
        return self.forced_uma or self.settings.get("vcpu.hotadd", "").upper() == "TRUE"

    @property
    def tells_layout(self) -> bool:
        """Whether it has the number of vNUMA nodes."""
        return self.vpds is not None


def read_cookie(text: str) -> dict[str, int | None] | None:
    """The parts of `numa.autosize.cookie`, as published values suggest; None for an unknown form.

    It is vCPUs x 10000, cores per socket x 10, and a version.
    """
    if not re.fullmatch(r"\d{5,9}", text.strip(), re.ASCII):
        return None
    vcpus, rest = divmod(int(text), 10_000)
    cores, version = divmod(rest, 10)
    return {"vcpus": vcpus, "cores_per_socket": cores or None, "version": version}


@dataclass
class _Account:
    """One description of the layout; a log has several when the VM was reset or moved."""

    header: tuple[int, int, int] | None = None
    summary: tuple[int, int, int] | None = None
    placed: dict[int, tuple[int, int]] = field(default_factory=dict)
    at: datetime | None = None
    figures: dict[str, Any] = field(default_factory=dict)
    """By the names of `_FIGURES`, as integers, and of `_FLAGS`: True."""


@dataclass
class _Reader:
    """What has been read so far of one power-on."""

    account: _Account = field(default_factory=_Account)
    began: datetime | None = None
    vcpus: int | None = None
    figures: dict[str, Any] = field(default_factory=dict)
    """Those since the account's last line: of the next account, if there is one."""
    settings: dict[str, str] = field(default_factory=dict)
    vmx: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def is_over(self, line: str) -> bool:
        """Whether this line is of another power-on: a log's first, or a setting said again.

        Sections of one log may repeat a setting before its layout, but not one that every VM has.
        """
        if _BEGIN.search(line):
            return bool(self.lines or self.settings)
        for entry, known in ((_setting(line), self.settings), (_VMX.match(line), self.vmx)):
            if entry:
                key = entry[1].lower()
                return key in known and (key in _ONCE or bool(self.lines))
        return False

    def take(self, line: str) -> None:
        """Take one line of the log."""
        self.began = self.began or _time(line)
        entry = _setting(line)
        if entry:
            self.settings[entry[1].lower()] = entry[2].rstrip()
            return
        entry = _VMX.match(line)
        if entry:
            self.vmx[entry[1].lower()] = entry[2]
            return
        stored, removed = _SETTING.search(line), _REMOVED.search(line)
        if stored:
            self.written[stored[1].lower()] = stored[2]
        if removed:
            self.written.pop(removed[1].lower(), None)
        found = _NUMA.search(line)
        if found:
            self.lines.append(line.strip())
            self._take_numa(line[found.end() :], line)
            return
        count = _VCPUS.search(line)
        self.vcpus = int(count[1]) if count else self.vcpus

    def _take_numa(self, words: str, line: str) -> None:
        self.figures |= {name: True for name, pattern in _FLAGS.items() if pattern.search(words)}
        for name, pattern in _FIGURES.items():
            figure = pattern.search(words)
            if figure:
                self.figures[name] = int(figure[1])
        account = _account_with(self.account, words, line)
        if account is not None:
            account.figures |= self.figures
            self.account, self.figures = account, {}

    def log(self) -> VmwareLog:
        """What all of it says."""
        settings = {**self.vmx, **self.settings}
        figures = self.account.figures | self.figures
        told = VmwareLog(
            began=self.began,
            numa_at=self.account.at,
            vcpus=self.vcpus if self.vcpus is not None else _count(settings.get("numvcpus", "")),
            vpds=1 if "forced_uma" in figures else None,
            settings=settings,
            written={key: value for key, value in self.written.items() if value},  # empty: removed
            lines=tuple(self.lines[-_MOST_LINES:]),
            **figures,
        )
        return _with_layout(told, self.account)


def read_vmware_log(text: str) -> VmwareLog:
    """Everything about vNUMA in a vmware.log or an excerpt; of several power-ons and layouts, the last."""
    return power_ons(text)[-1]


def power_ons(text: str) -> tuple[VmwareLog, ...]:
    """Every power-on in a text, of one VM or of several, the latest at the end."""
    readers = [_Reader()]
    for line in _rejoined(text.splitlines()):
        if readers[-1].is_over(line):
            readers.append(_Reader())
        readers[-1].take(line)
    logs = [reader.log() for reader in readers]
    times = [log.began for log in logs if log.began]
    if len(times) == len(logs) and all(one > other for one, other in pairwise(times)):
        logs.reverse()  # newest first
    return tuple(logs)


def _rejoined(lines: list[str]) -> Iterator[str]:
    """The lines, each with the rest that a console has wrapped into the next one."""
    at = 0
    while at < len(lines):
        line, following = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        whole = _wrapped(line, following)
        yield whole or line
        at += 2 if whole else 1


def _wrapped(line: str, following: str) -> str:
    """A line on vNUMA joined with the next, if only both together say something; else empty."""
    begins = _NUMA.search(line)
    own = _NUMA.search(following) or _time(following) or _setting(following) or _VMX.match(following)
    if not begins or own or not following.strip() or _says(line[begins.end() :]):
        return ""
    joined = (f"{line.rstrip()} {following.lstrip()}", f"{line}{following}")
    return next((one for one in joined if _says(one[begins.end() :])), "")


def _says(words: str) -> bool:
    return any(one.search(words) for one in (_HEADER, _SUMMARY, _VCPU, *_FLAGS.values()))


def _setting(line: str) -> re.Match[str] | None:
    return _DICT.search(line) or _UNQUOTED.search(line)


def _account_with(account: _Account, words: str, line: str) -> _Account | None:
    """The layout's description with one more line, which may start a new one; None without any such line."""
    header, summary, vcpu = _HEADER.search(words), _SUMMARY.search(words), _VCPU.search(words)
    if header:
        account = _Account(header=_three(header))
    elif vcpu:
        number, vpd, ppd = _three(vcpu)
        if number in account.placed:
            account = _Account()
        account.placed[number] = (vpd, ppd)
    elif summary:
        account.summary = _three(summary)
    else:
        return None
    account.at = account.at or _time(line)
    return account


def _with_layout(log: VmwareLog, account: _Account) -> VmwareLog:
    """Totals and sizes of a description; a total that its own lines contradict is a doubt."""
    placed, configured = account.placed, log.vcpus
    vpd_sizes = _sizes(vpd for vpd, _ in placed.values())
    ppd_sizes = _sizes(ppd for _, ppd in placed.values())
    vcpus, vpds, ppds = len(placed) or log.vcpus, len(vpd_sizes) or log.vpds, len(ppd_sizes) or None
    sockets: int | None = None
    if account.header:
        vcpus, vpds, ppds = account.header
    if account.summary:
        vpds, sockets, ppds = account.summary
    doubts = []
    if placed and vcpus != len(placed):
        doubts.append(f"the total line says {vcpus} vCPUs, the detail lines {len(placed)}")
    if configured and account.header and vcpus != configured:
        doubts.append(f"the configuration has {configured} vCPUs, the layout {vcpus}")
    if configured and placed and not account.header and len(placed) != configured:
        doubts.append(
            f"the log is cut: it places {len(placed)} of {configured} vCPUs, without a total of them"
        )
        vcpus = configured
        vpds, ppds = (vpds, ppds) if account.summary else (None, None)
    whole, has_total = not doubts, bool(account.header or account.summary)
    if has_total and placed and vpds != len(vpd_sizes):
        doubts.append(f"the total line says {vpds} vNUMA nodes, the detail lines {len(vpd_sizes)}")
    doubts += _not_nested(log)
    return replace(
        log,
        vcpus=vcpus,
        vpds=vpds,
        ppds=ppds,
        has_total=has_total,
        virtual_sockets=sockets,
        vpd_sizes=vpd_sizes if whole and vpds == len(vpd_sizes) else (),
        # Older releases print PPD 0 on every line, whatever the summary says, so the lines are not used.
        ppd_sizes=ppd_sizes if whole and ppds == len(ppd_sizes) else (),
        doubts=tuple(doubts),
    )


def _not_nested(log: VmwareLog) -> list[str]:
    """A socket that belongs to two vNUMA nodes: ESXi permits it, and guests interpret it differently."""
    cores, most = log.cores_per_socket, log.max_vcpus_per_vpd
    if not cores or not most or cores % most == 0 or most % cores == 0:
        return []
    return [f"sockets of {cores} cores and vNUMA nodes of up to {most} vCPUs do not nest"]


def _sizes(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(size for _, size in sorted(Counter(numbers).items()))


def _three(match: re.Match[str]) -> tuple[int, int, int]:
    return int(match[1]), int(match[2]), int(match[3])


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text.strip(), re.ASCII) else None


def _time(line: str) -> datetime | None:
    found = _TIME.match(line)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(found[1])
    except ValueError:
        return None
