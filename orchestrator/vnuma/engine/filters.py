"""Which VMs of an estate are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from vnuma.domain.estate import Estate, EstateVm
from vnuma.errors import InputError

_NAMED = 8
"""How many tags a message names."""


@dataclass(frozen=True)
class Filters:
    """Each is a pattern with * and ?; empty lets everything through.

    `folder` is matched with the inventory path of the VM's folder and those below it, `tag` with
    `category:name` or, without a colon, with names of any category.
    """

    name: str = ""
    folder: str = ""
    cluster: str = ""
    tag: str = ""

    def admit(self, estate: Estate, vm: EstateVm) -> bool:
        """Whether the VM is one of those asked for."""
        return self._named(vm) and self._in_folder(vm) and self._in_cluster(estate, vm) and self._tagged(vm)

    def require_tag(self, estates: Sequence[Estate]) -> None:
        """Refuse a tag that no VM has: nothing would be checked, and a pipeline would take it for well.

        Raises InputError; it says so where tags were not read at all.
        """
        vms = [vm for estate in estates for vm in estate.vms]
        if not self.tag or any(self._tagged(vm) for vm in vms):
            return
        if all(vm.tags is None for vm in vms):
            reasons = [item.why for estate in estates for item in estate.unseen if item.kind == "tags"]
            raise InputError(
                f"No VM can be chosen by tag: {reasons[0] if reasons else 'no tags were read.'}",
                fix="Tags are read with --all, and kept by vnuma inventory save; an RVTools export has none.",
            )
        known = sorted({tag for vm in vms for tag in vm.tags or ()})
        more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
        raise InputError(
            f"No VM has the tag {self.tag}, of those that the account may see.",
            fix=f"There are: {', '.join(known[:_NAMED]) or 'none'}{more}.",
        )

    def _tagged(self, vm: EstateVm) -> bool:
        if not self.tag:
            return True
        wanted = self.tag if ":" in self.tag else f"*:{self.tag}"
        return any(fnmatchcase(tag, wanted) for tag in vm.tags or ())

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
