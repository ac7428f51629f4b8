"""Imports point one way: each layer knows only the ones below it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "orchestrator" / "vnuma"
PLUGINS = ROOT / "plugins"

PURE = {"words", "domain", "analysis", "checks", "logs"}
ADAPTERS = {"vsphere", "sqlserver", "store", "estate"}
GROUND = {
    "errors",
    "words",
    "isolation",
    "assets",
    "collector",
    "file_lock",
    "logins",
    "tls_contexts",
    "__version__",
}
"""What every layer with input and output may import."""

ALLOWED = {
    "errors": set(),
    "words": {"errors"},
    "isolation": set(),
    "collector": set(),
    "assets": {"errors"},
    "file_lock": {"errors"},
    "tls_contexts": set(),
    "logins": {"errors", "file_lock"},
    "logs": {"errors", "words"},
    "domain": {"errors", "logs", "words"},
    "checks": {"errors", "domain", "words"},
    "analysis": {"errors", "domain", "words"},
    "lab": GROUND,
    "__main__": {"cli"},
    "frames": GROUND | {"engine", "report", "store"},
    "serve": GROUND | {"engine", "report", "store", "analysis", "domain", "checks"},
    "ansible": GROUND | {"engine", "domain"},
    **dict.fromkeys(ADAPTERS, GROUND | PURE),
    "workloads": GROUND | PURE | {"sqlserver"},
    "report": GROUND | {"store", "analysis", "domain", "checks"},
    "engine": GROUND | PURE | ADAPTERS | {"workloads", "lab"},
    "contract": GROUND | PURE | ADAPTERS | {"engine"},
    "cli": GROUND | PURE | ADAPTERS | {"workloads", "engine", "report", "serve", "lab", "contract"},
}
"""For each part of the package, the parts that it may import besides itself."""

ROOMS = {
    "engine": [
        {"access"},
        {"audit", "design_check", "notify"},
        {"lease"},
        {"instance"},
        {"cell"},
        {"preflight", "restore"},
        {"run", "doctor"},
        {"actions"},
    ],
    "domain": [{"vm"}, {"topology"}, {"arm"}, {"workloads"}, {"study"}],
    "sqlserver": [{"client"}, {"database"}, {"instance"}],
    "report": [
        {"model"},
        {"comparison", "published"},
        {"charts", "tables"},
        {"export", "page"},
        {"archive", "check", "terminal"},
    ],
}
"""The rooms of the larger parts, floor by floor: a room imports only rooms of the floors below its own."""

INPUT_OUTPUT = {
    *("alembic", "ansible", "ansible_runner", "http", "psycopg", "pyVim", "pyVmomi", "pyodbc", "requests"),
    *("starlette", "uvicorn"),
    *(
        "rich",
        "shutil",
        "socket",
        "sqlalchemy",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "typer",
        "urllib",
    ),
}
"""Libraries that reach outside the process: no part of the pure core may use them."""

HEAVY = {
    *("alembic", "ansible", "ansible_runner", "jinja2", "numpy", "pandas", "pyVmomi"),
    *("pyodbc", "scipy", "sqlalchemy", "starlette", "statsmodels", "uvicorn", "vl_convert"),
}
"""Packages that take long to import; `vnuma --help` has to answer without them."""


PARTS = {"vcenter", "sql", "hypervisor", "server"}
"""Attributes of a `Target` that say which parts it has."""


@cache
def imported(path: Path) -> tuple[tuple[str, int], ...]:
    """Every module that a file imports, anywhere in it, with the line."""
    tree, found = ast.parse(path.read_bytes(), str(path)), list[tuple[str, int]]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "vnuma" else []
            found += [(name, node.lineno) for name in names or [str(node.module)]]
    return tuple(found)


PURE_HALF = {"settings", "wrappers"}
"""Modules of a workload's package that belong to the domain: what a study file may say, and why not."""


def part_of(module: str) -> str:
    """The part of the package that a module belongs to: `vnuma.store.open` is of `store`."""
    names = module.split(".")
    if names[:2] == ["vnuma", "workloads"] and len(names) > 3 and names[3] in PURE_HALF:
        return "domain"
    return names[1] if names[0] == "vnuma" and len(names) > 1 else module


def files_of(part: str) -> list[Path]:
    """The files of one part: a folder's, or the single module."""
    files = sorted((PACKAGE / part).rglob("*.py")) + sorted(PACKAGE.glob(f"{part}.py"))
    pure = [path for path in sorted((PACKAGE / "workloads").glob("*/*.py")) if path.stem in PURE_HALF]
    if part == "workloads":
        return [path for path in files if path not in pure]
    return files + pure if part == "domain" else files


def room_of(path: Path) -> str:
    """A file's folder below its part, or a room that is one file.

    The pure half of a workload is in the domain's `workloads`.
    """
    part, room = path.relative_to(PACKAGE).parts[:2]
    return part if part == "workloads" else room.removesuffix(".py")


def parts() -> set[str]:
    """The parts that the package has."""
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    return folders | {path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__"}


def test_every_part_of_the_package_has_its_place() -> None:
    """A new part of the package must be given its layer here."""
    assert parts() - set(ALLOWED) == set()


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_imports_point_one_way(part: str) -> None:
    """A part of the package imports itself and the layers below it, nothing else of vnuma."""
    strays = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in files_of(part)
        for module, line in imported(path)
        if module.split(".")[0] == "vnuma" and part_of(module) not in ALLOWED[part] | {part}
    ]

    assert strays == []


