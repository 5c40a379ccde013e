"""What resuming costs each job: `save_time` and `restore_time`, as one number or by job.

Saving and restoring take longer the larger a job is; Helios (Hu et al., SC'21) counts 7 s for a job
on one GPU, 30 s on up to one node, 60 s beyond. A cost is

* a number of seconds, the same for all jobs;
* by size: a mapping from a number of GPUs to seconds for jobs of at least so many, or in words
  ``1=7/2=30/9=60``; smaller jobs than the first pay nothing;
* by what runs: a mapping from a name to seconds, compared with a job's ``workload``, then its
  ``template``; ``*`` = all others (0 where it is not given); or in words ``bert=20/*=5``;
* a function from the jobs (`windtunnel.sim.jobs.Jobs`) to seconds, Float array (n,).

Where no cost of restoring is given, it is what the jobs' column ``restore_time`` says (null = 0):
readers fill it where the trace, or the models that its jobs train, has such numbers. The penalty of
elastic jobs goes by it, too (`windtunnel.study.elastic`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from windtunnel.errors import SpecError, quote, unused_names
from windtunnel.sim.columns import numeric_column

if TYPE_CHECKING:
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.jobs import Jobs
    from windtunnel.sim.problem import Problem
    from windtunnel.site.scheduler import Scheduler

#: Seconds for all jobs, by GPUs or by name (a mapping or words), or a function of the jobs.
ResumeCost: TypeAlias = float | str | Mapping[Any, float] | Callable[["Jobs"], np.ndarray]
#: Stands for all names that a mapping does not have.
OTHERS = "*"
#: Further column of a jobs table: seconds that a job needs to go on once it was stopped.
COLUMN = "restore_time"
#: The note where jobs were preempted for nothing.
FREE = "Preemption is free here: saving and restoring cost the jobs that were stopped nothing."


def costs_of(
    scheduler: Scheduler, policy: Policy, problem: Problem
) -> tuple[np.ndarray, list[str]]:
    """Return the seconds that each flown job pays when it goes on, Float array (m,).

    And, where jobs take turns in which none would get on at the costs that the trace says, what to
    tell: these do not count then.

    Raises:
        SpecError: a cost is none, below 0, or as long as a turn.
    """
    costs = resume_costs("save_time", scheduler.save_time, problem)
    turn = policy.turn if policy.levels is None else policy.every
    most = math.inf if turn is None else turn
    if scheduler.restore_time is not None:
        costs += resume_costs("restore_time", scheduler.restore_time, problem)
    longest = float(costs.max(initial=0.0))
    turns = (
        f"policy {policy.label!r} lets jobs take turns of {most:g} s, in which none would get on"
    )
    if longest >= most:
        message = f"found {longest:g} s; {turns}. Expected less than that."
        raise SpecError("save_time + restore_time", message)
    own = np.zeros(len(costs))
    if scheduler.restore_time is None:
        own = np.nan_to_num(trace_costs(problem))
    longest = float((costs + own).max(initial=0.0))
    if longest >= most:
        return costs, [f"{FREE} The trace says up to {longest:g} s; {turns}."]
    return costs + own, []


def unused_costs(scheduler: Scheduler, jobs: Jobs) -> list[str]:
    """Return what to note of costs by names that no job has as its workload or template."""
    notes = []
    for option in ("save_time", "restore_time"):
        cost = read_cost(option, getattr(scheduler, option) or 0.0)
        named = {key for key in cost if isinstance(key, str)} if isinstance(cost, dict) else set()
        if named - {OTHERS}:
            occurring = {*jobs.workload.tolist(), *jobs.template.tolist()}
            who, kind = f"{option} names", "workload or template"
            notes += unused_names(who, kind, named - {OTHERS}, occurring, where="the trace")
    return notes


def trace_costs(problem: Problem) -> np.ndarray:
    """Return what the trace says that each flown job needs to go on, s, NaN = it says nothing.

    Raises:
        SpecError: the column ``restore_time`` holds what is no number of seconds; names the row.
    """
    table = problem.jobs.table
    if COLUMN not in table.column_names:
        return np.full(len(problem.rows), np.nan)
    what = "seconds >= 0, or none"
    found = numeric_column(table, COLUMN, COLUMN, what)
    wrong = (found < 0) | np.isinf(found)
    if wrong.any():
        row = int(wrong.argmax())
        value = quote(table[COLUMN][row].as_py())
        message = f"the column {quote(COLUMN)} holds {value} in row {row + 1:,}; expected {what}."
        raise SpecError(COLUMN, message)
    return np.asarray(found[problem.rows])


def cost_note(scheduler: Scheduler, paid: np.ndarray) -> list[str]:
    """Return what to tell of preemption's price.

    Args:
        scheduler: what decided.
        paid: Float array, what each job that was preempted pays, s.
    """
    if not len(paid):
        return []
    if not paid.any():
        return [FREE]
    if scheduler.restore_time is not None or scheduler.save_time != 0:
        return []
    return [f"A preempted job pays {span_of(paid)} to go on, as the trace says."]


def span_of(seconds: np.ndarray) -> str:
    """Return what a cost spans in words.

    >>> span_of(np.array([60.0, 7.0]))
    '7 s to 60 s'
    """
    low, high = float(seconds.min()), float(seconds.max())
    return f"{low:g} s" if low == high else f"{low:g} s to {high:g} s"


def resume_costs(name: str, given: ResumeCost, problem: Problem) -> np.ndarray:
    """Return the seconds that each flown job pays, Float array (m,).

    Args:
        name: of the option, for messages.
        given: the cost.
        problem: the jobs.

    Raises:
        SpecError: it is none of what the module says, or below 0.
    """
    cost = read_cost(name, given)
    jobs, rows = problem.jobs, problem.rows
    if isinstance(cost, float):
        return np.full(len(rows), cost)
    if callable(cost):
        return np.asarray(_of_function(name, cost, jobs)[rows])
    if all(isinstance(key, float) for key in cost):
        bounds = np.array(sorted(cost))
        seconds = np.array([0.0, *(cost[bound] for bound in bounds.tolist())])
        return np.asarray(seconds[np.searchsorted(bounds, jobs.num_gpus[rows], side="right")])
    pairs = zip(jobs.workload[rows].tolist(), jobs.template[rows].tolist(), strict=True)
    others = cost.get(OTHERS, 0.0)
    return np.array([cost.get(one, cost.get(two, others)) for one, two in pairs], dtype=np.float64)


def read_cost(
    name: str, given: ResumeCost
) -> float | dict[Any, float] | Callable[[Jobs], np.ndarray]:
    """Return a cost as a number, a mapping whose keys are all numbers or all names, or a function.

    Raises:
        SpecError: it is none of these, or below 0.

    >>> read_cost("save_time", "1=7/9=60")
    {1.0: 7.0, 9.0: 60.0}
    """
    if callable(given):
        return given
    if isinstance(given, str) and "=" in given:
        parts = [part.rpartition("=") for part in given.split("/")]
        if not all(key.strip() for key, _, _ in parts):
            message = f"found {quote(given)}; expected as in 1=7/2=30/9=60 or bert=20/*=5"
            raise SpecError(name, message)
        named = [key.strip() for key, _, _ in parts]
        twice = next((key for key in named if named.count(key) > 1), None)
        if twice is not None:
            raise SpecError(name, f"found {quote(twice)} twice; give each once.")
        given = {key.strip(): _seconds(f"{name}.{key}", cost) for key, _, cost in parts}
    if not isinstance(given, Mapping):
        return _seconds(name, given)
    found: dict[Any, float] = {key: _seconds(f"{name}.{key}", cost) for key, cost in given.items()}
    try:
        return {float(key): cost for key, cost in found.items()}
    except (TypeError, ValueError):
        return {str(key): cost for key, cost in found.items()}


def _seconds(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise SpecError(name, f"found {quote(value)}; expected seconds >= 0")
    return number


def _of_function(name: str, cost: Callable[[Jobs], np.ndarray], jobs: Jobs) -> np.ndarray:
    try:
        found = np.asarray(cost(jobs), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise SpecError(name, f"the function returned no numbers ({error}).") from error
    if found.shape != (len(jobs),):
        message = f"the function returned shape {found.shape}; expected ({len(jobs)},), one a job."
        raise SpecError(name, message)
    wrong = np.flatnonzero(~((found >= 0) & np.isfinite(found)))
    if len(wrong):
        message = f"the function returned {found[wrong[0]]:g} for job "
        message += f"{quote(jobs.job_id[wrong[0]])}; expected seconds >= 0."
        raise SpecError(name, message)
    return found
