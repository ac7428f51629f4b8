"""An arm: one configuration under test, and what it intends the guest to see."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from vnuma.domain.topology import Topology


def _topology(value: object) -> Topology:
    if isinstance(value, Topology):
        return value
    if isinstance(value, str):
        return Topology.parse(value)
    raise ValueError(f"{value!r} is not a topology; write sockets x cores per socket, as in 2x8")


TopologyField = Annotated[
    Topology,
    BeforeValidator(_topology),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9]*x[1-9][0-9]*$", "examples": ["2x8"]}),
]

CpuNumber = Annotated[int, Field(ge=0)]
CpuList = Annotated[tuple[CpuNumber, ...], Field(min_length=1)]
Megabytes = Annotated[int, Field(gt=0)]


class Strict(BaseModel):
    """Base of everything read from a file: unknown fields are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ArmSettings(Strict):
    """What an arm sets on the VM besides its topology. `keep` leaves the VM's own value."""

    affinity: Literal["keep", "none", "physical_cores"] | CpuList = Field(
        default="keep",
        description=(
            "CPU affinity: `none` clears it, `physical_cores` pins to one logical CPU per physical core of "
            "as few host NUMA nodes as possible, a list names logical CPUs of the host."
        ),
    )
    memory_mb: Literal["keep"] | Megabytes = Field(default="keep", description="Memory size of the VM in MB.")
    memory_reservation: Literal["keep", "none", "locked"] | Megabytes = Field(
        default="keep",
        description="`locked` reserves all memory, whatever its size; a number reserves that many MB.",
    )
    follow_cores_per_socket: Literal["auto", "on", "off", "keep"] = Field(
        default="auto",
        description=(
            "numa.vcpu.followcorespersocket. `auto` turns it on where ESXi would otherwise ignore cores per "
            "socket (6.5 and later); `off` removes the key: cores per socket is then cosmetic there."
        ),
    )
    numa_autosize: Literal["clear", "keep"] = Field(
        default="clear",
        description=(
            "The keys numa.autosize.cookie and numa.autosize.vcpu.maxPerVirtualNode freeze the layout of "
            "an earlier power-on; `clear` removes them, and they are put back afterwards."
        ),
    )


class Arm(ArmSettings):
    """One configuration under test."""

    topology: TopologyField = Field(description="Sockets x cores per socket, as in `2x8`.")
    name: str = Field(
        default="", description="Name in tables and charts; the topology by default.", max_length=24
    )
    vnuma_nodes: int | None = Field(
        default=None,
        ge=1,
        description=(
            "How many vNUMA nodes the guest must see for a cell of this arm to count. Without it, whatever "
            "the release's rules predict counts, the uncertain readings included."
        ),
    )

    @property
    def label(self) -> str:
        """What tables call this arm."""
        return self.name or str(self.topology)
