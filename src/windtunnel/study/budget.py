"""What a run would cost, before it is flown: events and memory, from jobs, site and scheduler.

The estimate is for refusing what no machine can fly, a slip of the keyboard most often, not for
planning: a factor of a few either way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.site.conditions import Conditions

#: Events that are flown without being asked to: minutes on the compiled engine.
MAX_EVENTS = 100_000_000
#: Bytes that a run may need besides the trace itself.
MAX_BYTES = 4 << 30
#: Bytes of the tables of a run: a GPU; a job with its stays; a node; an event that is kept.
_GPU, _JOB, _NODE, _KEPT = 8, 400, 300, 64
#: Failures of one job that are counted at most: beyond, it never ends.
_ENDLESS = 1e12


@dataclass(frozen=True)
class Load:
    """What of a jobs table an estimate needs.

    Attributes:
        jobs: how many.
        span: from the first submission to the last, s.
        longest: the longest job, s.
        run_time: seconds of all jobs: for no longer can any of them be running.
        gpu_time: GPU seconds of all jobs.
        longest_held: the longest job that holds GPUs, which failures may stop, s.
    """

    jobs: int
    span: float
    longest: float
    run_time: float
    gpu_time: float
    longest_held: float

    @classmethod
    def of(cls, jobs: pa.Table) -> Load:
        """Return a jobs table's; what is not known counts as 0."""
        submit, duration, gpus = (
            np.nan_to_num(jobs[name].cast(pa.float64()).to_numpy(), posinf=0.0, neginf=0.0)
            for name in ("submit_time", "duration", "num_gpus")
        )
        return cls(
            jobs.num_rows,
            float(np.ptp(submit)) if len(submit) else 0.0,
            float(duration.max(initial=0.0)),
            float(duration.sum()),
            float((duration * gpus).sum()),
            float(duration[gpus > 0].max(initial=0.0)),
        )


@dataclass(frozen=True)
class Budget:
    """What a run would cost.

    Attributes:
        horizon: how long the simulated time is, s.
        events: instants at which something happens, and for how much of it what: cause -> events.
        memory: bytes.
    """

    horizon: float
    events: dict[str, float]
    memory: float

    @property
    def total(self) -> float:
        """All events."""
        return math.fsum(self.events.values())


def estimate(load: Load, cluster: ClusterSpec, conditions: Conditions) -> Budget:
    """Return what a run would cost.

    Args:
        load: of its jobs.
        cluster: where.
        conditions: what it is flown under, resolved.
    """
    horizon = load.span + max(load.longest, load.gpu_time / max(cluster.num_gpus, 1))
    if conditions.until is not None:
        horizon = min(horizon, max(float(conditions.until), 0.0))
    events = {"jobs that come and go": 2.0 * load.jobs}
    policy = conditions.scheduler.policy
    rounds = getattr(policy, "every", None)
    if rounds:
        busy = min(horizon, load.run_time)
        events[f"rounds of {policy.label}, one in {rounds:g} s"] = busy / rounds
    sleep = conditions.scheduler.node_sleep
    if sleep is not None:
        step = _seconds(sleep, "step")
        events[f"looks of node_sleep, one in {step:g} s"] = horizon / step
    failures = _failures(load, cluster, conditions, horizon)
    if failures:
        events["failures and repairs"] = failures
    memory = (
        _GPU * float(cluster.num_gpus) * (not cluster.is_pool)
        + _NODE * float(cluster.num_nodes)
        + _JOB * load.jobs
        + _KEPT * (math.fsum(events.values()) - 2.0 * load.jobs)
    )
    return Budget(horizon, events, memory)


def refuse_large(jobs: pa.Table, cluster: ClusterSpec, conditions: Conditions) -> None:
    """Check that a run is not out of all proportion, unless it was allowed to be.

    Raises:
        SpecError: it is; tells the numbers and what makes them.
    """
    if conditions.allow_large:
        return
    found = estimate(Load.of(jobs), cluster, conditions)
    what, most = max(found.events.items(), key=lambda item: item[1])
    if found.total > MAX_EVENTS:
        raise SpecError(
            "allow_large",
            f"this run would have about {found.total:.2g} events, {most:.2g} of them {what}; more "
            f"than {MAX_EVENTS:,} are flown only if it is set (--allow-large).",
        )
    if found.memory > MAX_BYTES:
        raise SpecError(
            "allow_large",
            f"this run would need about {found.memory / 2**30:.2g} GiB for {_size(cluster)} "
            f"and {found.total:.2g} events; more than {MAX_BYTES >> 30} GiB are taken only if it "
            "is set (--allow-large).",
        )


def _size(cluster: ClusterSpec) -> str:
    return f"{cluster.num_gpus:,} GPUs on {cluster.num_nodes:,} nodes"


def _failures(load: Load, cluster: ClusterSpec, conditions: Conditions, horizon: float) -> float:
    """Return how often random failures begin and end.

    A job of d seconds that loses all at a failure of rate r fails e^(rd) - 1 times on average
    before it ends (Feller, vol. 1, XIII); with checkpoints every c seconds of work, d/c times
    e^(rc) - 1. The clock runs on meanwhile, up to the run's end where that is set; jobs that are
    over with a failure, and those without GPUs, add nothing.
    """
    disruptions = conditions.site.disruptions
    if disruptions is None:
        return 0.0
    total = 0.0
    kept = _seconds(disruptions.checkpoint, "interval")
    for model in disruptions.failure_models:
        mtbf, mttr = _seconds(model, "mtbf"), _seconds(model, "mttr")
        piece = min(kept, load.longest_held)
        pieces = load.longest_held / piece if piece else 0.0
        again = min(pieces * math.expm1(min(piece / mtbf, 700.0)), _ENDLESS)
        is_bounded = conditions.until is not None or disruptions.on_failure == "end"
        length = horizon + (0.0 if is_bounded else again * mttr)
        total += 2.0 * cluster.num_nodes * length / (mtbf + mttr)
    return total


def _seconds(what: Any, name: str) -> float:
    value = getattr(what, name)
    return math.inf if value is None else seconds(name, value, endless=True) or math.inf
