"""Morphling's published simulator, for ``compat="morphling"``: its ticks and what they get wrong.

Each tick of 60 s every job advances under the placement and plan it has, the clock moves, the
scheduler sees the jobs submitted by then, and what it decided is applied. A job starts anew, for
260 s, when the run lengths of its node list change; nothing else costs anything, and a job that the
scheduler gave nothing goes on where it was, on GPUs that others get (Morphling's artifact,
``simulator/job.py``). It completes after steps + 1 iterations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.policies.morphling.artifact import NODE_GPUS, ArtifactJob, ArtifactScheduler
from windtunnel.sim.elastic.stretches import Stretches
from windtunnel.sim.elastic.work import PENALTY
from windtunnel.sim.flight import FINISHED, REJECTED, Flight
from windtunnel.sim.outcome import Outcome
from windtunnel.site.conditions import QUIET, Conditions
from windtunnel.throughput.morphling_models import training_models
from windtunnel.throughput.plans import Plan
from windtunnel.throughput.published import artifact_iteration_time

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.free import Where
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.problem import Problem

#: Options that the published simulator decides by itself, and those that it knows nothing of.
_OWN = ("until", "penalty", "models", "placement")
_WITHOUT = (
    *("events", "decide_every", "disruptions", "slowdown"),
    *("power", "power_cap", "shift", "node_sleep", "quotas"),
)
#: Seconds of a tick.
TICK = 60.0
#: Ticks after which a run is given up: 200 days.
_MOST_TICKS = 288_000


@dataclass
class _Run:
    """A job in the simulator.

    Attributes:
        job: the scheduler's view.
        row: its row in the jobs table.
        steps: iterations it should run; one more is needed.
        where: where it runs, whatever the scheduler believes; empty = not launched.
        plan: the plan it runs at.
        penalty: seconds of launching left.
        inside: seconds spent in the current iteration.
        done: iterations completed.
        end: s; NaN = not complete.
        stays: (start, where, plan) of each placement.
    """

    job: ArtifactJob
    row: int
    steps: int
    where: Where = field(default_factory=list)
    plan: Plan | None = None
    penalty: float = 0.0
    inside: float = 0.0
    done: int = 0
    end: float = math.nan
    stays: list[tuple[float, Where, Plan]] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, ...]:
        """Run lengths of its node list."""
        return tuple(gpus for _, gpus in self.where)

    def iteration_time(self) -> float:
        """Return the seconds of an iteration where it runs."""
        digits = "".join(map(str, self.shape))
        return artifact_iteration_time(self.job.model, digits, self.plan or self.job.plan)

    def advance(self, now: float, seconds: float) -> None:
        """Run for a tick from ``now`` on."""
        if not self.where or not math.isnan(self.end):
            return
        waits = min(self.penalty, seconds)
        self.penalty -= waits
        now, seconds = now + waits, seconds - waits
        if seconds <= 0:
            return
        time = self.iteration_time()
        while seconds > 0:
            rest = time - self.inside
            if rest > seconds:
                self.inside += seconds
                return
            now, seconds, self.inside = now + rest, seconds - rest, 0.0
            self.done += 1
            if self.done > self.steps:
                self.end = now
                return

    def apply(self, now: float) -> None:
        """Take over what the scheduler gave, if its shape is another."""
        if not self.job.held or tuple(gpus for _, gpus in self.job.held) == self.shape:
            return
        self.job.restarts += bool(self.where)
        self.where, self.plan = list(self.job.held), self.job.chosen
        self.penalty = PENALTY
        self.stays.append((now, self.where, self.plan or self.job.plan))


def fly_artifact(
    table: pa.Table, cluster: ClusterSpec, policy: Policy, conditions: Conditions, problem: Problem
) -> Outcome:
    """Fly jobs as Morphling's published simulator would.

    Args:
        table: jobs table.
        cluster: nodes of 8 GPUs.
        policy: ``morphling``, for its name.
        conditions: what the run is flown under.
        problem: the jobs and the cluster.

    Raises:
        SpecError: the simulator has no such cluster, model, plan or option.
    """
    _check(cluster, policy, conditions, problem)
    runs = [_run(problem, row) for row in problem.rows.tolist()]
    scheduler = ArtifactScheduler(cluster.num_nodes)
    now, ticks = 0.0, 0
    while any(math.isnan(run.end) for run in runs):
        for run in runs:
            run.advance(now, TICK)
        now, ticks = now + TICK, ticks + 1
        active = [run for run in runs if run.job.submit <= now and math.isnan(run.end)]
        scheduler.schedule(now, [run.job for run in active])
        for run in active:
            run.apply(now)
        if ticks > _MOST_TICKS:
            raise SpecError("compat", f"after {now:g} s some jobs have not come to an end.")
    settings = {
        "policy": policy.label,
        "compat": "morphling",
        "penalty": PENALTY,
        "every": TICK,
        "queueing": "policy",
        "placement": "best_fit",
        "sharing": None,
        "engine": "ticks",
        "seed": conditions.seed,
        "until": None,
    }
    note = (
        "As Morphling's published simulator: a job that is given nothing keeps running, so that "
        "more GPUs can be in use than there are."
    )
    flight = _flight(problem, runs, ticks)
    return Outcome(table, cluster, flight, settings, problem.reasons, (note,))


def _check(cluster: ClusterSpec, policy: Policy, conditions: Conditions, problem: Problem) -> None:
    if policy.label != "morphling":
        raise SpecError("compat", "Morphling's simulator runs its own policy; use 'morphling'.")
    if any(kind.gpus != NODE_GPUS for kind in cluster.node_types):
        raise SpecError("cluster", f"Morphling's simulator knows nodes of {NODE_GPUS} GPUs only.")
    for name in _OWN:
        if conditions.value(name) is not None:
            raise SpecError(name, f"Morphling's simulator has its own {name}; leave it out.")
    for name in _WITHOUT:
        if conditions.value(name) != QUIET[name]:
            raise SpecError(name, f"Morphling's simulator has no {name}; leave it out.")
    columns = set(problem.jobs.table.column_names)
    for name in ("plan", "steps", "is_sla"):
        if name not in columns:
            raise SpecError("compat", f"Morphling's simulator needs the jobs' column {name!r}.")


def _run(problem: Problem, row: int) -> _Run:
    jobs, models = problem.jobs, training_models()
    name = jobs.template[row]
    if name not in models or models[name].reference_iteration_time is None:
        raise SpecError.unknown("template", str(name), models)
    job = ArtifactJob(
        name=jobs.job_id[row],
        model=models[name],
        submit=float(jobs.submit_time[row]),
        guaranteed=bool(jobs.is_sla[row] > 0),
        num_gpus=round(jobs.num_gpus[row]),
        plan=Plan.parse(str(jobs.plan[row])),
    )
    return _Run(job, row, round(jobs.steps[row]))


def _flight(problem: Problem, runs: list[_Run], ticks: int) -> Flight:
    total = len(problem.jobs)
    start_of, end_of = np.full(total, math.nan), np.full(total, math.nan)
    stays = []
    for run in runs:
        bounds = [*(at for at, _, _ in run.stays), run.end]
        start_of[run.row], end_of[run.row] = bounds[0], run.end
        for (begin, place, plan), end in zip(run.stays, bounds[1:], strict=True):
            stays.append((begin, run.row, end, place, plan, run.job.model))
    stays.sort(key=lambda stay: stay[:2])
    begins, ends = (np.array([stay[at] for stay in stays], dtype=np.float64) for at in (0, 2))
    held = ends - begins
    job = np.array([row for _, row, *_ in stays], dtype=np.int64)
    places = [place for *_, place, _, _ in stays]
    shapes = [tuple(gpus for _, gpus in place) for place in places]
    times = [
        artifact_iteration_time(model, "".join(map(str, shape)), plan)
        for (*_, plan, model), shape in zip(stays, shapes, strict=True)
    ]
    status = np.full(total, REJECTED, dtype=np.int8)
    status[[run.row for run in runs]] = FINISHED
    steps, promise = np.zeros(total), np.full(total, math.nan)
    guaranteed = np.zeros(total, dtype=bool)
    for run in runs:
        steps[run.row] = run.steps + 1
        guaranteed[run.row] = run.job.guaranteed
        asked = str(run.job.num_gpus)
        if run.job.num_gpus <= NODE_GPUS:
            promise[run.row] = 1 / artifact_iteration_time(run.job.model, asked, run.job.plan)
    return Flight(
        start=start_of,
        end=end_of,
        run_time=np.bincount(job, weights=held, minlength=total),
        preemptions=np.zeros(total),
        status=status,
        segment_job=job,
        segment_start=begins,
        segment_end=ends,
        node_offset=np.concatenate([[0], np.cumsum([len(p) for p in places])]).astype(np.int64),
        nodes=np.array([node for place in places for node, _ in place], dtype=np.int32),
        node_gpus=np.array([gpus for place in places for _, gpus in place], dtype=np.int32),
        scheduling_points=ticks,
        stretches=Stretches(
            gpus=np.array([sum(shape) for shape in shapes], dtype=np.float64),
            cpus=np.zeros(len(job)),
            plan=np.array([plan.name for *_, plan, _ in stays], dtype=object),
            iteration_time=np.array(times),
            penalty_time=np.minimum(held, PENALTY),
            iterations=steps,
            iterations_done=steps,
            promise=promise,
            guaranteed=guaranteed,
        ),
    )
