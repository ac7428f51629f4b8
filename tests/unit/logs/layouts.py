"""Lines of a vmware.log on a layout, made for a test."""

from __future__ import annotations


def new_form(sizes: list[int], *, prefix: str = "") -> str:
    """The lines of ESXi 6.5 and later for nodes of these sizes, each on a physical node of its own."""
    placed = [node for node, size in enumerate(sizes) for _ in range(size)]
    lines = [f"numaHost: {len(placed)} VCPUs {len(sizes)} VPDs {len(sizes)} PPDs"]
    lines += [f"numaHost: VCPU {cpu} VPD {node} PPD {node}" for cpu, node in enumerate(placed)]
    return "".join(f"{prefix}{line}\n" for line in lines)