@pytest.mark.parametrize("part", sorted(ROOMS))
def test_every_module_is_in_a_room(part: str) -> None:
    """A part that has rooms keeps no module outside of them, and no room that the floors do not name."""
    rooms = set().union(*ROOMS[part])
    found = {room_of(path) for path in files_of(part)}

    assert found - {"__init__"} == rooms


@pytest.mark.parametrize("part", sorted(ROOMS))
def test_rooms_import_only_lower_floors(part: str) -> None:
    """Inside a part, too, imports point one way: rooms of one floor do not know each other."""
    floor = {room: number for number, rooms in enumerate(ROOMS[part]) for room in rooms}
    strays = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in files_of(part)
        for module, line in imported(path)
        if module.startswith("vnuma.") and part_of(module) == part
        for own, other in [(room_of(path), room_of(PACKAGE.parent / module.replace(".", "/")))]
        if own != other and floor[other] >= floor[own]
    ]

    assert strays == []


@pytest.mark.parametrize("part", sorted(PURE))
def test_the_core_is_pure(part: str) -> None:
    """Domain, analysis and checks import no library that reaches outside the process."""
    strays = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in files_of(part)
        for module, line in imported(path)
        if module.split(".")[0] in INPUT_OUTPUT
    ]

    assert strays == []


def loaded_by(files: Iterable[Path]) -> list[list[str]]:
    """The names of all modules that a new process has after it imported these files, each in its parts."""
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in files]
    program = f"import sys, importlib; [importlib.import_module(n) for n in {names}]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    return [name.split(".") for name in done.stdout.split()]


def test_a_vm_is_judged_by_the_standard_library_alone() -> None:
    """Predictions, advice and rules load no installed package, so that they run in a browser."""
    files = [path for room in ("checks", "domain/topology") for path in (PACKAGE / room).rglob("*.py")]
    packages = {name[0] for name in loaded_by(files) if not name[0].startswith("_")}
    of_this_python = sys.stdlib_module_names | {"sitecustomize"}

    assert packages - of_this_python == {"vnuma"}


@pytest.mark.parametrize("part", sorted(PURE | {"errors"}))
def test_the_core_loads_nothing_from_above(part: str) -> None:
    """Importing a pure part in a new process loads no part of vnuma above it, and no package for input or
    output, however they may be asked for.
    """
    pure = sorted((PACKAGE / part).rglob("*.py")) or [PACKAGE / f"{part}.py"]
    loaded = loaded_by(pure)
    ours = {part_of(".".join(name)) for name in loaded if name[0] == "vnuma"}
    packages = {name[0] for name in loaded}
    assert ours - ALLOWED[part] <= {part, "vnuma"}
    assert packages & (INPUT_OUTPUT - sys.stdlib_module_names) == set()


def test_no_step_of_a_cell_asks_which_parts_a_target_has() -> None:
    """A cell is the same sequence everywhere: without a hypervisor, `on_hypervisor` has nothing to do."""
    strays = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((PACKAGE / "engine/cell").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path)))
        if isinstance(node, ast.Attribute) and node.attr in PARTS
        if isinstance(node.value, ast.Attribute | ast.Name) and ast.unparse(node.value).endswith("target")
    ]

    assert strays == []


def test_no_test_file_imports_another() -> None:
    """Code that several tests share is in a module that is not a test."""
    strays = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for module, line in imported(path)
        if module.startswith("tests.") and any(part.startswith("test_") for part in module.split("."))
    ]

    assert strays == []


def test_only_the_contract_needs_pytest() -> None:
    """It is an extra: nothing else runs with it alone."""
    importers = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        for module, _ in imported(path)
        if module.split(".")[0] == "pytest"
    }

    assert importers == {"contract"}


def test_plugins_know_only_the_engine_and_their_base_class() -> None:
    """An Ansible plugin imports vnuma.engine and vnuma.ansible, and no other part."""
    files = sorted(PLUGINS.rglob("*.py"))
    strays = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in files
        for module, line in imported(path)
        if module.split(".")[0] == "vnuma" and part_of(module) not in {"engine", "ansible"}
    ]

    assert files
    assert strays == []


def test_the_command_line_starts_without_heavy_packages() -> None:
    """Importing the command line loads none of the packages that take long to import."""
    program = "import sys, vnuma.cli.main; print(' '.join({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & HEAVY == set()


EXTRAS = (
    "opentelemetry",
    "pandas",
    "prometheus_client",
    "psycopg",
    "pyarrow",
    "pytest",
    "starlette",
    "uvicorn",
)

WITHOUT_EXTRAS = """
import importlib, json, pkgutil, sys

class Missing:
    def find_spec(self, name, *_):
        if name.split(".")[0] in %r:
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
import vnuma
lacking = []
for module in pkgutil.walk_packages(vnuma.__path__, "vnuma."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            lacking.append(module.name)
print(json.dumps(lacking))
"""


def test_only_an_extras_own_modules_need_it() -> None:
    """Who installs vnuma alone, without PostgreSQL's driver, can run every command on SQLite."""
    run = [sys.executable, "-c", WITHOUT_EXTRAS % (EXTRAS,)]
    lacking = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)

    theirs = ("vnuma.contract.", "vnuma.serve.app", "vnuma.serve.connections", "vnuma.serve.metrics")
    assert [name for name in lacking if not name.startswith(theirs)] == ["vnuma.store.bounded_connection"]
