"""Which VMs of an estate are checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase

from vnuma.domain.vm.estate import Estate, EstateVm
from vnuma.errors import InputError

_NAMED = 8
"""How many tags, folders or clusters a message names."""


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

    def require_any(self, estates: Sequence[Estate]) -> None:
        """Refuse filters that let no VM through: nothing would be checked, and a pipeline would take it for
        well.

        Raises InputError that names the first filter that no VM passes, or all of them where each has VMs
        of its own; it says so where tags were not read at all.
        """
        given = [part.name for part in fields(self) if getattr(self, part.name)]
        pairs = [(estate, vm) for estate in estates for vm in estate.vms]
        if not given or any(self.admit(estate, vm) for estate, vm in pairs):
            return
        for name in given:
            alone = Filters(**{name: getattr(self, name)})
            if not any(alone.admit(estate, vm) for estate, vm in pairs):
                raise alone._nothing(name, estates)
        words = " ".join(f"--{name} '{getattr(self, name)}'" for name in given)
        raise InputError(
            f"No VM {_seen(estates)}matches all of {words}.",
            fix="Each filter alone matches VMs: remove one.",
        )

    def _nothing(self, name: str, estates: Sequence[Estate]) -> InputError:
        """What to say where no VM passes the one filter of that name."""
        vms = [vm for estate in estates for vm in estate.vms]
        if name == "tag":
            return self._no_tag(estates, vms)
        wanted, seen = getattr(self, name), _seen(estates)
        if name == "name":
            return InputError(
                f"No VM {seen}is named {wanted}.",
                fix="Patterns may use * and ?, as in --name 'sql-*'; case matters.",
            )
        if name == "folder":
            folders = {vm.facts.path.rpartition("/")[0] for vm in vms}
            return InputError(
                f"No VM {seen}is in the folder {wanted}.",
                fix=f"There are: {_some(folders)}.",
            )
        clusters = {cluster.name for estate in estates for cluster in estate.cluster_of.values()}
        return InputError(
            f"No VM {seen}is in the cluster {wanted}.",
            fix=f"There are: {_some(clusters)}.",
        )

    def _no_tag(self, estates: Sequence[Estate], vms: Sequence[EstateVm]) -> InputError:
        if all(vm.tags is None for vm in vms):
            reasons = [item.why for estate in estates for item in estate.unseen if item.kind == "tags"]
            return InputError(
                f"VMs cannot be chosen by tag: {reasons[0] if reasons else 'no tags were read.'}",
                fix="Tags are read with --all and saved by vnuma inventory save; RVTools exports have none.",
            )
        return InputError(
            f"No VM {_seen(estates)}has the tag {self.tag}.",
            fix=f"Existing tags: {_some({tag for vm in vms for tag in vm.tags or ()})}.",
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


def _seen(estates: Sequence[Estate]) -> str:
    """What limits the VMs of a vCenter; a file shows what it has."""
    return "that the account may see " if any(estate.kind == "vcenter" for estate in estates) else ""


def _some(names: Iterable[str]) -> str:
    known = sorted(set(names))
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return f"{', '.join(known[:_NAMED]) or 'none'}{more}"
