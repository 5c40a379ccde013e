"""Full-size synthetic traces, made once a session, and the published figure tables."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel.traces.synthetic.generate import generate
from windtunnel.traces.synthetic.published import published
from windtunnel.traces.synthetic.workload_facts import WorkloadFacts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from windtunnel.traces.trace import Trace


@dataclass(frozen=True)
class Columns:
    """The columns of a trace that the tests compare, as numpy arrays of shape (jobs,)."""

    trace: Trace
    facts: WorkloadFacts
    workload: NDArray[np.object_]
    duration: NDArray[np.float64]
    queue: NDArray[np.float64]
    gpus: NDArray[np.float64]
    status: NDArray[np.object_]

    @property
    def gpu_time(self) -> NDArray[np.float64]:
        return self.duration * self.gpus


def columns(trace: Trace, name: str) -> Columns:
    jobs, facts = trace.jobs, published(name)
    assert isinstance(facts, WorkloadFacts)
    submit, start = (jobs[c].to_numpy() for c in ("submit_time", "start_time"))
    return Columns(
        trace,
        facts,
        np.array(jobs["workload"].to_pylist(), dtype=object),
        jobs["duration"].to_numpy(),
        start - submit,
        jobs["num_gpus"].to_numpy(),
        np.array(jobs["status"].to_pylist(), dtype=object),
    )


@lru_cache(maxsize=2)
def _full(name: str, seed: int) -> Columns:
    return columns(generate(name, seed=seed), name)


@pytest.fixture(params=[("kalos", 0), ("kalos", 20260), ("seren", 0), ("seren", 7)], scope="module")
def full(request: pytest.FixtureRequest) -> Columns:
    """A trace of the real size."""
    return _full(*request.param)


def reader_of(folder: Path) -> Callable[[str], list[dict[str, str]]]:
    """Return what reads a table of a folder as rows; the test is skipped without the folder."""
    if not (folder / "figure_cdf_points.csv").is_file():
        pytest.skip(f"WINDTUNNEL_DATA has no {folder.name}/figure_cdf_points.csv")

    def rows(name: str) -> list[dict[str, str]]:
        with (folder / name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    return rows


@pytest.fixture(scope="session")
def acme_rows(data_dir: Path) -> Callable[[str], list[dict[str, str]]]:
    """Read a table of the published Acme figures as rows."""
    return reader_of(data_dir / "acme")


@pytest.fixture(scope="session")
def helios_rows(data_dir: Path) -> Callable[[str], list[dict[str, str]]]:
    """Read a table of the published Helios figures as rows."""
    return reader_of(data_dir / "helios")
