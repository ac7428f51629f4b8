"""Every workload that a study file can name: ours, and those of installed packages.

A package adds one with an entry point in the group `vnuma.workloads`: its name is the workload's, and it
refers to an object with the attributes of `vnuma.workloads.interface.Workload`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Annotated, Any, Union, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from vnuma.domain.workloads.settings import WorkloadSettings

GROUP = "vnuma.workloads"

PARTS = ("obstacles", "prepare", "sentinel", "bench")
"""The parts of a workload that the engine calls, besides its settings."""

SHIPPED = "vnuma.workloads"
"""The folder of our own: each is a package, named as in studies, with its settings in `settings`."""


@cache
def shipped() -> Mapping[str, type[WorkloadSettings]]:
    """Our own workloads' settings, by name. Their packages are imported when this is first asked."""
    here = find_spec(SHIPPED)
    folders = here.submodule_search_locations if here else None
    packages = sorted(found.name for found in iter_modules(folders) if found.ispkg)
    return {
        package: settings_class(vars(import_module(f"{SHIPPED}.{package}.settings")), package)
        for package in packages
    }


def settings_class(names: Mapping[str, Any], package: str) -> type[WorkloadSettings]:
    """The settings of our workload in that package. Raises TypeError where its name is not the package's."""
    for value in names.values():
        if _is_kind(value, package):
            found: type[WorkloadSettings] = value
            return found
    raise TypeError(
        f'{SHIPPED}.{package}.settings has no WorkloadSettings with name: Literal["{package}"]. '
        "A workload has the name of its folder."
    )


def _is_kind(value: object, name: str) -> bool:
    if not (isinstance(value, type) and issubclass(value, WorkloadSettings) and "name" in value.model_fields):
        return False
    return get_args(value.model_fields["name"].annotation) == (name,)


DEFAULT = "cross_join"
"""The workload of a study that names none: the paper's."""


def settings_type(name: str) -> type[WorkloadSettings]:
    """The settings class of a workload. Raises ValueError with the known names."""
    if name in shipped():
        return shipped()[name]
    found = installed(name)
    settings = getattr(found, "settings", None)
    if not (isinstance(settings, type) and issubclass(settings, WorkloadSettings)):
        raise ValueError(  # noqa: TRY004 - pydantic reports values
            f"the installed workload '{name}' has no settings that vnuma can use"
        )
    lacking = [part for part in PARTS if not callable(getattr(found, part, None))]
    if lacking:
        raise ValueError(f"the installed workload '{name}' lacks {', '.join(lacking)}")
    return settings


def installed(name: str) -> Any:
    """The workload of that name from another installed package; ours cannot be replaced.

    Raises ValueError if there is none, or its package does not load.
    """
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        known = ", ".join(sorted({*shipped(), *points}))
        raise ValueError(f"'{name}' is not a known workload; known are {known}")
    point = points[name]
    try:
        return point.load()
    except Exception as error:  # a package's own code can raise anything
        package = point.dist.name if point.dist else point.value
        raise ValueError(
            f"the workload '{name}' of the installed package {package} cannot be loaded: "
            f"{type(error).__name__}: {error}; repair or remove that package"
        ) from error


def as_workload(value: object) -> WorkloadSettings:
    """The settings in a study file's section; without a name, the paper's workload.

    Raises ValueError, or pydantic's ValidationError with locations inside the section.
    """
    if isinstance(value, WorkloadSettings):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(  # noqa: TRY004 - pydantic reports values
            "the workload is a mapping of fields, as in {name: cross_join, sizes: [500]}"
        )
    name = value.get("name", DEFAULT)
    return settings_type(str(name)).model_validate(value)


class _AnyWorkload:
    """How pydantic validates, serialises and describes the field."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source, handler
        return core_schema.no_info_plain_validator_function(
            as_workload,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda workload, info: workload.model_dump(mode=info.mode), info_arg=True
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        del schema
        kinds: Any = Union[tuple(shipped().values())]  # noqa: UP007 - made at run time
        return handler(TypeAdapter(kinds).core_schema)


AnyWorkload = Annotated[WorkloadSettings, _AnyWorkload]
"""The field of a study for any workload's settings."""
