"""Searching parameters: the truth of a small space, limits, resuming, what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from studies import digests, study_of

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.study.grid.run import run_study
from windtunnel.study.grid.search import search_study

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.study.grid import Study

pytest.importorskip("optuna", reason="Optuna is not installed (extra search)")
#: Optuna warns that what it calls experimental may change.
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

QUANTA = (10, 40, 160)
SEARCH: dict[str, Any] = {
    "objective": "avg_jct",
    "policy": "las:quantum={quantum}",
    "trials": 12,
    "space": {"quantum": list(QUANTA), "queueing": ["strict", "skip"]},
}


def _study(folder: Path, **search: Any) -> Study:
    return study_of(folder, options={"restore_time": 3}, search={**SEARCH, **search})


def _truth(folder: Path) -> dict[tuple[int, str], dict[str, Any]]:
    """Return the metrics of every setting of the space, flown by hand."""
    jobs = wt.open_trace(folder / "jobs.csv").jobs
    return {
        (quantum, rule): wt.simulate(
            jobs, "2x8", f"las:quantum={quantum}", queueing=rule, restore_time=3
        ).metrics()
        for quantum in QUANTA
        for rule in ("strict", "skip")
    }


def _key(parameters: dict[str, Any]) -> tuple[int, str]:
    return parameters["quantum"], parameters["queueing"]


def test_the_best_is_the_best_of_those_tried(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        found = search_study(_study(tmp_path), tmp_path / "out", on=threads)
    truth = _truth(tmp_path)
    assert len(found.trials) == 12
    for trial in found.trials:
        assert trial.objective == truth[_key(trial.parameters)]["avg_jct"]
        assert trial.is_allowed
    tried = {_key(trial.parameters) for trial in found.trials}
    assert len(tried) > 3
    assert found.best is not None
    assert found.best.objective == min(truth[key]["avg_jct"] for key in tried)
    assert found.direction == "minimize"
    assert set(found.baseline) == {"fifo", "sjf"}
    jobs = wt.open_trace(tmp_path / "jobs.csv").jobs
    fifo = wt.simulate(jobs, "2x8", "fifo", restore_time=3).metrics()
    assert found.baseline["fifo"] == fifo["avg_jct"]


def test_what_breaks_a_limit_is_not_the_best(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with ThreadPoolExecutor(2) as threads:
        free = search_study(_study(tmp_path), tmp_path / "free", on=threads)
        worst = sorted({trial.objective for trial in free.trials if trial.objective})
        truth = _truth(tmp_path)
        preempted = {key: metrics["num_preemptions"] for key, metrics in truth.items()}
        assert free.best is not None
        limit = preempted[_key(free.best.parameters)] - 1
        assert any(value <= limit for value in preempted.values())
        bound = search_study(
            _study(tmp_path, constraints={"num_preemptions": {"max": limit}}, trials=16),
            tmp_path / "bound",
            on=threads,
        )
        none = search_study(
            _study(tmp_path, constraints={"utilization": {"min": 2.0}}),
            tmp_path / "none",
            on=threads,
        )
    assert len(worst) > 1
    for trial in bound.trials:
        value = preempted[_key(trial.parameters)]
        assert trial.worst == {"num_preemptions": value}
        assert trial.is_allowed == (value <= limit)
    allowed = [t.objective for t in bound.trials if t.is_allowed]
    assert bound.best is not None
    assert bound.best.objective == min(a for a in allowed if a is not None)
    assert none.best is None


def test_maximising_takes_the_largest(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        found = search_study(
            _study(tmp_path, objective="utilization", trials=6), tmp_path / "out", on=threads
        )
    assert found.direction == "maximize"
    assert found.best is not None
    assert found.best.objective == max(trial.objective or 0.0 for trial in found.trials)


def test_a_search_that_was_cut_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    span = {"quantum": {"low": 5, "high": 300, "log": True}}
    study = _study(tmp_path, space=span, trials=10, batch=2)
    with ThreadPoolExecutor(2) as threads:
        search_study(study, tmp_path / "whole", on=threads)
        flown: list[str] = []

        def cut(policy: str) -> None:
            flown.append(policy)
            if len(flown) == 7:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            search_study(study, tmp_path / "cut", on=threads, on_done=cut)
        there = {path.name for path in (tmp_path / "cut" / "runs").iterdir()}
        more: list[str] = []
        again = search_study(study, tmp_path / "cut", on=threads, on_done=more.append)
    assert len(there) == 7
    assert len(more) == again.results.num_runs - 7
    assert digests(tmp_path / "cut") == digests(tmp_path / "whole")
    trials = pq.read_table(tmp_path / "cut" / "trials.parquet")
    assert trials.num_rows == 10
    quanta = [trial.parameters["quantum"] for trial in again.trials]
    assert all(5 <= quantum <= 300 for quantum in quanta)
    assert len(set(quanta)) == 10


def test_the_folder_of_a_search_is_that_of_the_study(tmp_path: Path) -> None:
    study = _study(tmp_path, trials=2)
    with ThreadPoolExecutor(2) as threads:
        run_study(study, tmp_path / "out", on=threads)
        flown: list[str] = []
        search_study(study, tmp_path / "out", on=threads, on_done=flown.append)
    assert len(flown) == 2
    assert all(policy.startswith("las") for policy in flown)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"objective": "avg_wiat"}, "Did you mean 'avg_wait'"),
        ({"constraints": {"p9_wait": {"max": 3}}}, "Did you mean 'p99_wait'"),
        ({"constraints": {"p99_wait": {}}}, "min, max or both"),
        ({"direction": "minimise"}, "Did you mean 'minimize'"),
        ({"space": {}}, "at least one parameter"),
        ({"space": {"quantum": {"low": 3, "high": 3}}}, "low < high"),
        ({"space": {"quantum": {"low": 0, "high": 3, "log": True}}}, "logarithm"),
        ({"space": {"quantum": {"low": 0.5, "high": 3, "whole": True}}}, "whole numbers"),
        ({"space": {"quantum": []}}, "at least one value"),
        ({"space": {"quantm": [1]}}, "stands for no parameter|unknown name"),
        ({"trials": 0}, "trials >= 1"),
        ({"policy": None}, "the policy whose parameters"),
    ],
)
def test_a_wrong_search_is_refused(tmp_path: Path, search: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message), ThreadPoolExecutor(1) as threads:
        search_study(_study(tmp_path, **search), tmp_path / "out", on=threads)


def test_a_study_without_a_search_has_none(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="the study has none"):
        search_study(study_of(tmp_path), tmp_path / "out")
