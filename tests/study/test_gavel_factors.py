"""Factors from Gavel's throughput tables, against what is known of the published file."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING

import pytest

import windtunnel as wt
from windtunnel.sim.factor_tables import ShareFactor, SpreadFactor
from windtunnel.study.gavel_factors import gavel_share_factors, gavel_spread_factors

if TYPE_CHECKING:
    from pathlib import Path

A1, A2, B1 = "('A', 1)", "('A', 2)", "('B', 1)"
TABLE = {
    "v100": {
        A1: {"null": 10.0, A1: [4.0, 4.0], B1: [8.0, 3.0]},
        A2: {"null": 20.0, A2: [1.0, 1.0]},
        B1: {"null": 5.0, A1: [3.0, 8.0], B1: [0.0, 0.0]},
        "('C', 2)": {"null": 0.0},
    },
    "v100_unconsolidated": {A1: {"null": 9.0}, A2: {"null": 5.0}, "('C', 2)": {"null": 1.0}},
}


def test_a_small_table(tmp_path: Path) -> None:
    path = tmp_path / "throughputs.json"
    path.write_text(json.dumps(TABLE))
    assert gavel_spread_factors(path) == (SpreadFactor("A", 2.0, 0.25),)
    expected = (ShareFactor("A", "A", 0.4, 0.4), ShareFactor("A", "B", 0.8, 0.6))
    assert gavel_share_factors(path) == expected
    with pytest.raises(wt.TraceError, match="found 'p100'; expected one of v100"):
        gavel_share_factors(path, "p100")
    path.write_text('{"v100": {"A": {"null": 1}}, "v100_unconsolidated": {}}')
    with pytest.raises(wt.TraceError, match="expected a key like"):
        gavel_spread_factors(path)
    path.write_text('{"v100": 3}')
    with pytest.raises(wt.TraceError, match="expected an object"):
        gavel_spread_factors(path)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["simulation_throughputs", "physical_cluster_throughputs"])
@pytest.mark.parametrize("gpu_type", ["v100", "p100", "k80"])
def test_every_published_table_is_a_model(data_dir: Path, name: str, gpu_type: str) -> None:
    path = data_dir / "gavel" / f"{name}.json"
    spread, share = gavel_spread_factors(path, gpu_type), gavel_share_factors(path, gpu_type)
    model = wt.Slowdown(spread_by=spread, share_by=share)
    assert len(spread) > 50
    assert len(share) > 250
    assert wt.Slowdown.from_mapping(model.to_mapping()) == model


def test_the_published_medians(data_dir: Path) -> None:
    path = data_dir / "gavel" / "simulation_throughputs.json"
    factors = [row.factor for row in gavel_spread_factors(path)]
    found = (len(factors), statistics.median(factors), min(factors), max(factors))
    assert found == pytest.approx((57, 0.42, 0.10, 1.35), abs=0.005)
    sums = [r.factor + r.other_factor for r in gavel_share_factors(path)]
    assert (min(sums), max(sums)) == pytest.approx((0.35, 2.0), abs=0.005)
