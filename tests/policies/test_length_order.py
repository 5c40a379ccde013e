"""Shortest first by any column or predictor, and QSSF, on cases worked by hand."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.policies import resolve_policy
from windtunnel.policies.length_order import Sjf

if TYPE_CHECKING:
    from pathlib import Path

ENGINES = ("reference", "compiled")
#: One GPU; job 0 holds it to 5, when the others wait.
JOBS = {
    "submit_time": [0.0, 1.0, 2.0, 3.0],
    "duration": [5.0, 4.0, 2.0, 3.0],
    "num_gpus": [1.0] * 4,
    "user": ["a", "a", "b", "a"],
    "user_dur": [9.0, 1.0, 3.0, 2.0],
    "votes": [0, 3, 2, 1],
}


def starts(policy: Any, engine: str, jobs: dict[str, Any] = JOBS, **options: Any) -> list[float]:
    out = wt.simulate(jobs, "pool:1", policy, engine=engine, **options)
    found: list[float] = out.table["start_time"].to_pylist()
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("sjf", [0, 10, 5, 7]),
        ("sjf:by=duration", [0, 10, 5, 7]),
        ("sjf:by=user_dur", [0, 5, 12, 9]),  # 1, then 3 (2), then 2 (3)
        ("sju", [0, 5, 12, 9]),
        ("sjf:by=votes", [0, 10, 8, 5]),  # integers order, too
        ("sjf:by=submit_time", [0, 5, 9, 11]),
        ("sjf:by=oracle", [0, 10, 5, 7]),
        (Sjf("user_dur"), [0, 5, 12, 9]),
    ],
)
def test_orders(engine: str, policy: Any, expected: list[float]) -> None:
    assert starts(policy, engine) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_qssf_takes_equal_gpu_time_as_equal(engine: str) -> None:
    jobs = {
        "submit_time": [0.0, 1.0, 2.0],
        "duration": [10.0, 14.0, 1.0],
        "num_gpus": [1.0, 0.07, 0.98],
    }
    # 14 * 0.07 is 0.9800000000000001: the second job came first, and goes first.
    out = wt.simulate(jobs, "1x1", "qssf:by=duration", engine=engine)
    assert out.table["start_time"].to_pylist() == [0.0, 10.0, 24.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_qssf_counts_gpus(engine: str) -> None:
    jobs = {
        "submit_time": [0.0, 1.0, 1.0],
        "duration": [5.0, 3.0, 4.0],
        "num_gpus": [2.0, 2.0, 1.0],
    }
    for policy, expected in (("sjf", [0, 5, 8]), ("qssf:by=duration", [0, 9, 5])):
        out = wt.simulate(jobs, "pool:2", policy, engine=engine)  # 2 x 3 s against 1 x 4 s
        assert out.table["start_time"].to_pylist() == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_a_predictor_goes_by_what_had_ended_in_the_record(engine: str) -> None:
    # User a's jobs took 8 s, b's 1 s, recorded before 20; at 20 both wait behind c's.
    jobs = {
        "submit_time": [0.0, 0.0, 20.0, 21.0, 22.0],
        "start_time": [0.0, 8.0, 20.0, 30.0, 40.0],
        "end_time": [8.0, 9.0, 30.0, 31.0, 48.0],
        "duration": [8.0, 1.0, 10.0, 1.0, 8.0],
        "num_gpus": [1.0] * 5,
        "user": ["a", "b", "c", "a", "b"],
    }
    # The truth has the fourth job shorter; the past says that a's jobs take 8 s and b's 1 s.
    assert starts("sjf", engine, jobs)[3:] == [30.0, 31.0]
    assert starts("sju", engine, jobs)[3:] == [38.0, 30.0]
    # Had nothing of a and b ended by then, all would have had the same mean, or none.
    late = {**jobs, "start_time": [100.0] * 5, "end_time": [108.0, 101.0, 110.0, 101.0, 108.0]}
    assert starts("sju", engine, late)[3:] == [30.0, 31.0]


def test_what_was_ordered_by_is_recorded() -> None:
    out = wt.simulate(JOBS, "pool:1", "sju")
    assert out.settings["order_by"] == "column user_dur"
    assert out.notes == ()
    without = {name: values for name, values in JOBS.items() if name != "user_dur"}
    out = wt.simulate(without, "pool:1", "sju")
    assert out.settings["order_by"] == "predictor sju"
    assert out.notes[0].startswith("sju: sju predicts each job at its submission, from jobs that")
    assert out.notes[-1] == "sju: 4 job(s) have no prediction and go first (4)."
    asked = {**without, "estimate": [9.0, 9.0, None, 1.0]}
    out = wt.simulate(asked, "pool:1", "sju")
    assert out.table["start_time"].to_pylist() == [0, 10, 5, 7]  # 2 (unknown), 3 (1), 1 (9)
    assert out.notes[-1] == (
        "sju: 4 job(s) have no prediction and go by the wall time asked for (3), first (1)."
    )
    assert "sju" not in out.jobs.column_names  # what was flown is the jobs, not the predictions
    noisy = wt.simulate(JOBS, "pool:1", "sjf:by=noise", seed=3)
    assert noisy.notes == ("noise:seed=3 knows the true run times: a bound, not a predictor.",)
    assert noisy.settings["order_by"] == "predictor noise:seed=3"


def test_a_predictors_parameters_stand_behind_its_name() -> None:
    policy = resolve_policy("sjf:by=rolling:last=5:aging=7d")
    assert isinstance(policy, Sjf)
    assert (policy.by, policy.aging) == (("rolling:last=5",), 7 * 86_400.0)
    assert policy.label == "sjf:by=rolling:last=5:aging=7d"
    assert resolve_policy("sjf:aging=10:by=mean:user").by == ("mean:user",)
    out = wt.simulate(JOBS, "pool:1", "sjf:by=rolling:last=5:statistic=median")
    assert out.settings["order_by"] == "predictor rolling:last=5:statistic=median"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("sjf:by=crat", "policy sjf:by=crat: found 'crat', which is neither a column of the jobs"),
        ("sjf:by=crat", "Did you mean 'cart'?"),
        ("sjf:by=usr_dur", "Did you mean 'user_dur'?"),
        (
            "sjf:by=user",
            "policy sjf:by=user: the column 'user' holds 'a' in row 1; expected numbers.",
        ),
        ("sjf:by=rolling:lsat=3", "predictor rolling: unknown name 'lsat'. Did you mean 'last'?"),
        ("sjf:by=3", "policy sjf, by: found 3.0; expected a column"),
        ("sjf:bye=user_dur", "policy sjf:bye=user_dur: unknown name 'bye'. Did you mean 'by'?"),
        ("sjf:by=user_dur:by=votes", "found 'by' twice"),
        ("sjf:aging=-1", "policy sjf, aging: found -1.0; expected seconds > 0"),
        ("sjf:aging=nan", "policy sjf, aging: found nan"),
        ("sjf:aging=inf", "policy sjf, aging: found inf"),
        ("sjf-estimate:by=votes", "unknown name 'by'"),
    ],
)
def test_what_cannot_be_ordered_by(policy: str, message: str) -> None:
    with pytest.raises(wt.SpecError) as error:
        wt.simulate(JOBS, "pool:1", policy)
    assert message in str(error.value)
    with pytest.raises(wt.SpecError) as error:
        wt.compare(JOBS, "pool:1", ["fifo", policy])
    assert message in str(error.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_without_a_value_is_named(engine: str) -> None:
    jobs = {**JOBS, "user_dur": [1.0, 2.0, None, 3.0]}
    with pytest.raises(wt.PolicyError, match=r"job '2': 1 job\(s\) have no user_dur, which the"):
        wt.simulate(jobs, "pool:1", "sjf:by=user_dur", engine=engine)


@pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="scikit-learn is of the extra ml"
)
def test_qssf_goes_by_its_own_mix() -> None:
    out = wt.simulate(JOBS, "pool:1", "qssf")
    assert out.settings["order_by"] == "predictor gbdt"
    assert out.settings["queueing"] == "strict"


def test_predictions_join_a_users_own_policy(tmp_path: Path) -> None:
    class Mine(wt.Policy):
        name = "mine"
        by = ("rolling",)

        def rank(self, jobs: wt.Jobs) -> Any:
            return -jobs.rolling

    out = wt.simulate(JOBS, "pool:1", Mine())
    assert (out.settings["order_by"], out.settings["engine"]) == ("predictor rolling", "compiled")
