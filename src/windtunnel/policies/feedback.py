"""How soon evaluation tells its results: a metric of any run, decoupled or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.policies.catalogue import resolve_policy
from windtunnel.policies.evaluation import DecoupledEvaluation

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome


def feedback(outcome: Outcome) -> dict[str, float | None]:
    """Return how soon evaluation tells its results: a metric of any run.

    Under `DecoupledEvaluation` a trial's result is there once its metric is computed, after it
    gave its GPUs back; under others at its end.

    Returns:
        ``mean``, ``p50`` and ``p90`` of the time from submission to result (s) over finished
        trials, ``gpu_hours`` that they held, ``others_wait`` (mean wait of all other jobs, s); None
        without any.

    >>> import windtunnel as wt
    >>> jobs = {"submit_time": [0], "duration": [100], "num_gpus": [1], "workload": ["Eval"]}
    >>> feedback(wt.simulate(jobs, "1x1", "fifo"))["mean"]
    100.0
    """
    policy: Any = resolve_policy(str(outcome.settings["policy"]).partition("+")[0])
    decouples = isinstance(policy, DecoupledEvaluation)
    kind = policy.workload if decouples else DecoupledEvaluation().workload
    jobs, end = outcome.jobs, outcome.flight.end
    is_trial = np.array([name == kind for name in jobs["workload"].to_pylist()], dtype=bool)
    later = policy.metrics * jobs["duration"].to_numpy() if decouples else 0.0
    took = (end + later - outcome.submit_time)[is_trial & ~np.isnan(end)]
    waits = (outcome.flight.start - outcome.submit_time)[~is_trial]
    waits = waits[~np.isnan(waits)]
    flight = outcome.flight
    held = (flight.segment_end - flight.segment_start) * outcome.num_gpus[flight.segment_job]
    return {
        "mean": float(took.mean()) if len(took) else None,
        "p50": float(np.percentile(took, 50)) if len(took) else None,
        "p90": float(np.percentile(took, 90)) if len(took) else None,
        "gpu_hours": float(np.nansum(held[is_trial[flight.segment_job]])) / 3600,
        "others_wait": float(waits.mean()) if len(waits) else None,
    }
