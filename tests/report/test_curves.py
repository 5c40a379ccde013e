"""The data behind the charts: small, exact, and honest about zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel.report import curves

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.sim.outcome import Outcome


def test_a_distribution_is_small_rising_and_starts_at_the_share_of_zeros() -> None:
    rng = np.random.default_rng(0)
    sample = np.concatenate([np.zeros(3000), rng.lognormal(6, 2, 7000) + 1.001])
    points = np.array(curves.distribution(sample, 1e9))
    assert len(points) <= curves.MAX_POINTS
    assert (np.diff(points, axis=0) >= 0).all()
    assert points[0].tolist() == [curves.EDGE, 0.3]
    assert points[-1].tolist() == [1e9, 1.0]
    for x, share in points[1:-1:37]:
        assert (sample <= x).mean() == pytest.approx(share, abs=1e-3)


def test_a_distribution_of_zeros_only_is_a_line_at_one() -> None:
    points = curves.distribution(np.zeros(5), 10.0)
    assert {share for _, share in points} == {1.0}
    assert points[0][0] == curves.EDGE
    assert points[-1][0] == 10.0


def test_a_distribution_of_one_or_no_value() -> None:
    assert curves.distribution(np.empty(0), 10.0) == []
    one = curves.distribution(np.array([50.0]), 100.0)
    assert one[0] == (50.0, 0.0)
    assert (50.0, 1.0) in one
    assert one[-1] == (100.0, 1.0)


def test_curves_over_time_keep_the_area(make_run: Callable[..., Outcome]) -> None:
    run = make_run(50)
    rows, unit = curves.over_time({"a": run}, "utilization")
    assert unit == "days"
    assert len(rows) == curves.MAX_BINS
    start, stop = curves.span([run])
    mean = np.mean([row["value"] for row in rows])
    held = float((run.num_gpus * run.flight.run_time).sum())
    assert mean * (stop - start) * run.cluster.num_gpus == pytest.approx(held, rel=1e-6)
    assert all(row["value"] == row["first"] for row in rows)


def test_all_runs_share_the_bins_and_carry_the_first_run(runs: dict[str, Outcome]) -> None:
    rows, _ = curves.over_time(runs, "queue")
    by = {name: [r for r in rows if r["policy"] == name] for name in runs}
    assert len({tuple(r["time"] for r in part) for part in by.values()}) == 1
    first = [r["value"] for r in by["fifo"]]
    assert [r["first"] for r in by["srtf"]] == first


def test_size_classes_are_in_order_and_waits_not_under_the_edge(runs: dict[str, Outcome]) -> None:
    rows = curves.waits_by_size(runs)
    order = curves.size_order({row["size"] for row in rows})
    assert order == ["1", "2", "3-4", "5-8", "9-16", "33-64"]
    assert all(curves.EDGE <= row["p50"] <= row["p90"] <= row["p99"] for row in rows)


def test_shares_add_up_to_one(runs: dict[str, Outcome]) -> None:
    rows = curves.shares_by_size(runs["fifo"])
    for kind in ("jobs", "GPU time held"):
        assert sum(r["share"] for r in rows if r["of"] == kind) == pytest.approx(1)


def test_runs_without_any_start_give_no_rows(idle: Outcome, empty: Outcome) -> None:
    for run in (idle, empty):
        assert curves.distributions({"a": run}, "wait") == []
        assert curves.over_time({"a": run}, "utilization")[0] == []
        assert curves.waits_by_size({"a": run}) == []
