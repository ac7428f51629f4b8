"""A vmware.log's layout against the prediction for the same settings on the host that somebody describes."""

from __future__ import annotations

from vnuma.domain.topology.evidence_words import sizes_words
from vnuma.domain.topology.prediction import host_shape, predict
from vnuma.domain.topology.release import hardware_version_of
from vnuma.domain.topology.topology import partial_socket
from vnuma.domain.vm.facts import HostFacts
from vnuma.estate.vmx import designed
from vnuma.logs.vmware import read_vmware_log


def against_prediction(text: str, host: HostFacts) -> str:
    """How the layout of this log compares to the prediction, in a sentence; empty if the text has no layout.

    The settings are the log's DICT lines. Without a hardware version in them, the release's newest counts.
    """
    log = read_vmware_log(text)
    if log.vpds is None:
        return ""
    vm = designed("the VM", log.settings)
    why = partial_socket(vm.settings)
    if "numvcpus" not in log.settings or why:
        return f"It is not compared with a prediction: {why or 'the text has no DICT lines of the settings'}."
    hardware = vm.hardware or hardware_version_of(host.release.key)
    seen = predict(host_shape(host), vm.settings, hardware)
    words = f"Predicted on {host.name}: {sizes_words(seen.node_sizes, 'vNUMA node')}"
    sure = f"Its confidence is {seen.confidence}: {seen.because}."
    if log.vpds == seen.vnuma_nodes and (not log.vpd_sizes or log.vpd_sizes == seen.node_sizes):
        return f"{words}, as found. {sure}"
    allowed = log.vpds in seen.acceptable and log.vpds != seen.vnuma_nodes
    other = "not as found, but the documents allow it too" if allowed else "not as found"
    return f"{words}: {other}. {sure}"
