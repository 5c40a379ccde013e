"""Small allocation instances: by hand and drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from windtunnel import gavel

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The same examples in every run.
fixed = settings(deadline=None, derandomize=True, database=None, max_examples=40)


def instance(
    cluster: dict[str, float], speeds: Sequence[Sequence[float]], **columns: Sequence[Any]
) -> dict[str, Any]:
    """Return an instance of jobs 0, 1, ... with speeds in the order of the cluster's types."""
    jobs = []
    for number, row in enumerate(speeds):
        job: dict[str, Any] = {"id": number, "throughputs": dict(zip(cluster, row, strict=True))}
        jobs.append(job | {name: values[number] for name, values in columns.items()})
    return {"cluster": cluster, "jobs": jobs}


@st.composite
def instances(
    draw: st.DrawFn, *, gangs: bool = True, weights: bool = True, pairs: bool = False
) -> dict[str, Any]:
    """Draw an instance in which every job can run somewhere."""
    sizes = draw(st.lists(st.integers(0, 6), min_size=2, max_size=3))
    sizes[0] = max(sizes[0], 4)  # where the largest gang fits
    cluster = {name: float(n) for name, n in zip(("v100", "k80", "p100"), sizes, strict=False)}
    count = draw(st.integers(1, 6))
    speed = st.one_of(st.just(0.0), st.floats(0.1, 10.0))
    speeds = [[draw(st.floats(0.1, 10.0)), *(draw(speed) for _ in sizes[1:])] for _ in range(count)]
    drawn = instance(
        cluster,
        speeds,
        scale_factor=[draw(st.sampled_from([1, 2, 4])) if gangs else 1 for _ in range(count)],
        priority_weight=[draw(st.sampled_from([1, 2, 5])) if weights else 1 for _ in range(count)],
        num_steps_remaining=[draw(st.integers(1, 10_000)) for _ in range(count)],
        time_since_start=[float(draw(st.integers(0, 10_000))) for _ in range(count)],
    )
    if pairs:
        drawn["pairs"] = [
            _pair(draw, cluster, drawn["jobs"], one, other)
            for one in range(count)
            for other in range(one + 1, count)
            if drawn["jobs"][one]["scale_factor"] == drawn["jobs"][other]["scale_factor"]
        ]
    return drawn


def _pair(
    draw: st.DrawFn, cluster: dict[str, float], jobs: list[dict[str, Any]], one: int, other: int
) -> dict[str, Any]:
    share = st.floats(0.0, 1.0)
    return {
        "jobs": [one, other],
        "throughputs": {
            name: [draw(share) * jobs[k]["throughputs"][name] for k in (one, other)]
            for name in cluster
        },
    }


def normalised(problem: dict[str, Any], decided: gavel.Allocation) -> np.ndarray:
    """Return s x throughput / (weight x throughput under proportional shares) of each job."""
    seen = gavel.as_instance(problem)
    equal = gavel.allocate("proportional", problem).throughputs
    return np.array(
        [
            seen.scale_factors[row] * decided.throughputs[job] / (seen.weights[row] * equal[job])
            for row, job in enumerate(seen.job_ids)
        ]
    )


def assert_feasible(problem: dict[str, Any], decided: gavel.Allocation) -> None:
    """Check that the shares fit into the GPUs and into every job's time."""
    seen = gavel.as_instance(problem)
    used = np.zeros(len(seen.gpu_types))
    time = dict.fromkeys(seen.job_ids, 0.0)
    rows = [((job,), row) for job, row in decided.shares.items()]
    rows += list(decided.pair_shares.items())  # type: ignore[arg-type]
    for members, row in rows:
        shares = np.array([row[name] for name in seen.gpu_types])
        assert (shares >= 0).all()
        used += seen.scale_factors[seen.position(members[0])] * shares
        for job in members:
            time[job] += shares.sum()
    assert (used <= seen.num_gpus + 1e-6).all()
    assert max(time.values()) <= 1 + 1e-6
