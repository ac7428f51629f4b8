"""Files that break readers: one sentence, exit 3, at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from vnuma.errors import InputError
from vnuma.estate import snapshot, waivers
from vnuma.estate.sheet import number

SNAPSHOTS = {
    "deep": "[" * 100_000,
    "less deep": "[" * 500 + "]" * 500,
    "many digits": '{"schema": "vnuma/inventory/1", "estates": ' + "7" * 5_000 + "}",
    "format of another script": '{"schema": "vnuma/inventory/²", "estates": []}',
    "format of many digits": '{"schema": "vnuma/inventory/' + "7" * 5_000 + '", "estates": []}',
    "NaN": '{"schema": "vnuma/inventory/1", "estates": NaN}',
    "endless": '{"schema": "vnuma/inventory/1", "estates": 1e999}',
    "lone surrogate": r'{"schema": "vnuma/inventory/1", "estates": "\ud800"}',
    "a word": '{"schema": "vnuma/inventory/1", "estates": "all"}',
}


@pytest.mark.parametrize("content", SNAPSHOTS.values(), ids=SNAPSHOTS)
def test_a_broken_snapshot_costs_a_sentence(tmp_path: Path, content: str) -> None:
    """Its path is named, with what to do."""
    path = tmp_path / "estate.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"estate\.json") as caught:
        snapshot.load(path)
    assert caught.value.fix


@pytest.mark.parametrize(
    "content", ["waivers: " + "[" * 5_000 + "]" * 5_000, "waivers: &a [*a]", "waivers: &a {<<: *a}", "\ud800"]
)
def test_broken_waivers_cost_a_sentence(tmp_path: Path, content: str) -> None:
    """Deep, endless or not text at all."""
    path = tmp_path / "waivers.yml"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=r"waivers\.yml") as caught:
        waivers.load(path)
    assert caught.value.fix


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "inf", "nan", "1" + "0" * 5_000])
def test_an_endless_count_is_not_a_number(value: object) -> None:
    """A cell of a workbook may hold it."""
    assert number(value) is None
