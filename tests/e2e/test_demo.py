"""`vnuma demo`, which README's second command ends with: a lab, a study, the report, nothing left."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import vnuma

STUDY = """
name: small
vm: sql16
vcpus: 16
reference: 1x16
arms: [1x16, 8x2]
design: {blocks: 1, a_a: false, iterations: 1, warmups: 0}
workload: {name: cross_join, sizes: [20], forms: [client]}
dataset: {transaction_history_rows: 200, sales_order_detail_rows: 200}
"""


def test_the_demo_ends_with_a_report_and_without_a_lab(tmp_path: Path) -> None:
    """A smaller study than README's, by the same command."""
    study = tmp_path / "small.yml"
    study.write_text(STUDY, encoding="utf-8")

    ran = vnuma("demo", "--study", study, cwd=tmp_path)

    assert ran.code == 0, ran.text
    assert "SIMULATED" in ran.text
    assert "settings read back equal, powered on" in ran.text
    assert "small.1: 2 of 2 cells valid." in ran.text
    (report,) = (tmp_path / "reports").glob("*.html")
    assert "SIMULATED" in report.read_text(encoding="utf-8")
    assert f"Report     {report.relative_to(tmp_path)}" in ran.out
    assert vnuma("lab", "status").code != 0
