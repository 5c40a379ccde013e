"""No mechanism at all: each job progresses at the speed that its shares stand for.

What a mechanism can reach at best (Narayanan et al., OSDI'20, figure 13): shares are decided on at
each arrival and completion, and hold exactly until the next.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import PolicyError
from windtunnel.policies.gavel.record import RoundLog, Spot
from windtunnel.policies.gavel.work import ALONE

if TYPE_CHECKING:
    from windtunnel.policies.gavel.work import Allocator, Decision, Rules, Work


def fly_ideal(work: Work, allocate: Allocator, rules: Rules) -> RoundLog:
    """Run the jobs at the speeds of their shares.

    A job's stay is from when it first has a share to its end, on the type of which it then has
    most; ``gpu_time`` and ``type_time`` are exact.

    Args:
        work: jobs and GPUs; nodes are not looked at.
        allocate: decides on shares.
        rules: ``until`` and ``stop_after``.

    Raises:
        PolicyError: the shares let no job run, and nobody is to come.
    """
    log = RoundLog(work)
    left = work.steps.astype(float).copy()
    active = np.empty(0, int)
    wanted = np.arange(work.num_jobs) if rules.stop_after is None else rules.stop_after
    now, arrived = 0.0, 0
    while np.isnan(log.end[wanted]).any():
        if not len(active):
            now = max(now, float(work.submit[arrived]))
        if now >= rules.until:
            break
        while arrived < work.num_jobs and work.submit[arrived] <= now:
            active = np.append(active, arrived)
            arrived += 1
        speed, held, on_type = _rates(work, allocate(now, active, left))
        log.solves += 1
        log.rounds += 1
        for job in active[(held[active] > 0)].tolist():
            if job not in log.spots:
                log.start(job, now, Spot(int(on_type[job].argmax())))
        with np.errstate(divide="ignore"):
            ends = now + np.where(speed[active] > 0, left[active] / speed[active], math.inf)
        arrival = float(work.submit[arrived]) if arrived < work.num_jobs else math.inf
        then = min(float(ends.min()), arrival, rules.until)
        if math.isinf(then):
            message = "gives no job a GPU that it can use, and nobody is to come"
            raise PolicyError(rules.label, message, time=now, job=work.names[active[0]])
        left[active] = np.maximum(0.0, left[active] - speed[active] * (then - now))
        log.gpu_time += held * (then - now)
        log.type_time += on_type * (then - now)
        now = then
        for job in active[ends <= then].tolist():
            left[job] = 0.0
            log.finish(job, now)
        active = active[ends > then]
    log.stopped_at = min(now, rules.until)
    return log


def _rates(work: Work, decision: Decision) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each job's steps per second, GPUs held, and share of each type."""
    members = decision.members
    shares = np.where(work.runnable(members), decision.shares, 0.0)
    speeds = work.unit_speeds(members)
    speed, held = np.zeros(work.num_jobs), np.zeros(work.num_jobs)
    on_type = np.zeros((work.num_jobs, work.num_types))
    paired = members[:, 1] != ALONE
    for member, units in ((0, np.arange(len(members))), (1, np.flatnonzero(paired))):
        jobs = members[units, member]
        np.add.at(speed, jobs, (speeds[units, :, member] * shares[units]).sum(axis=1))
        gpus = work.gangs[jobs] * shares[units].sum(axis=1) / np.where(paired[units], 2, 1)
        np.add.at(held, jobs, gpus)
        np.add.at(on_type, jobs, shares[units])
    return speed, held, on_type
