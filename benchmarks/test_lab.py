"""Speed of the lab and of time-lines: 100,000 jobs, in CPU seconds."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import windtunnel as wt
from windtunnel.lab import drawing
from windtunnel.lab.bench import Bench, Source
from windtunnel.report.timeline import timeline, write_timeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Figures


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(wt.open_trace("synthetic:seren", jobs=100_000), Source("synthetic:seren", {}))


def test_a_moved_control(bench: Bench, figures: Figures, cpu_seconds: Callable[..., float]) -> None:
    nodes = itertools.count(250)

    def move() -> None:
        drawing.shown(bench.fly(replace(bench.first, nodes=next(nodes))), "")

    move()
    seconds = cpu_seconds(move, rounds=3)
    figures.amount("lab: two runs of 100 k jobs, flown and drawn", seconds, "s", 1.0)


def test_a_time_line(
    bench: Bench, figures: Figures, cpu_seconds: Callable[..., float], tmp_path: Path
) -> None:
    run = bench.fly(bench.first)["fifo"]
    path = tmp_path / "run.json.gz"
    seconds = cpu_seconds(lambda: write_timeline(path, timeline(run)), rounds=1)
    figures.amount("time-line of 100 k jobs, packed", seconds, "s", 10.0)
