"""Write docs/reference/vcenter-role.md from the list of privileges in code.

python tools/role_doc.py
"""

from __future__ import annotations

from pathlib import Path

from vnuma.domain.vm.role import markdown

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "vcenter-role.md"

if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
