"""Fresh workloads in the manner of Morphling's: its requests drawn anew, with other arrivals.

The published traces are three variants of one list of 406 jobs; defaults chosen on them need
others to be judged by. A job's model, GPUs, plan and iterations are those of a job of ``base``,
drawn with replacement; arrivals are a Poisson process.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.checked import checked_count, checked_number

if TYPE_CHECKING:
    from windtunnel.traces.trace import Trace

_MOST_JOBS = 100_000


def generate_morphling(
    published: Trace,
    *,
    jobs: int = 406,
    load: float = 1.0,
    llama: float | None = None,
    guaranteed: float = 0.0,
    seed: int = 0,
) -> Trace:
    """Return a workload like Morphling's, drawn anew.

    Args:
        published: what it is drawn from, ``morphling:base``.
        jobs: how many.
        load: mean arrivals in a time, over those of the published workload.
        llama: share of LLaMA jobs, which ask for most of the GPUs; None = as published, 0.26.
        guaranteed: share of guaranteed jobs, drawn beside all else.
        seed: same seed, same workload; >= 0.

    Raises:
        SpecError: an option is out of range.
    """
    checked_count("jobs", jobs, f"a whole number 1..{_MOST_JOBS}", most=_MOST_JOBS)
    checked_number("load", load, above=0)
    for name, share in (("llama", llama), ("guaranteed", guaranteed)):
        if share is not None:
            checked_number(name, share, "a share from 0 to 1", least=0, most=1)
    checked_count("seed", seed, least=0, most=math.inf)
    table = published.jobs
    rng = np.random.default_rng(seed)
    is_llama = np.array([name.startswith("llama") for name in table["template"].to_pylist()])
    share = is_llama.mean() if llama is None else llama
    weights = np.where(is_llama, share / is_llama.sum(), (1 - share) / (~is_llama).sum())
    drawn = table.take(pa.array(rng.choice(len(table), jobs, p=weights)))
    submit = table["submit_time"].to_numpy()
    gap = (submit.max() - submit.min()) / len(table) / load
    columns = {
        "job_id": [f"{number}" for number in range(jobs)],
        "submit_time": np.cumsum(rng.exponential(gap, jobs)),
        "is_sla": (rng.random(jobs) < guaranteed).astype(float),
    }
    for name, values in columns.items():
        at = drawn.column_names.index(name)
        kind = drawn.schema.field(at).type
        drawn = drawn.set_column(at, drawn.schema.field(at), pa.array(values, kind))
    about = replace(
        published.metadata,
        name="synthetic:morphling",
        source="drawn from morphling:base",
        rows_read=jobs,
        settings={
            **published.metadata.settings,
            "jobs": jobs,
            "load": load,
            "llama": llama,
            "guaranteed": guaranteed,
            "seed": seed,
        },
    )
    return replace(published, jobs=drawn, metadata=about)
