"""Which way is better, and what a difference says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.report.measures import BY_KEY, MEASURES, difference, shown

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome


def test_every_measure_is_a_metric_of_a_run(runs: dict[str, Outcome]) -> None:
    without = set(runs["fifo"].metrics())
    keys = {measure.key for measure in MEASURES}
    deadlines = {"num_missed_deadlines", "slo_attainment", "avg_tardiness"}
    elastic = {"reconfigurations_per_job", "penalty_gpu_time", "promises_kept_running"}
    assert keys - without == deadlines | elastic
    jobs = {"submit_time": [0.0], "duration": [2.0], "num_gpus": [1.0], "deadline": [1.0]}
    assert keys - elastic <= set(wt.simulate(jobs, "pool:1").metrics())
    assert keys <= set(wt.simulate(jobs, "1x1", "fixed-plan").metrics())


@pytest.mark.parametrize(
    ("key", "base", "value", "verdict", "words"),
    [
        ("avg_jct", 100.0, 39.0, "better", "\u25bc 61 % (1 m 01 s) better"),
        ("avg_jct", 100.0, 150.0, "worse", "\u25b2 50 % (50 s) worse"),
        ("utilization", 0.5, 0.6, "better", "\u25b2 10 points better"),
        ("utilization", 0.6, 0.575, "worse", "\u25bc 2.5 points worse"),
        ("num_finished", 100, 90, "worse", "\u25bc 10 % (10) worse"),
        ("gpu_time", 100.0, 110.0, "neutral", "\u25b2 10 % (0.00 GPU h)"),
        ("avg_wait", 0.0, 0.0, "same", "="),
        ("avg_wait", 0.0, 5.0, "worse", "\u25b2 5 s from 0 worse"),
        ("avg_wait", 5.0, 0.0, "better", "\u25bc 100 % (5 s) better"),
        ("avg_wait", 5.0, 5.001, "same", "="),
        ("avg_preempted_time", 1e-14, -3e-14, "same", "="),
        ("avg_wait", None, 5.0, "unknown", ""),
        ("avg_wait", 5.0, None, "unknown", ""),
        ("avg_wait", float("nan"), 5.0, "unknown", ""),
    ],
)
def test_difference(key: str, base: Any, value: Any, verdict: str, words: str) -> None:
    found = difference(BY_KEY[key], base, value)
    assert found.verdict == verdict
    assert found.words == words


def test_optional_measures_show_only_where_there_is_something(runs: dict[str, Outcome]) -> None:
    metrics = runs["fifo"].metrics()
    assert "num_preemptions" not in {m.key for m in shown([metrics])}
    assert "num_preemptions" in {m.key for m in shown([metrics, {**metrics, "num_preemptions": 3}])}
    dust = {**metrics, "avg_preempted_time": 5e-14}
    assert "avg_preempted_time" not in {m.key for m in shown([dust])}
