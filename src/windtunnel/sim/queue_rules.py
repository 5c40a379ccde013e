"""The kernel's rule for the queue of a run: strict, skip, backfilling, with preemption, quotas."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import kernel
from windtunnel.sim.kernel_run import REMAINING, STATIC, doubles
from windtunnel.sim.keys import static_rank
from windtunnel.site.scheduler import BACKFILLING

if TYPE_CHECKING:
    from windtunnel.sim.cohort_order import CohortOrder
    from windtunnel.sim.kernel_run import KernelRun


def rule_of(run: KernelRun) -> Any:
    """Return the rule of a run whose policy orders the queue; its lines are in the state then."""
    if run.order is not None:
        return _quota_rule(run, run.order)
    queueing, state = run.rules.queueing, run.state
    is_sorted = queueing in BACKFILLING
    state.use_lines(kernel.Lines(run.num_lines, run.line_of, _keys(run), is_sorted=is_sorted))
    admission = run.admit(plans=run.plans)
    preemption = _preemption(run, admission) if run.policy.preemptive else None
    if queueing == "conservative":
        return kernel.ConservativeRule(
            state,
            admission,
            run.announced,
            num_nodes=len(run.problem.sizes),
            num_sets=len(run.access),
            withholds=run.plan is not None or run.power is not None,
            is_pool=run.problem.is_pool,
            by_device=bool(run.problem.devices),
            preemption=preemption,
        )
    if queueing in BACKFILLING:
        return kernel.EasyRule(
            state,
            admission,
            run.announced,
            shortest_first=queueing == "easy_sjbf",
            by_device=bool(run.problem.devices),
            preemption=preemption,
        )
    if preemption is not None:
        past_refused = queueing == "skip"
        return kernel.PreemptiveRule(state, admission, preemption, past_refused=past_refused)
    return (kernel.StrictRule if queueing == "strict" else kernel.SkipRule)(state, admission)


def _keys(run: KernelRun) -> np.ndarray:
    """Return keys that are known before the run, or a table for those that are not."""
    if run.keys_from == STATIC:
        return doubles(static_rank(run.policy, run.problem.jobs, run.problem.rows))
    return np.zeros(max(len(run.problem.rows), 1))


def _preemption(run: KernelRun, admission: Any) -> Any:
    """Return what picks the jobs that give way to those ahead of them."""
    problem = run.problem
    order: dict[str, Any] = {"by_remaining": run.keys_from == REMAINING}
    if run.policy.by_service:
        order["weight"] = doubles(problem.jobs.num_gpus[problem.rows])
    if run.rules.preemption == "quota_walk":
        order |= {"quota": problem.quota, "num_nodes": len(problem.sizes)}
        return kernel.QuotaWalk(run.state, admission, run.announced, **order)
    # In pools of which something is withheld, the sum of what is free bounds nothing.
    withholds = problem.is_pool and (run.plan is not None or run.power is not None)
    sums_hold = not problem.devices and not withholds
    return kernel.Feasible(run.state, admission, sums_hold=sums_hold, **order)


def _quota_rule(run: KernelRun, order: CohortOrder) -> Any:
    """Return the rule of quotas; jobs of one of its lines are of one queue and one class."""
    classes = int(run.line_of.max(initial=0)) + 1
    pairs = order.line_of * classes + run.line_of
    _, first, line_of = np.unique(pairs, return_index=True, return_inverse=True)
    of_old = order.line_of[first]
    known = len(run.problem.demands)
    kinds = [*range(known), *(run.free.add_kind(bound) for bound in order.demands[known:])]
    second = doubles(run.jobs.submit).copy() if order.timeout < math.inf else None
    run.state.use_lines(
        kernel.Lines(
            len(first),
            np.ascontiguousarray(line_of.reshape(-1), dtype=np.int32),
            doubles(-order.priority),
            is_sorted=False,
            second=second,
        )
    )
    lines = replace(order, queue_of=order.queue_of[of_old], flavors=order.flavors[of_old])
    fits = np.array([*kinds, -1], dtype=np.int32)[order.fits[of_old]]
    return kernel.QuotaRule(run.state, run.admit(), lines, fits, run.line_of[first])
