"""The what-if page as static files, and what it runs on: Python for browsers, and a reader of workbooks.

The site of docs/ has the page (`page`). `python -m tools.what_if FOLDER` gets the rest by name, from npm and
PyPI by their ordinary clients, and checks the hashes.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from vnuma.domain.topology.picture import STYLE
from vnuma.report.page.page import hash_of

ROOT = Path(__file__).resolve().parents[1]
PYODIDE = "pyodide@314.0.7"
PYODIDE_SHA256 = "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"
PYODIDE_FILES = (
    *("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json"),
    "python_stdlib.zip",
)
CALAMINE = "python-calamine==0.9.1"
CALAMINE_SHA256 = "1f9a2f99d65f4cc647f3fc57ff80a2bb492bf8ce66a637b67064d1663697ae21"
PLATFORM = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "314", "--implementation", "cp")
ENTRY = "vnuma.engine.design_check.dropped_file"
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    f"style-src 'self' '{hash_of(STYLE)}'; base-uri 'none'; form-action 'none'"
)
"""Nothing from elsewhere is loaded, and nothing is sent to elsewhere."""


def page() -> Mapping[str, bytes]:
    """The page's own files by name, with the rules that it answers by."""
    made = {path.name: path.read_bytes() for path in sorted((ROOT / "templates/what_if").iterdir())}
    del made["ask_server.js"]
    made["ask.js"] = made.pop("ask_browser.js")
    charset = '<meta charset="utf-8">'
    policy = f'{charset}\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    made["index.html"] = made["index.html"].decode().replace(charset, policy).encode()
    return {**made, "vnuma.zip": rules()}


def rules() -> bytes:
    """Every module that an answer needs, as a new process imports them; always the same bytes."""
    program = (
        f"import sys, {ENTRY}; print(*(module.__file__ for name, module in sorted(sys.modules.items()) "
        "if name.partition('.')[0] == 'vnuma'), sep='\\n')"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in map(Path, run.stdout.split("\n")[:-1]):
            info = zipfile.ZipInfo(name.relative_to(ROOT / "orchestrator").as_posix())
            archive.writestr(info, name.read_bytes(), zipfile.ZIP_DEFLATED)
    return made.getvalue()


def runtime(folder: Path) -> None:
    """Write Pyodide's files, its library compiled, and the reader of workbooks into a folder.

    Exits with a sentence if it cannot.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        npm = ("npm", "pack", PYODIDE, "--silent", "--pack-destination", name)
        archive = got(npm, Path(name), "*.tgz", PYODIDE_SHA256)
        with tarfile.open(archive) as tar:
            for file in PYODIDE_FILES:
                source = tar.extractfile(f"package/{file}")
                assert source is not None
                (folder / file).write_bytes(source.read())
        ran(("node", str(ROOT / "tools/compile_stdlib.mjs"), str(folder)))
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:")
        wheel = got((*pip, *PLATFORM, "--dest", name, CALAMINE), Path(name), "*.whl", CALAMINE_SHA256)
        shutil.copy(wheel, folder / "calamine.whl")


def ran(command: Sequence[str]) -> None:
    """Run a program to its end."""
    if shutil.which(command[0]) is None:
        sys.exit(f"{command[0]} is not installed. On Debian: apt-get install {command[0]}")
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
        sys.exit(f"This command failed: {' '.join(command)}")


def got(command: Sequence[str], folder: Path, pattern: str, sha256: str) -> Path:
    """The file that a package client puts into the folder."""
    ran(command)
    (found,) = folder.glob(pattern)
    if hashlib.sha256(found.read_bytes()).hexdigest() != sha256:
        sys.exit(f"{found.name} is not the file with the known hash ({sha256}): nothing was taken from it.")
    return found


if __name__ == "__main__":
    runtime(Path(sys.argv[1]))
