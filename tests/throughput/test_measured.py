"""Throughput tables: the one that comes with us, and the published files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from windtunnel.errors import TraceError
from windtunnel.throughput import gavel_speeds, read_throughputs

if TYPE_CHECKING:
    from pathlib import Path


def test_shipped_speeds_are_the_published_ones(data_dir: Path) -> None:
    published = read_throughputs(data_dir / "gavel" / "simulation_throughputs.json")
    ours = gavel_speeds()
    assert len(ours.job_types) == 83
    for gpu_type in ("k80", "p100", "v100"):
        assert ours.alone[gpu_type] == published.alone[gpu_type]


def test_published_example() -> None:
    """Its README: ResNet-50 batch 64, 1 GPU: V100 4.3948, P100 2.6195, K80 0.6190 steps/s."""
    model = "ResNet-50 (batch size 64)"
    found = [gavel_speeds().speed(model, 1, name) for name in ("v100", "p100", "k80")]
    assert found == pytest.approx([4.3948, 2.6195, 0.6190], abs=5e-5)
    assert gavel_speeds().speed(model, 64, "v100") is None
    assert gavel_speeds().speed(model, 0.5, "v100") is None
    assert gavel_speeds().speed("ResNet-50 (batch size 128)", 4, "k80") == 0


@pytest.mark.parametrize("name", ["simulation", "physical_cluster"])
def test_published_tables(data_dir: Path, name: str) -> None:
    table = read_throughputs(data_dir / "gavel" / f"{name}_throughputs.json")
    assert table.gpu_types == (
        "k80", "k80_unconsolidated", "p100", "p100_unconsolidated", "v100", "v100_unconsolidated",
    )  # fmt: skip
    assert len(table.alone["v100"]) == 83
    assert len(table.alone["k80_unconsolidated"]) == 77
    pairs = table.together["v100"]
    for (one, other), (first, second) in pairs.items():
        assert pairs[other, one] == (second, first)
        assert one[1] == other[1]
    assert table.pair_speeds(("A3C", 1), ("no such model", 1), "v100") == (0, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "not JSON"),
        ("{}", "speeds by GPU type"),
        ('{"v100": 3}', "an object"),
        ('{"v100": {"LM": {"null": 1}}}', "a key like"),
        ('{"v100": {"(\'LM\', 0)": {"null": 1}}}', "a key like"),
        ('{"v100": {"(\'LM\', 1)": {"null": -1}}}', "steps per second"),
        ('{"v100": {"(\'LM\', 1)": {"null": NaN}}}', "steps per second"),
        ('{"v100": {"(\'LM\', 1)": {"(\'LM\', 1)": [1]}}}', "two for a pair"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "speeds.json"
    path.write_text(content)
    with pytest.raises(TraceError, match=message):
        read_throughputs(path)
    with pytest.raises(TraceError, match="No such file"):
        read_throughputs(tmp_path / "nowhere.json")


def test_small_table(tmp_path: Path) -> None:
    path = tmp_path / "speeds.json"
    one, other = "('LM', 1)", "('A3C', 1)"
    path.write_text(json.dumps({"b": {one: {"null": 2, other: [1.5, 3]}}, "a": {one: {"null": 1}}}))
    table = read_throughputs(path)
    assert table.gpu_types == ("a", "b")
    assert table.job_types == (("LM", 1),)
    assert table.pair_speeds(("LM", 1), ("A3C", 1), "b") == (1.5, 3)
