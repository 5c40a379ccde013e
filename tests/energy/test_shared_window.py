"""Runs that are compared are charged for one window: the difference is the jobs' own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.energy import PowerModel, Series, account, shared_end

if TYPE_CHECKING:
    from pathlib import Path

DRAWS = {
    "gpus": {"default": {"idle_w": 60, "active_w": 380}},
    "pue": 1.25,
    "host_w": 100,
}
MODEL = PowerModel.from_mapping(DRAWS)


def flown(seed: int, shift: object = None, policy: str = "fifo", **more: Any) -> wt.Outcome:
    random = np.random.default_rng(seed)
    jobs = {
        "submit_time": np.sort(random.uniform(0, 86_400, 40)),
        "duration": random.uniform(600, 14_400, 40),
        "num_gpus": random.choice([1.0, 2.0, 4.0], 40),
    }
    return wt.simulate(jobs, "8x8", policy, power=DRAWS, shift=shift, **more)


@pytest.mark.parametrize("seed", range(4))
def test_a_shifted_run_shows_what_its_jobs_save(tmp_path: Path, seed: int) -> None:
    hours = np.arange(24) * 3_600.0
    series = Series(hours, 400 + 300 * np.cos(hours / 86_400 * 2 * np.pi))
    path = tmp_path / "carbon.csv"
    rows = [f"{time},{value}" for time, value in zip(series.time, series.values, strict=True)]
    path.write_text("\n".join(["time,carbon", *rows]), encoding="utf-8")
    runs = [flown(seed), flown(seed, f"max_delay=12h,series={path}")]
    until = shared_end(runs)
    books = [account(run, MODEL, carbon=series, until=until) for run in runs]
    first, second = (book.summary() for book in books)
    assert books[0].span == books[1].span
    for numbers in (first, second):
        parts = sum(numbers[f"{part}_j"] or 0 for part in ("jobs", "idle", "host", "overhead"))
        assert parts == pytest.approx(numbers["energy_j"])
    assert first["energy_j"] == pytest.approx(second["energy_j"])  # the same work, all in all
    # What differs is the watts above idle that jobs draw, and when: 320 of their 380.
    saved = (first["carbon_kg"] or 0) - (second["carbon_kg"] or 0)
    grams = [float(book.amount_by_job(series).sum()) for book in books]
    assert saved > 0
    assert saved == pytest.approx((grams[0] - grams[1]) / 1000 * 1.25 * 320 / 380)


@pytest.mark.parametrize("seed", range(4, 8))
def test_totals_are_their_parts_over_one_window_for_all_runs_compared(seed: int) -> None:
    rows = [[0.0, 500.0], [43_200.0, 100.0]]
    runs = [
        flown(seed),
        flown(seed, policy="srtf"),
        flown(seed, {"rows": rows, "max_delay": "12h"}),
        flown(seed, {"rows": rows, "max_delay": "12h", "blind": True, "interruptible": True}),
        flown(seed, power_cap=18_000),
        flown(seed, node_sleep="earth"),
        flown(seed, disruptions="mtbf:40h/mttr:2h"),
    ]
    until = shared_end(runs)
    books = [account(run, MODEL, until=until) for run in runs]
    assert len({book.span for book in books}) == 1
    first, last = books[0].span
    for book in books:
        numbers = book.summary()
        parts = [numbers[f"{part}_j"] or 0.0 for part in ("jobs", "idle", "host", "overhead")]
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(numbers["energy_j"], rel=1e-12)
        assert parts[3] == pytest.approx(0.25 * sum(parts[:3]), rel=1e-9)
        power = book.power
        edges = np.append(power["time"].to_numpy(), last)
        assert edges[0] == first
        integral = float((power["power_w"].to_numpy() * np.diff(edges)).sum())
        assert integral == pytest.approx(numbers["energy_j"], rel=1e-9)
