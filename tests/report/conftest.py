"""Hand-made runs: what a report is fed with when no engine is at hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from windtunnel.cluster import ClusterSpec
from windtunnel.schema import as_jobs
from windtunnel.sim.flight import FINISHED, WAITING, Flight
from windtunnel.sim.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

# Tests are no package, but share how a page is read.
sys.path.insert(0, str(Path(__file__).parent))


def flown(
    submit: Any,
    wait: Any,
    duration: Any,
    num_gpus: Any,
    *,
    vc: Any = None,
    policy: str = "fifo",
    finish: bool = True,
    **settings: Any,
) -> Outcome:
    """Return the outcome of jobs that waited as given and ran without interruption."""
    submit, wait, duration = (np.asarray(x, dtype=float) for x in (submit, wait, duration))
    n = len(submit)
    columns = {
        "submit_time": submit,
        "duration": duration,
        "num_gpus": np.asarray(num_gpus, dtype=float),
    }
    if vc is not None:
        columns["vc"] = vc
    start = submit + wait
    rows = np.arange(n) if finish else np.arange(0)
    flight = Flight(
        start=start if finish else np.full(n, np.nan),
        end=start + duration if finish else np.full(n, np.nan),
        run_time=duration if finish else np.zeros(n),
        preemptions=np.zeros(n, dtype=np.int64),
        status=np.full(n, FINISHED if finish else WAITING, dtype=np.int8),
        segment_job=rows,
        segment_start=start[rows],
        segment_end=(start + duration)[rows],
        node_offset=np.zeros(len(rows) + 1, dtype=np.int64),
        nodes=np.empty(0, dtype=np.int32),
        node_gpus=np.empty(0, dtype=np.int32),
        scheduling_points=2 * n,
    )
    cluster = ClusterSpec.uniform(nodes=64, gpus_per_node=8, gpu_type="A100")
    return Outcome(
        as_jobs(columns),
        cluster,
        flight,
        {"policy": policy, "queueing": "strict", "seed": 0, **settings},
        notes=("Waits are made up.",),
    )


def random_run(
    n: int = 400, scale: float = 600.0, big: float = 1.0, policy: str = "fifo"
) -> Outcome:
    """Return a run of ``n`` seeded jobs; gangs over 8 GPUs wait ``big`` times as long."""
    rng = np.random.default_rng(7)
    gpus = rng.choice([1, 2, 4, 8, 16, 64], n, p=[0.4, 0.2, 0.15, 0.15, 0.05, 0.05])
    wait = rng.exponential(1.0, n) * (rng.random(n) > 0.3) * scale
    return flown(
        np.sort(rng.uniform(0, 5 * 86400, n)),
        wait * np.where(gpus > 8, big, 1.0),
        rng.lognormal(7, 1.5, n),
        gpus,
        vc=[f"vc{i % 20:02d}" for i in range(n)],
        policy=policy,
    )


@pytest.fixture(scope="session")
def fly() -> Callable[..., Outcome]:
    return flown


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Outcome]:
    return random_run


@pytest.fixture(scope="session")
def runs() -> dict[str, Outcome]:
    """Three runs: the third is faster in the mean, but its large gangs wait much longer."""
    return {
        "fifo": random_run(),
        "sjf": random_run(scale=500.0, policy="sjf"),
        "srtf": random_run(scale=60.0, big=40.0, policy="srtf"),
    }


@pytest.fixture(scope="session")
def idle() -> Outcome:
    """A run in which no job ever started."""
    return flown([0, 1], [0, 0], [5, 5], [1, 2], finish=False)


@pytest.fixture(scope="session")
def empty() -> Outcome:
    """A run of no jobs."""
    return flown([], [], [], [])


@pytest.fixture(scope="session")
def single() -> Outcome:
    """A run of one job that did not wait."""
    return flown([10], [0], [100], [4])


HOSTILE = (
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "\u202eevil\u2066 \u200bname",
    "x" * 10_000,
    "]]><!-- ' \" & </svg>",
    "[bold red]markup[/bold red]",
    "{{ 7 * 7 }} {% raw %}",
    "a\x00b\r\nc",
)


@pytest.fixture(scope="session")
def hostile_names() -> tuple[str, ...]:
    return HOSTILE


@pytest.fixture(scope="session")
def hostile(make_run: Callable[..., Outcome]) -> dict[str, Outcome]:
    """Runs, virtual clusters and settings with names that try to get out."""
    runs = {}
    for name in HOSTILE:
        run = make_run(40)
        vc = [HOSTILE[i % len(HOSTILE)] for i in range(40)]
        jobs = as_jobs({**run.jobs.drop_columns(["vc"]).to_pydict(), "vc": vc})
        settings = {**run.settings, "policy": name, name: name}
        runs[name] = Outcome(jobs, run.cluster, run.flight, settings, notes=(name,))
    return runs
