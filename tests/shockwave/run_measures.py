"""What Shockwave's authors measure of a run: fairness by finish time, envy, leases, utilisation.

Zheng et al., NSDI'23, section 8; uw-mad-dash/shockwave, ``scheduler/scheduler.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.policies.shockwave.published import RoundBooks
    from windtunnel.policies.shockwave.work import TrainingJob

#: A job is treated unfairly where its finish-time ratio is beyond this.
UNFAIR = 1.05
_DIGITS = 5


def job_measures(
    books: RoundBooks, jobs: Sequence[TrainingJob], num_gpus: int
) -> dict[int, dict[str, float]]:
    """Return by job: ``jct`` (s), ``ftf_static``, ``ftf_themis``, ``envy_ratio``, rounds.

    ``ftf_static`` = completion over ideal duration x max(1, jobs / GPUs); ``ftf_themis`` takes the
    mean number of active jobs while the job was there; ``envy_ratio`` is the part of its rounds
    in which it ran.
    """
    rounds = len(books.schedule)
    active = np.zeros(rounds + 1)
    for number, begin in books.admitted.items():
        active[begin : books.gone.get(number, rounds)] += 1
    ran = np.zeros(len(jobs), int)
    for placed in books.schedule:
        ran[list(placed)] += 1
    found = {}
    for number, end in sorted(books.end.items()):
        jct, ideal = end - jobs[number].submit, jobs[number].profile.duration
        here = active[books.admitted[number] : books.gone[number]]
        sharing = max(1.0, float(here.mean()) / num_gpus) if len(here) else 1.0
        found[number] = {
            "jct": jct,
            "ftf_static": round(jct / (ideal * max(1.0, len(jobs) / num_gpus)), _DIGITS),
            "ftf_themis": round(jct / (ideal * sharing), _DIGITS),
            "envy_ratio": float(ran[number] / len(here)) if len(here) else 1.0,
            "rounds_scheduled": float(ran[number]),
        }
    return found


def run_measures(books: RoundBooks, jobs: Sequence[TrainingJob], num_gpus: int) -> dict[str, Any]:
    """Return the run's mean completion (s), makespan (s), utilisation, leases and unfair jobs."""
    by_job = job_measures(books, jobs, num_gpus).values()
    makespan = max(books.end.values(), default=0.0)
    spent = np.zeros(num_gpus)
    for of in books.run_time.values():
        for gpu, seconds in of.items():
            spent[gpu] += seconds
    used = np.round(spent / makespan, _DIGITS) if makespan else spent
    return {
        "avg_jct": float(np.mean([one["jct"] for one in by_job])),
        "makespan": makespan,
        "rounds": len(books.schedule),
        "cluster_util": float(used.mean()),
        "num_lease_extensions": books.extended,
        "num_lease_extension_opportunities": books.could_extend,
        "worst_ftf_static": max(one["ftf_static"] for one in by_job),
        "unfair_percent": 100 * float(np.mean([one["ftf_static"] > UNFAIR for one in by_job])),
    }
