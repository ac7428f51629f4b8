"""What somebody watched or logged on a host: placement for rules, and the layout of a vmware.log."""

from __future__ import annotations

from pathlib import Path

from vnuma.checks.facts import PlacementFacts
from vnuma.domain.topology.evidence import sizes_words
from vnuma.domain.topology.prediction import host_shape, predict
from vnuma.domain.topology.release import hardware_version_of
from vnuma.domain.topology.topology import partial_socket
from vnuma.domain.vm.estate import Unseen
from vnuma.domain.vm.facts import HostFacts
from vnuma.errors import InputError
from vnuma.estate.vmx import designed
from vnuma.logs.host_tools import VmMemory, memory_screen
from vnuma.logs.vmware import VmwareLog


def placements(text: str, source: Path) -> dict[str, PlacementFacts]:
    """What each VM's lines on esxtop's memory screen say, by the VM's name; the last of several counts.

    Raises InputError for a text without such a screen: its rules would silently stay unevaluated.
    """
    shown: dict[str, list[VmMemory]] = {}
    for line in memory_screen(text).vms:
        shown.setdefault(line.name, []).append(line)
    if not shown:
        raise InputError(
            f"{source} shows no VM with NUMA columns of esxtop's memory screen.",
            fix="On the host: esxtop, m for memory, f for fields, add the NUMA statistics; save the text.",
        )
    return {name: _placement(lines) for name, lines in shown.items()}


def _placement(lines: list[VmMemory]) -> PlacementFacts:
    moves = [line.nmig for line in lines if line.nmig is not None]
    return PlacementFacts(
        local_percent=lines[-1].n_pct_l,
        migrations=max(moves, default=None),
        home_nodes_before=lines[0].nhn if len(lines) > 1 else None,
        home_nodes_after=lines[-1].nhn,
    )


def against_prediction(log: VmwareLog, host: HostFacts) -> str:
    """How the layout of this log compares to the prediction, in a sentence; empty if it has no layout.

    The settings are the log's DICT lines. Without a hardware version in them, the release's newest counts.
    """
    if log.vpds is None:
        return ""
    vm = designed("the VM", log.settings)
    if isinstance(vm, Unseen):
        return f"It is not compared with a prediction: {vm.why}."
    why = partial_socket(vm.settings)
    if "numvcpus" not in log.settings or why:
        return f"It is not compared with a prediction: {why or 'the text has no DICT lines of the settings'}."
    hardware = vm.hardware or hardware_version_of(host.release.version)
    seen = predict(host_shape(host), vm.settings, hardware, tuple(vm.absent))
    words = f"Predicted on {host.name}: {sizes_words(seen.node_sizes, 'vNUMA node')}"
    sure = f"Its confidence is {seen.confidence}: {seen.because}."
    if log.vpds == seen.vnuma_nodes and (not log.vpd_sizes or log.vpd_sizes == seen.node_sizes):
        return f"{words}, as found. {sure}"
    allowed = log.vpds in seen.acceptable and log.vpds != seen.vnuma_nodes
    other = "differs from the log, but the documents allow it too" if allowed else "not as found"
    return f"{words}: {other}. {sure}"
