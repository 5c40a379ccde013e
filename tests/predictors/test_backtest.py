"""Back-tests: published shares, sums over parts, leaks."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_histories import history, small_histories

from windtunnel.errors import SchemaError, SpecError
from windtunnel.predictors import PREDICTORS, backtest, predict_online
from windtunnel.predictors.accuracy import accuracy
from windtunnel.traces.pai_simulator import read_pai_simulator

if TYPE_CHECKING:
    from pathlib import Path

#: Jobs file -> share of jobs, in per cent, whose estimate is within 25 % of the truth.
STATED = {
    "dev_jobs_2000": {"user_dur": 31.6, "user_gpu_dur": 42.7, "group_dur": 57.3,
                      "group_gpu_dur": 57.1},
    "dev_gang_900": {"user_dur": 26.4, "user_gpu_dur": 41.1, "group_dur": 64.3,
                     "group_gpu_dur": 64.1},
}  # fmt: skip


@pytest.mark.parametrize("name", STATED)
def test_the_stated_shares_of_given_estimates_come_out(data_dir: Path, name: str) -> None:
    path = data_dir / "pai_sim_reference" / f"{name}.csv"
    jobs = read_pai_simulator(path).jobs
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for column, stated in STATED[name].items():
        found = backtest(jobs, f"column:{column}").summary()
        # As stated, to the digit that is; and job by job from the file.
        assert found["within_25"] * 100 == pytest.approx(stated, abs=0.0501)
        near = sum(abs(float(r[column]) - int(r["duration"])) / int(r["duration"]) <= 0.25
                   for r in rows)  # fmt: skip
        assert found["within_25"] == near / len(rows)
        assert (found["n"], found["num_unpredicted"]) == (len(rows), 0)


def test_recurring_groups_are_predicted_better_than_users(data_dir: Path) -> None:
    jobs = read_pai_simulator(data_dir / "pai_sim_reference" / "dev_jobs_2000.csv").jobs
    within = {name: backtest(jobs, name).summary()["within_25"] for name in ("sju", "sjg")}
    assert within["sjg"] > within["sju"] + 0.1


@pytest.mark.slow
@given(
    small_histories(),
    st.sampled_from(["rolling", "rolling:statistic=median:last=2", "qssf-rolling", "sjgg", "sju"]),
    st.integers(0, 12),
    st.randoms(use_true_random=False),
)
def test_what_comes_later_changes_no_digit_of_a_prediction(
    jobs: dict[str, list[Any]], model: str, now: int, random: Any
) -> None:
    before = predict_online(jobs, model, coverage=0.5, refresh=2.0)
    changed = {name: list(values) for name, values in jobs.items()}
    for row, end in enumerate(jobs["end_time"]):
        if end > now or jobs["submit_time"][row] >= now:
            start = max(jobs["start_time"][row], now)
            changed["start_time"][row] = float(start)
            changed["duration"][row] = float(random.randint(1, 99))
            changed["end_time"][row] = start + changed["duration"][row]
        if jobs["submit_time"][row] > now:
            changed["template"][row] = random.choice(["a", "c", None])
            changed["user"][row] = random.choice(["ann", "eve", None])
    after = predict_online(changed, model, coverage=0.5, refresh=2.0)
    early = [row for row, time in enumerate(jobs["submit_time"]) if time <= now]
    rows, others = before.to_pylist(), after.to_pylist()
    assert [rows[row] for row in early] == [others[row] for row in early]


def test_parts_add_up_and_are_measured_like_the_whole() -> None:
    jobs = history(400, spread=0.8)
    test = backtest(jobs, "rolling", coverage=0.8)
    whole = test.summary()
    assert whole["n"] == whole["num_jobs"] == 400
    for parts in (test.by_size(), test.by_recurrence(), test.by_source()):
        rows = parts.to_pylist()
        assert sum(row["n"] for row in rows) == whole["n"]
        near = sum((row["within_25"] or 0) * row["num_predicted"] for row in rows)
        assert near == pytest.approx(whole["within_25"] * whole["num_predicted"])
        assert sum(row["num_intervals"] for row in rows) == whole["num_intervals"]
    table = test.table
    recurring = [n > 0 for n in table["template_runs"].to_pylist()]
    predicted, true = (
        table[name].to_numpy(zero_copy_only=False) for name in ("predicted", "duration")
    )
    (first,) = (r for r in test.by_recurrence().to_pylist() if r["recurrence"] == "recurring")
    expected = accuracy(predicted[recurring], true[recurring])
    assert {key: first[key] for key in expected} == expected
    assert [row["size"] for row in test.by_size().to_pylist()] == ["1", "2", "3-4", "5-8"]
    sources = {row["source"]: row["n"] for row in test.by_source().to_pylist()}
    assert whole["num_fallback"] == sources.get("user", 0) + sources.get("global", 0)
    assert whole["num_unpredicted"] == sources["none"] > 0
    cdf = test.error_cdf([0.25, 1e12]).to_pylist()
    assert [row["share"] for row in cdf] == [whole["within_25"], 1.0]
    assert cdf[0]["n"] == whole["num_predicted"]
    assert whole["nominal_coverage"] == 0.8


def test_only_jobs_between_warm_up_and_horizon_are_judged_but_all_are_learnt_from() -> None:
    jobs = history(300)
    whole = backtest(jobs, "rolling")
    part = backtest(jobs, "rolling", warm_up=5000.0, horizon=20_000.0)
    submit = np.asarray(jobs["submit_time"])
    chosen = (submit >= 5000) & (submit < 20_000)
    assert part.table["judged"].to_pylist() == chosen.tolist()
    assert part.table["predicted"].equals(whole.table["predicted"])
    assert part.summary()["n"] == chosen.sum() < 300
    with pytest.raises(SpecError, match="no job was submitted between"):
        backtest(jobs, "rolling", warm_up=1e12)
    with pytest.raises(SpecError, match="time in seconds"):
        backtest(jobs, "rolling", horizon=math.nan)


def test_jobs_that_cannot_be_judged_are_counted() -> None:
    jobs = {
        "submit_time": [0.0, 10.0, 20.0, None],
        "duration": [5.0, None, 5.0, 5.0],
        "num_gpus": [1.0] * 4,
        "status": ["completed", "pending", "running", "completed"],
    }
    test = backtest(jobs, "oracle")
    assert (test.summary()["num_jobs"], test.summary()["n"]) == (4, 1)
    assert test.table["judged"].to_pylist() == [True, False, False, False]
    assert len(test.notes) == 3
    assert test.peeks
    with pytest.raises(SchemaError, match="at least one job that has ended"):
        backtest({**jobs, "status": ["running"] * 4}, "rolling")


def test_a_run_time_of_nothing_is_right_or_infinitely_wrong() -> None:
    jobs = {"submit_time": [0.0, 10.0, 20.0], "duration": [0.0, 0.0, 4.0], "num_gpus": [1.0] * 3}
    found = backtest(jobs, "rolling").summary()
    assert (found["num_predicted"], found["num_unpredicted"]) == (2, 1)
    assert found["within_100"] == 1.0  # 0 s for 0 s; 0 s for 4 s is off by all of it
    assert found["num_log_ratios"] == 0


def test_every_predictor_says_one_thing_a_job() -> None:
    jobs = history(30)
    for name in PREDICTORS:
        if name in ("cart", "gbdt", "quantile"):
            pytest.importorskip("sklearn")
        spec = "column:num_gpus" if name == "column" else name
        found = predict_online(jobs, spec)
        assert found["job_id"].equals(jobs["job_id"])
        assert all(
            (row["predicted"] is None) == (row["source"] == "none") for row in found.to_pylist()
        )
