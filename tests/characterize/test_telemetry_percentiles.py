"""Percentiles of samples, checked against numpy on the same values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.characterize.telemetry_counts import AT, percentiles
from windtunnel.errors import SchemaError, SpecError, TraceError
from windtunnel.quantiles import quantiles
from windtunnel.telemetry import open_telemetry

if TYPE_CHECKING:
    from pathlib import Path


def samples(values: list[float], metric: str = "u") -> pa.Table:
    return pa.table({"metric": [metric] * len(values), "value": np.array(values, np.float64)})


_VALUES = st.lists(
    st.sampled_from([0.0, 0.0, 1.0, 50.5, 100.0, -7.0]) | st.floats(-1e9, 1e9),
    min_size=1,
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(_VALUES, st.lists(st.floats(0, 100), min_size=1, max_size=6, unique=True))
def test_percentiles_equal_numpy(values: list[float], at: list[float]) -> None:
    rows = percentiles(samples(values), "u", at=at).to_pylist()
    assert [row["percent"] for row in rows] == at
    expected = quantiles(np.array(values), [p / 100 for p in at])
    scale = max(1.0, float(np.abs(values).max()))
    for row, value in zip(rows, expected, strict=True):
        assert row["value"] == pytest.approx(value, abs=1e-9 * scale)
        assert row["n"] == len(values)
        assert row["zero_share"] == values.count(0.0) / len(values)
        assert row["mean"] == pytest.approx(np.mean(values), abs=1e-9 * scale)


def test_every_metric_has_its_own_and_a_thousand_percents_are_the_published_curve() -> None:
    rng = np.random.default_rng(7)
    power, util = rng.normal(300, 50, 5000).round(1), rng.integers(0, 101, 3001).astype(float)
    both = pa.concat_tables([samples(util.tolist(), "u"), samples(power.tolist(), "p")])
    at = (np.linspace(0, 1, 1000) * 100).tolist()
    found = percentiles(both, at=at)
    assert found["metric"].to_pylist() == ["p"] * 1000 + ["u"] * 1000
    for name, values in (("p", power), ("u", util)):
        curve = np.array(found["value"].to_pylist())[np.array(found["metric"].to_pylist()) == name]
        np.testing.assert_allclose(curve, np.percentile(values, at), rtol=1e-12, atol=1e-9)
    assert percentiles(both, ["u"]).num_rows == len(AT)
    assert percentiles(both, "other").num_rows == 0


def test_what_cannot_be_asked() -> None:
    for at in ([101.0], [-1.0], [float("nan")], ["x"], []):
        with pytest.raises(SpecError, match="from 0 to 100"):
            percentiles(samples([1.0]), at=at)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="'metric'"):
        percentiles(samples([1.0]).drop_columns("metric"))


def test_a_stream_of_files_is_read_once_and_again_at_each_query(tmp_path: Path) -> None:
    path = tmp_path / "GPU_UTIL.csv"
    path.write_text("Time,a-0,a-1\n" + "".join(f"{15 * i},{i % 7},0\n" for i in range(500)))
    telemetry = open_telemetry(path)
    stream = telemetry.relation()
    for _ in range(2):
        (row,) = percentiles(stream, "GPU_UTIL", at=[50]).to_pylist()
        assert (row["n"], telemetry.samples, telemetry.rows_read) == (1000, 1000, 1000)
        values = [i % 7 for i in range(500)] + [0] * 500
        assert row["value"] == np.median(values)
    path.write_text("Time,a-0,a-1\n0,1,2\n15,1,oops\n")
    with pytest.raises(TraceError, match="line 3, column 'a-1': found 'oops'"):
        percentiles(stream)


def test_every_backend_gives_the_exact_quantiles(backend: Any) -> None:
    values = np.random.default_rng(3).normal(size=500).round(2)
    rows = percentiles(
        backend(samples(values.tolist())), "u", at=[0, 12.5, 50, 99, 100]
    ).to_pylist()
    found = [row["value"] for row in rows]
    assert found == pytest.approx(np.percentile(values, [0, 12.5, 50, 99, 100]).tolist(), rel=1e-12)
