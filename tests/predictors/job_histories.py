"""Small histories that several tests of predictors share, and what is right about them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    import pyarrow as pa


def history(count: int, *, seed: int = 0, spread: float = 0.3, users: int = 6) -> pa.Table:
    """Return jobs of recurring templates whose run times scatter by a factor exp(spread)."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, count)
    kind = rng.integers(0, 4, count)
    typical = np.exp(rng.normal(6, 1.2, (users, 4)))
    submit = np.sort(rng.uniform(0, count * 120.0, count))
    start = submit + rng.exponential(60, count)
    duration = typical[user, kind] * np.exp(rng.normal(0, spread, count))
    return as_jobs(
        {
            "job_id": [f"j{n}" for n in range(count)],
            "submit_time": submit,
            "start_time": start,
            "end_time": start + duration,
            "duration": duration,
            "num_gpus": 2.0 ** rng.integers(0, 4, count),
            "user": [f"u{n}" for n in user],
            "vc": [f"vc{n % 2}" for n in user],
            "template": [f"train-{n}-{k}" for n, k in zip(user, kind, strict=True)],
            "status": ["completed"] * count,
        }
    )


@st.composite
def small_histories(draw: st.DrawFn, most: int = 14) -> dict[str, list[Any]]:
    """Draw a mapping of columns with many ties, unknown values and jobs that end at once."""
    count = draw(st.integers(1, most))
    rows = st.lists
    times = rows(st.integers(0, 12), min_size=count, max_size=count)
    submit = [float(t) for t in draw(times)]
    wait = [float(t) for t in draw(rows(st.integers(0, 3), min_size=count, max_size=count))]
    run = [float(t) for t in draw(rows(st.integers(0, 5), min_size=count, max_size=count))]

    def words(*choices: str | None) -> list[str | None]:
        return draw(rows(st.sampled_from(choices), min_size=count, max_size=count))

    return {
        "job_id": [f"j{n}" for n in range(count)],
        "submit_time": submit,
        "start_time": [s + w for s, w in zip(submit, wait, strict=True)],
        "end_time": [s + w + r for s, w, r in zip(submit, wait, run, strict=True)],
        "duration": run,
        "num_gpus": [float(n) for n in draw(rows(st.sampled_from([1, 2]), min_size=count,
                                                 max_size=count))],
        "user": words("ann", "bob", None),
        "template": words("a", "b", None),
        "gpu_type": words("V100", None),
    }  # fmt: skip


def known_before(jobs: dict[str, list[Any]], row: int) -> list[int]:
    """Return the rows whose ends were known when ``row`` was submitted, in the order of ends.

    Written from the rule, job by job: an end at the instant of the submission is known, but not
    that of a job which was itself submitted at this instant.
    """
    now = jobs["submit_time"][row]
    rows = [
        other
        for other in range(len(jobs["submit_time"]))
        if jobs["end_time"][other] <= now and jobs["submit_time"][other] < now
    ]
    # Of equal ends those of jobs that ended the moment they were submitted come last.
    return sorted(
        rows,
        key=lambda other: (
            jobs["end_time"][other],
            jobs["end_time"][other] == jobs["submit_time"][other],
            other,
        ),
    )


def same(found: float | None, expected: float | None) -> bool:
    """Return whether two predictions are the same, up to rounding; None = none."""
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)
