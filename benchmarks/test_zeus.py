"""Speed of the simulation of recurring training, on the published measurements."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from windtunnel.energy import (
    open_published,
    open_workload,
    simulate_group,
    simulate_recurrences,
    synthetic_groups,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Figures

GPUS = ("v100", "a40", "p100", "rtx6000")


def test_24_pairs_of_gpu_and_workload_20_seeds(
    figures: Figures, cpu_seconds: Callable[..., float]
) -> None:
    folder = Path(os.environ.get("WINDTUNNEL_DATA", "")) / "zeus"
    if not (folder / "summary_train.csv").is_file():
        pytest.skip("WINDTUNNEL_DATA has no folder zeus")
    pairs = [found for gpu in GPUS for found in open_published(gpu, data=folder).values()]
    assert len(pairs) == 24

    def fly() -> None:
        for workload in pairs:
            for seed in range(20):
                simulate_recurrences(workload, seed=seed)

    figures.amount("Zeus, 24 GPU x workload x 20 seeds", cpu_seconds(fly, 1), "s", 20.0)


def test_groups_of_overlapping_jobs(figures: Figures, cpu_seconds: Callable[..., float]) -> None:
    workload = open_workload("synthetic")
    table = synthetic_groups({"synthetic": workload}, groups=100, jobs=100)

    def fly() -> None:
        for (group, _), jobs in table.groups().items():
            simulate_group(workload, jobs, group)

    figures.amount("Zeus, 10,000 jobs of 100 groups", cpu_seconds(fly, 3), "s", 5.0)
