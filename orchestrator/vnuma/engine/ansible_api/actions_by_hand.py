"""The roles' work outside a run, as the collection's actions call it: JSON in, JSON out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from vnuma.domain.arm.arm import Arm
from vnuma.domain.vm.validation import messages
from vnuma.engine.access.target import Target
from vnuma.engine.ansible_api import by_hand
from vnuma.engine.cell.guest_shutdown import PowerRules
from vnuma.engine.cell.shape import Shaped, change_diff, change_document, prediction_document
from vnuma.engine.preflight.permit import Permit
from vnuma.errors import InputError
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.sqlserver.instance.ready import QuietRule
from vnuma.workloads.cross_join.settings import CrossJoin

Document = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)


def topology(target: Target, options: Document) -> Document:
    """Bring the VM into the shape of `arm`."""
    return _shaped(by_hand.shape_vm(target, _arm(options), _rules(options), _permit(options)))


def plan_topology(target: Target, options: Document) -> Document:
    """What `topology` would change."""
    return _shaped(by_hand.plan_vm_shape(target, _arm(options), _permit(options)))


def power(target: Target, options: Document) -> Document:
    """Power on or shut down."""
    changed = by_hand.set_power(target, options["state"], _rules(options), _permit(options))
    return _powered(options["state"], changed=changed)


def plan_power(target: Target, options: Document) -> Document:
    """What `power` would change."""
    changed = by_hand.power_differs(target, options["state"], _permit(options))
    return _powered(options["state"], changed=changed)


def _powered(state: str, *, changed: bool) -> Document:
    before = {"on": "off", "off": "on"}[state] if changed else state
    return {
        "changed": changed,
        "power": state,
        "diff": {"before": {"power": before}, "after": {"power": state}},
    }


def ready(target: Target, options: Document) -> Document:
    """Wait for guest and SQL Server."""
    quiet = QuietRule(options["quiet_cpu_percent"], options["quiet_for"], options["timeout"])
    return {"changed": False, **by_hand.wait_until_ready(target, options["timeout"], quiet)}


def dataset(target: Target, options: Document) -> Document:
    """Prepare or drop the dataset."""
    diff = plan_dataset(target, options)["diff"]
    if options["state"] == "absent":
        return {"changed": by_hand.drop_dataset(target, options["database"]), "diff": diff}
    facts = by_hand.prepare_dataset(target, _dataset_spec(options))
    return {"changed": facts.changed, "dataset": asdict(facts), "diff": diff}


def plan_dataset(target: Target, options: Document) -> Document:
    """What `dataset` would create or drop."""
    name = options["database"]
    there = by_hand.has_database(target, name)
    if options["state"] == "absent":
        return {"changed": there, "diff": _database_diff(name if there else None, None)}
    changed = not by_hand.has_dataset(target, _dataset_spec(options))
    before = None if not there else f"{name}, with other rows" if changed else name
    return {"changed": changed, "diff": _database_diff(before, name)}


def _database_diff(before: str | None, after: str | None) -> Document:
    return {"before": {"sql.database": before}, "after": {"sql.database": after}}


def benchmark(target: Target, options: Document) -> Document:
    """Time the workload."""
    workload = _parsed(CrossJoin, options["workload"], "workload")
    timings = by_hand.time_workload(target, workload, options["database"], options["iterations"])
    return {"changed": False, "timings": timings}


def _shaped(done: Shaped) -> Document:
    changes = change_document(done.change)
    return {
        "changed": bool(changes),
        "changes": changes,
        "diff": change_diff(changes),
        "prediction": prediction_document(done.prediction),
        "powered_off": done.powered_off,
    }


def _rules(options: Document) -> PowerRules:
    return PowerRules(
        options["shutdown_timeout"], options["on_shutdown_timeout"], options.get("tools_timeout", 600)
    )


def _permit(options: Document) -> Permit:
    """What the role's options `production` and `ticket` allow."""
    return Permit.given(options["production"], options["ticket"] or None)


def _dataset_spec(options: Document) -> DatasetSpec:
    return DatasetSpec(
        database=options["database"],
        source=options["source"],
        transaction_history_rows=options["transaction_history_rows"],
        sales_order_detail_rows=options["sales_order_detail_rows"],
    )


def _arm(options: Document) -> Arm:
    arm = _parsed(Arm, options["arm"], "arm")
    for name in ("soft_numa", "maxdop", "workload"):
        if getattr(arm, name) != Arm.model_fields[name].default:
            raise InputError(
                f"option arm is invalid: {name} is not a setting of the VM; only a run sets and restores it.",
                fix=f"Remove {name} here, or write a study and use vnuma run.",
            )
    return arm


def _parsed(model: type[Model], data: Document, option: str) -> Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        what = f"option {option} is invalid: {messages(error, option)}."
        raise InputError(what, fix="docs/reference/study.md describes every field.") from None
