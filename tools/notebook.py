"""Run the code of docs/notebook.ipynb on a simulated run, in this process, and keep what its cells show.

    python -m tools.notebook          # after a change of the notebook or of the figures

Tests compare what it shows with what the page keeps. No Jupyter is needed for that.
"""

from __future__ import annotations

import ast
import io
import json
import os
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from tests.report.build import Story, build
from tests.support.stores import new_store

PAGE = Path(__file__).resolve().parent.parent / "docs" / "notebook.ipynb"


def store_url(folder: Path) -> str:
    """A store in that folder with the run that the notebook opens."""
    build(new_store(folder / "vnuma.db"), Story())
    return f"sqlite:///{folder / 'vnuma.db'}"


def executed(notebook: dict[str, Any], store: str) -> dict[str, Any]:
    """The notebook with the outputs of its cells, as text. Raises whatever a cell raises."""
    names: dict[str, Any] = {}
    with mock.patch.dict(os.environ, {"VNUMA_STORE": store}):
        code = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
        for number, cell in enumerate(code, 1):
            cell["execution_count"] = number
            cell["outputs"] = _outputs("".join(cell["source"]), names, number)
    return notebook


def _outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, and the value of its last line."""
    *body, last = ast.parse(source).body
    shown = isinstance(last, ast.Expr)
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body if shown else [*body, last], []), PAGE.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), PAGE.name, "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        text = {"text/plain": _lines(repr(value))}
        found.append(
            {"data": text, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        )
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Write the page anew."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = executed(json.loads(PAGE.read_text(encoding="utf-8")), store_url(Path(folder)))
    PAGE.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
