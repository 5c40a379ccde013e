"""Twins judged: data whose dependence is known, and who comes near it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs
from windtunnel.study.likeness import JUDGED, columns_of, gaussian_copula, likeness, pair_distance
from windtunnel.traces.twin.fidelity import distance
from windtunnel.traces.twin.fit import fit

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

COUNT = 6000
#: Largest distance of two samples of 1,500 and 4,500 in one of a hundred draws, about.
NEAR = 1.63 / np.sqrt(1125)


def of_columns(gap: np.ndarray, duration: np.ndarray, gpus: np.ndarray) -> pa.Table:
    return as_jobs({"submit_time": np.cumsum(gap), "duration": duration, "num_gpus": gpus})


def same(jobs: pa.Table) -> pa.Table:
    return jobs


def judged(jobs: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["measure"]: row for row in likeness(jobs, same)}


def of_a_copula(seed: int) -> pa.Table:
    """Jobs independent of each other; the more GPUs, the longer, and the longer the gap."""
    draw = np.random.default_rng(seed)
    ties = [[1, 0.8, 0.5], [0.8, 1, 0.7], [0.5, 0.7, 1]]
    length, gpus, gap = draw.multivariate_normal([0, 0, 0], ties, COUNT).T
    return of_columns(
        60 * np.exp(gap), 600 * np.exp(length), np.exp2(np.floor(gpus + 2).clip(0, 4))
    )


def in_bursts(seed: int) -> pa.Table:
    """Jobs whose gaps come in bursts: each is short or long by turns of about 30."""
    draw = np.random.default_rng(seed)
    quiet = (np.cumsum(draw.random(COUNT) < 1 / 30) % 2).astype(bool)
    gap = np.where(quiet, draw.exponential(600, COUNT), draw.exponential(5, COUNT))
    return of_columns(gap, draw.exponential(600, COUNT), draw.choice([1.0, 2.0, 8.0], COUNT))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_from_a_copula_is_judged_near_the_copula(seed: int) -> None:
    rows = judged(of_a_copula(seed))
    for name, row in rows.items():
        if row["kind"] == "pair" or name in {"gap", "run time", "GPUs"}:
            assert row["copula"] < (2 if row["kind"] == "pair" else 1.3) * NEAR, name
    for name in ("gap and run time", "run time and GPUs", "gap and GPUs"):
        assert rows[name]["resampled"] > 1.8 * max(rows[name]["copula"], NEAR), name


@pytest.mark.parametrize("seed", range(3))
def test_what_comes_in_bursts_is_not(seed: int) -> None:
    rows = judged(in_bursts(seed))
    for name in ("gap", "run time", "GPUs", "run time and GPUs"):
        assert rows[name]["copula"] < 2.5 * NEAR, name  # a burst more or less
    for name in ("gap and the next job's", "jobs an hour", "wait, both flown"):
        for rival in ("copula", "resampled"):
            assert rows[name][rival] > rows[name]["log"], (name, rival)
            if name != "wait, both flown":
                assert rows[name][rival] > 3 * NEAR, (name, rival)
            assert rows[name]["twin"] == rows[name]["log"]  # this twin is the log


def test_pairs_by_hand() -> None:
    # Two of four pairs against the diagonal: the quadrant left above holds half more.
    a = np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    b = np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]])
    assert pair_distance(a, b) == pair_distance(b, a) == 0.25
    assert pair_distance(a, a) == 0.0
    assert pair_distance(a, a + 10) == 1.0
    assert pair_distance(a, np.empty((2, 0))) is None


def test_a_copula_keeps_the_columns_and_their_ties() -> None:
    columns = columns_of(of_a_copula(9))
    drawn = gaussian_copula(columns, np.random.default_rng(1))
    for name, values in columns.items():
        assert distance(values, drawn[name]) == 0.0
    wanted = np.corrcoef(np.log(columns["gap"]), np.log(columns["duration"]))[0, 1]
    found = np.corrcoef(np.log(drawn["gap"]), np.log(drawn["duration"]))[0, 1]
    assert abs(found - wanted) < 0.05


def test_too_few_jobs_are_not_judged() -> None:
    with pytest.raises(SpecError, match="found 150 jobs; expected 200"):
        likeness(of_a_copula(0).slice(0, 150), same)


@pytest.mark.slow
def test_a_twin_of_a_real_log_has_its_bursts(data_dir: Path) -> None:
    log = wt.open_trace(str(data_dir / "philly" / "philly_sia.csv.gz"), format="philly")

    def twin_of(jobs: pa.Table) -> pa.Table:
        return fit(log.with_jobs(jobs)).generate().jobs

    rows = {row["measure"]: row for row in likeness(log.jobs, twin_of)}
    hourly = rows["jobs an hour"]
    assert hourly["log"] < hourly["twin"] < 0.8 * min(hourly["resampled"], hourly["copula"])
    assert all(0 <= row[who] <= 1 for row in rows.values() for who in JUDGED)
