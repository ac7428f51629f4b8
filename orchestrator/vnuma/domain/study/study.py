"""A study: one experiment in one YAML file, validated as a whole before anything is touched."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vnuma.domain.arm.arm import Arm, ArmSettings
from vnuma.domain.study.design import CONTROL_SUFFIX, Design
from vnuma.domain.study.hours import AllowedHours
from vnuma.domain.workloads.kinds import AnyWorkload, as_workload
from vnuma.domain.workloads.metric import Replicate
from vnuma.domain.workloads.settings import Seconds, WorkloadContext, WorkloadSettings
from vnuma.words.validation import Strict

Acceptable = Literal["P13", "P14", "P21", "P22", "P23", "P24", "P26"]
"""Blocking findings of preflight that a study may accept."""


class Dataset(Strict):
    """The two AdventureWorks tables, in a database of our own."""

    database: str = Field(
        default="vnuma_study",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$",
        description="Created by vnuma if it does not exist; a database that vnuma did not create is refused.",
    )
    source: str = Field(
        default="generated",
        description="`generated`, or the name of an AdventureWorks database on the same server to copy from.",
    )
    transaction_history_rows: int = Field(
        default=113_443, ge=1, le=5_000_000, description="Rows to generate."
    )
    sales_order_detail_rows: int = Field(default=121_317, ge=1, le=5_000_000, description="Rows to generate.")
    drop_after: bool = Field(default=True, description="Drop the database when the run ends.")

    @property
    def smaller_table_rows(self) -> int | None:
        """Rows of the smaller table, the limit for sizes; None for a copy, whose source decides."""
        if self.source != "generated":
            return None
        return min(self.transaction_history_rows, self.sales_order_detail_rows)


class Power(Strict):
    """Deadlines of a power-cycle, in seconds, and what happens when the guest does not shut down."""

    shutdown_timeout_s: Seconds = Field(
        default=600, description="Time for the guest's shutdown through Tools."
    )
    guest_is_asked_to: Literal["shut_down", "reboot"] = Field(
        default="shut_down",
        description=(
            "`reboot` (ESXi 8, needs VirtualMachine.Config.Settings) marks the VM so that its next "
            "reboot ends powered off, and asks the guest to reboot: for guests that must not be shut "
            "down."
        ),
    )
    on_shutdown_timeout: Literal["fail", "power_off"] = Field(
        default="fail",
        description="`fail` leaves the VM running and ends its cells; `power_off` cuts its power.",
    )
    late_shutdown_s: Seconds = Field(
        default=3600,
        description=(
            "How much longer a guest that has begun to shut down is watched until it is off, for instance "
            "while Windows installs updates. The VM is then powered on as always."
        ),
    )
    tools_timeout_s: Seconds = Field(default=600, description="Time from power-on until VMware Tools run.")
    sql_timeout_s: Seconds = Field(
        default=600, description="Time from running Tools until SQL Server is ready."
    )
    task_timeout_s: Seconds = Field(default=300, description="Time for one vSphere task.")
    vcenter_retry_s: Seconds = Field(
        default=900,
        description=("How long to retry each step while vCenter restarts, ends sessions or is busy."),
    )

    @property
    def longest_hold_s(self) -> float:
        """How long one step may hold its VM: a shutdown that is late, a boot, and the tasks between them."""
        return self.shutdown_timeout_s + self.late_shutdown_s + self.tools_timeout_s + 2 * self.task_timeout_s


class Quiet(Strict):
    """When a freshly booted guest counts as quiet."""

    cpu_percent: float = Field(default=10, gt=0, le=100, description="CPU use below this, in percent.")
    for_s: float = Field(
        default=30,
        ge=0,
        description=(
            "How many seconds in a row; 0 does not wait. On the lab, whose guest runs nothing else, at "
            "most half a second."
        ),
    )
    timeout_s: Seconds = Field(
        default=600, description="After this time the boot is measured anyway, and the report says so."
    )


class Evidence(Strict):
    """What is gathered of each boot besides what SQL Server shows."""

    vmware_log: Literal["auto", "off"] = Field(
        default="auto",
        description=(
            "`auto` fetches the boot's vmware.log from the ESXi host that runs the VM (port 443; "
            "privilege Datastore.Browse) and compares it; if it is not available, it is not evaluated. "
            "`off` does not fetch it."
        ),
    )


class Limits(Strict):
    """When to give up."""

    attempts_per_cell: int = Field(
        default=3,
        ge=1,
        le=10,
        description=(
            "Power-cycles for one cell, including failures. A failure that every cell would repeat, "
            "such as a missing privilege, ends the VM's cells at once and is not counted here."
        ),
    )
    max_failed_cells: int = Field(
        default=3, ge=0, description="If more cells than this fail, that VM's remaining cells are not run."
    )


Above0 = Annotated[float, Field(gt=0)]


class Published(Strict):
    """Figures published by others for the same arms, compared with ours: at least one kind."""

    title: str = Field(description="Short citation.")
    source: str = Field(default="", description="Where it was published.")
    elapsed_ms: dict[int, dict[str, float]] = Field(
        default={}, description="Size -> arm -> elapsed time in ms, of the study's first form."
    )
    figures: dict[str, dict[int, dict[str, Above0]]] = Field(
        default={}, description="Form -> size -> arm -> figure, in the unit of the form."
    )
    ratios: dict[str, dict[str, Above0]] = Field(
        default={},
        description=(
            "Form -> arm -> figure of the arm / figure of the reference arm, if only the ratio was "
            "published; compared with ours over all sizes."
        ),
    )
    size_ratios: dict[str, dict[int, dict[str, Above0]]] = Field(
        default={},
        description=(
            "Form -> size -> arm -> the same ratio, if published for a size; compared with ours at that size."
        ),
    )
    lower_bounds: dict[str, dict[int, list[str]]] = Field(
        default={},
        description=(
            "Form -> size -> arms whose published figure is a lower bound, as in `more than 34,000`: "
            "ours contradicts it only if it is lower."
        ),
    )
    figure_ratios: dict[str, dict[str, dict[str, Above0]]] = Field(
        default={},
        description=(
            "Form -> name of another figure, such as `spins per insert` -> arm -> figure of the arm / "
            "figure of the reference arm; compared with ours."
        ),
    )

    @model_validator(mode="after")
    def _publishes_something(self) -> Published:
        if not (self.elapsed_ms or self.figures or self.ratios or self.size_ratios or self.figure_ratios):
            raise ValueError(
                "published has no figures: give elapsed_ms, figures, ratios, size_ratios or figure_ratios"
            )
        return self

    @model_validator(mode="after")
    def _bounds_are_published(self) -> Published:
        for form, sizes in self.lower_bounds.items():
            for size, arms in sizes.items():
                known = {**self.elapsed_ms.get(size, {}), **self.figures.get(form, {}).get(size, {})}
                if unknown := [arm for arm in arms if arm not in known]:
                    raise ValueError(
                        f"lower_bounds names {unknown[0]} at {form}, {size}, but no figure is published there"
                    )
        return self


class Study(Strict):
    """One experiment."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$", description="Runs are called NAME.1, NAME.2 and so on."
    )
    title: str = Field(default="", description="One line for reports.")
    vms: tuple[str, ...] = Field(min_length=1, description="Inventory names of the VMs.")
    vcpus: int | None = Field(
        default=None,
        ge=1,
        le=768,
        description=(
            "vCPUs of the VM, unless an arm has its own. Omit it only where nothing is shaped (every arm "
            "`topology: keep`)."
        ),
    )
    reference: str = Field(description="The arm that the others are compared with.")
    arms: tuple[Arm, ...] = Field(min_length=1, description="The configurations under test.")
    all_arms: ArmSettings = Field(
        default=ArmSettings(), description="Settings of every arm that does not set its own."
    )
    design: Design = Field(default=Design(), description="Blocks, order, iterations.")
    workload: AnyWorkload = Field(default_factory=lambda: as_workload({}), description="What is measured.")
    dataset: Dataset = Field(default=Dataset(), description="The data it is timed on.")
    power: Power = Field(default=Power(), description="Deadlines of a power-cycle.")
    quiet: Quiet = Field(default=Quiet(), description="When a booted guest counts as quiet.")
    evidence: Evidence = Field(default=Evidence(), description="What else is collected from each boot.")
    limits: Limits = Field(default=Limits(), description="When to give up.")
    allowed_hours: AllowedHours | None = Field(
        default=None,
        description=(
            "When VMs may be changed; any time if omitted. A cell starts only if it can end, and the "
            "VM be restored, before the window closes. The run then stops and can be resumed."
        ),
    )
    accept: tuple[Acceptable, ...] = Field(
        default=(),
        description=(
            "Preflight findings that do not stop this study: `P13` shared and `P14` raw disks, `P21` "
            "availability groups, `P22` failover clusters, `P23` replication, `P24` log shipping, `P26` "
            "sessions of others. They become warnings in the report."
        ),
    )
    published: Published | None = Field(default=None, description="Other people's figures for comparison.")

    @model_validator(mode="before")
    @classmethod
    def _accept_short_forms(cls, data: object) -> object:
        """`vm: NAME` for one VM, and an arm written as its topology alone."""
        if not isinstance(data, dict):
            return data
        data = dict(data)
        if "vm" in data and "vms" not in data:
            data["vms"] = [data.pop("vm")]
        if isinstance(data.get("arms"), list | tuple):
            data["arms"] = [arm if isinstance(arm, dict | Arm) else {"topology": arm} for arm in data["arms"]]
        return data

    @property
    def control_arm(self) -> str | None:
        """The positive control's name in tables; None without one."""
        return f"{self.reference}{CONTROL_SUFFIX}" if self.design.control == "remote" else None

    def arm(self, label: str) -> Arm:
        """The arm of that name, with `all_arms` filled in where it has no value of its own.

        The positive control has the reference arm's settings: it differs only inside the guest.
        """
        label = self.reference if label == self.control_arm else label
        arm = next(arm for arm in self.arms if arm.label == label)
        own = {"vcpus": arm.vcpu_count or self.vcpus}
        common = own | {
            name: getattr(self.all_arms, name)
            for name in ArmSettings.model_fields
            if name in self.all_arms.model_fields_set and name not in arm.model_fields_set
        }
        return arm.model_copy(update=common)

    def workload_of(self, label: str) -> WorkloadSettings:
        """The workload with that arm's overrides, including its MAXDOP."""
        arm = self.arm(label)
        own = dict(arm.workload) | ({} if arm.maxdop == "keep" else {"maxdop": arm.maxdop})
        if not own:
            return self.workload
        return type(self.workload).model_validate({**self.workload.model_dump(), **own})

    @property
    def workload_context(self) -> WorkloadContext:
        """What the workload may know about this study."""
        rows = self.dataset.smaller_table_rows
        return WorkloadContext(rows, self.arms, self.workload_of)

    @property
    def maxdops(self) -> tuple[int, ...]:
        """The distinct MAXDOP hints, in the order of the arms; 0 is the server's own setting."""
        return tuple(dict.fromkeys(self.workload_of(label).maxdop_hint for label in self.labels))

    @property
    def shapes(self) -> bool:
        """Whether any arm needs a hypervisor that shapes and boots the target."""
        return any(arm.topology != "keep" for arm in self.arms)

    @property
    def replicate(self) -> Replicate:
        """What is repeated: a boot of the shaped VM, or a pass over a target that is measured as it is."""
        return "boot" if self.shapes else "pass"

    @property
    def sets_soft_numa(self) -> bool:
        """Whether any arm changes SQL Server's automatic soft-NUMA."""
        return any(self.arm(label).soft_numa != "keep" for label in self.labels)

    @property
    def compares_shapes(self) -> bool:
        """Whether the arms differ in more than the workload's factors: in shape or instance settings."""
        own = [arm.model_dump(exclude={"name", "workload"}) for arm in self.arms]
        return any(shape != own[0] for shape in own)

    @property
    def labels(self) -> tuple[str, ...]:
        """The arms' names in the order of the file."""
        return tuple(arm.label for arm in self.arms)
