"""Every question about jobs, asked on Spark and on DuckDB, over the same tables: the same answers.

Integers and texts are equal, floats to 1e-9 of their size. Run by ``make test-spark``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from windtunnel import characterize as ch
from windtunnel.characterize.arrivals import PERIODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.companions import Relation

    Question = Callable[[Relation, Relation], Any]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        "spark" not in os.environ.get("WINDTUNNEL_BACKENDS", ""), reason="make test-spark runs it"
    ),
]

#: A change of the clock lies in the tables' fortnight.
CALENDAR: dict[str, Any] = {"epoch": "2017-10-30T07:00:00+00:00", "zone": "America/Los_Angeles"}
EPOCH = CALENDAR["epoch"]

QUESTIONS: dict[str, Question] = {
    "overview": lambda jobs, _: ch.overview(jobs),
    "distribution": lambda jobs, _: ch.distribution(jobs, "slowdown"),
    **{f"shares by {by}": lambda jobs, _, by=by: ch.shares(jobs, by)
       for by in ("num_gpus", "vc", "user")},
    "count_cdf": lambda jobs, _: ch.count_cdf(jobs, "duration", ch.POWERS_DURATION),
    "count_cdf by workload": lambda jobs, _: ch.count_cdf(
        jobs, "wait", ch.POWERS_QUEUE, by="workload", where="all"),
    "count_cdf of a source's column": lambda jobs, _: ch.count_cdf(
        jobs, "source_queue", ch.POWERS_QUEUE, where="cpu"),
    "sum_cdf": lambda jobs, _: ch.sum_cdf(jobs, "num_gpus", "duration", ch.GPU_GRID),
    "state_shares": lambda jobs, _: ch.state_shares(jobs, gpu_time="source_gpu_time"),
    **{f"states by {by}": lambda jobs, _, by=by: ch.state_shares(jobs, by, where="all")
       for by in ("num_gpus", "gpu_count", "sharing", "num_attempts")},
    "workload_mix": lambda jobs, _: ch.workload_mix(jobs, ["Eval", "SFT", "MLLM"]),
    "box_statistics": lambda jobs, _: ch.box_statistics(jobs, "num_gpus", by="workload"),
    "spread_by": lambda jobs, _: ch.spread_by(jobs, "jct", by="philly_size"),
    "quantile_curve": lambda jobs, _: ch.quantile_curve(jobs, "cpu_time", by="gpu_type"),
    "top_users": lambda jobs, _: ch.top_users(jobs),
    "concentration": lambda jobs, _: ch.concentration(jobs, "wait", where="all"),
    "recurrence": lambda jobs, _: ch.recurrence(jobs),
    "recurrence of templates": lambda jobs, _: ch.recurrence(
        jobs, missing="drop", where="gpu"),
    "gang_sizes": lambda jobs, _: ch.gang_sizes(jobs, where="gpu"),
    "gangs_of_tasks": lambda _, holdings: ch.gangs_of_tasks(holdings),
    "waited_shares": lambda jobs, _: ch.waited_shares(jobs),
    "waited_share_cdf": lambda jobs, _: ch.waited_share_cdf(
        jobs, np.linspace(0, 1, 21).tolist(), where="gpu"),
    "failures_by": lambda jobs, _: ch.failures_by(jobs, "user"),
    "time_to_failure": lambda jobs, _: ch.time_to_failure(jobs, ch.POWERS_DURATION),
    **{f"arrivals by {period}": lambda jobs, _, period=period: ch.arrivals_by(
        jobs, period, by="vc", **CALENDAR) for period in PERIODS},
    "hourly_boxes": lambda jobs, _: ch.hourly_boxes(jobs, "num_gpus", **CALENDAR),
    "usage_series": lambda jobs, _: ch.usage_series(
        jobs, 4096, step=600, epoch=EPOCH, where="gpu"),
    "usage_series of helios": lambda jobs, _: ch.usage_series(
        jobs, {"vc0": 900, "vc1": 8}, by="vc", compat="helios", epoch=EPOCH),
    "cluster_summary": lambda jobs, _: ch.cluster_summary(jobs, source=True).row,
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_spark_answers_as_duckdb(
    name: str, holed: pa.Table, holdings: pa.Table, on_spark: Callable[[pa.Table], Relation]
) -> None:
    ask = QUESTIONS[name]
    expected = ask(holed, holdings)
    found = ask(on_spark(holed), on_spark(holdings))
    if isinstance(expected, pa.Table):
        assert found.schema == expected.schema
        expected, found = expected.to_pylist(), found.to_pylist()
        assert expected  # an answer without rows would say nothing
    _same(found, expected, name)


def _same(found: Any, expected: Any, where: str) -> None:
    """Compare nested answers: floats to 1e-9 of their size, all else exactly."""
    assert type(found) is type(expected), where
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key, value in expected.items():
            _same(found[key], value, f"{where}, {key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
            _same(mine, theirs, f"{where}, row {i}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), where
    else:
        assert found == expected, where
