"""Which VMs of an estate are checked."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from vnuma.domain.estate import Estate, EstateVm


@dataclass(frozen=True)
class Filters:
    """Each is a pattern with * and ?; empty lets everything through.

    `folder` is matched with the inventory path of the VM's folder and those below it.
    """

    name: str = ""
    folder: str = ""
    cluster: str = ""

    def admit(self, estate: Estate, vm: EstateVm) -> bool:
        """Whether the VM is one of those asked for."""
        return self._named(vm) and self._in_folder(vm) and self._in_cluster(estate, vm)

    def _named(self, vm: EstateVm) -> bool:
        return not self.name or fnmatchcase(vm.facts.name, self.name)

    def _in_folder(self, vm: EstateVm) -> bool:
        folder = self.folder.rstrip("/")
        wanted = folder if folder.startswith(("/", "*")) else f"*/{folder}"
        return not folder or fnmatchcase(vm.facts.path, f"{wanted}/*")

    def _in_cluster(self, estate: Estate, vm: EstateVm) -> bool:
        if not self.cluster:
            return True
        cluster = estate.cluster_of.get(vm.facts.host_moid)
        return cluster is not None and fnmatchcase(cluster.name, self.cluster)
