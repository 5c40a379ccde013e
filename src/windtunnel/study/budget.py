"""What a run would cost, before it is flown: events and memory, from jobs, site and scheduler.

The estimate is for refusing what no machine can fly, a slip of the keyboard most often, not for
planning: a factor of a few either way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.placements.catalogue import split_placement
from windtunnel.placements.tree import Tree
from windtunnel.predictors.features import numbers
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.site.conditions import Conditions

#: Events that are flown without being asked to: a job that comes or goes counts as one, what costs
#: more counts as so many as take the same time. Large traces take long anyhow: each job adds some.
MAX_EVENTS, MAX_OF_A_JOB = 100_000_000, 50
#: The same of all flights of a search together.
MAX_OF_A_SEARCH = 10 * MAX_EVENTS
#: Bytes that a run may need besides the trace itself.
MAX_BYTES = 4 << 30
#: Bytes of the tables of a run: a GPU; a job with its stays; a node; an event that is kept.
_GPU, _JOB, _NODE, _KEPT = 8, 400, 300, 64
#: How many events count as much as: a round, for each running job in it, and a change of turns in
#: it, with what is reported of it, also where places are looked for in a tree; a round that Python
#: decides on, that solves for shares, and that solves for sizes; one after which Python looks at
#: who was started; a look at sleeping nodes; a failure or repair; a node that a stopped gang gives
#: and takes; a node's first failure, with its random stream. Measured, 0.15 µs an event.
_ROUND, _RUNNING, _TURN, _TURN_IN_TREE = 2.0, 0.2, 20.0, 700.0
_ASKED, _SHARES, _SIZES = 400.0, 800.0, 20_000.0
_AFTER, _LOOK, _FAILURE, _MOVED, _STREAM = 200.0, 400.0, 500.0, 0.4, 250.0
#: The reference takes so many times as long for rounds that compiled code decides on.
_REFERENCE = 100.0
#: Seconds that failures make a job longer at most: beyond, it never ends.
_ENDLESS = 1e18
#: The highest power of e that counts: two of them multiplied are still a number.
_STEEP = 300.0


@dataclass(frozen=True)
class Load:
    """What of a jobs table an estimate needs.

    Attributes:
        jobs: how many.
        span: from the first submission to the last, s.
        longest: the longest job, s.
        run_time: seconds of all jobs: for no longer can any of them be running.
        gpu_time: GPU seconds of all jobs.
        held: how long each job that holds GPUs does, which failures may stop, s, shape (n,).
        held_gpus: how many it holds, shape (n,).
        waited: for how long jobs run for which others wait, job seconds, as `_waited` has it.
        gpus: GPUs that all jobs ask for.
    """

    jobs: int
    span: float
    longest: float
    run_time: float
    gpu_time: float
    held: np.ndarray
    held_gpus: np.ndarray
    waited: float = 0.0
    gpus: float = 0.0

    @classmethod
    def of(cls, jobs: pa.Table, num_gpus: float = math.inf) -> Load:
        """Return a jobs table's on so many GPUs; what is not known counts as 0."""
        submit, duration, gpus = (
            np.nan_to_num(numbers(jobs, name), posinf=0.0, neginf=0.0)
            for name in ("submit_time", "duration", "num_gpus")
        )
        return cls(
            jobs.num_rows,
            float(np.ptp(submit)) if len(submit) else 0.0,
            float(duration.max(initial=0.0)),
            float(duration.sum()),
            float((duration * gpus).sum()),
            duration[gpus > 0],
            gpus[gpus > 0],
            _waited(submit, duration, gpus, num_gpus),
            float(gpus.sum()),
        )


def _waited(submit: np.ndarray, duration: np.ndarray, gpus: np.ndarray, total: float) -> float:
    """Return for how many seconds jobs run while others wait for them, at most so many of both.

    The integral of N(t) min(1, D(t) / G - 1), where N jobs that want D GPUs would run at t if each
    ran as it comes, and G there are: G / D of them can run, which takes D / G as long, and at each
    round as many give way as wait.
    """
    if not math.isfinite(total):
        return 0.0
    times = np.concatenate([submit, submit + duration])
    order = np.argsort(times, kind="stable")
    wanted = np.cumsum(np.concatenate([gpus, -gpus])[order])[:-1]
    present = np.cumsum(np.concatenate([np.ones(len(gpus)), -np.ones(len(gpus))])[order])[:-1]
    share = np.clip(wanted / max(total, 1.0) - 1.0, 0.0, 1.0)
    return float((present * share * np.diff(times[order])).sum())


@dataclass(frozen=True)
class Budget:
    """What a run would cost.

    Attributes:
        horizon: how long the simulated time is, s.
        events: what it costs, in events that take as long: cause -> events.
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
    held_up = _held_up(load, cluster, conditions)
    whole = load.span + max(load.longest, load.gpu_time / max(cluster.num_gpus, 1)) + held_up
    horizon = whole
    if conditions.until is not None:
        horizon = min(horizon, max(float(conditions.until), 0.0))
    turns = _turns(load, conditions) * (horizon / whole if whole else 0.0)
    events = {"for jobs that come and go": 2.0 * load.jobs}
    events |= _rounds(load, conditions, min(horizon, load.run_time + held_up), turns)
    sleep = conditions.scheduler.node_sleep
    if sleep is not None:
        step = _seconds(sleep, "step")
        events[f"for looks of node_sleep, one in {step:g} s"] = _LOOK * horizon / step
    failures, moved, streams = _failures(load, cluster, conditions, horizon)
    if failures:
        spent = _FAILURE * failures + _MOVED * moved + _STREAM * streams
        events["for failures and repairs"] = spent
    memory = (
        _GPU * float(cluster.num_gpus) * (not cluster.is_pool)
        + _NODE * float(cluster.num_nodes)
        + _JOB * load.jobs
        + _KEPT * (turns + failures + moved / 4)
    )
    return Budget(horizon, events, memory)


def refuse_large(
    jobs: pa.Table, cluster: ClusterSpec, conditions: Conditions, flights: int = 1
) -> None:
    """Check that a run is not out of all proportion, unless it was allowed to be.

    Args:
        jobs: a jobs table.
        cluster: where.
        conditions: what it is flown under, resolved.
        flights: how many such runs a search takes.

    Raises:
        SpecError: it is; tells the numbers and what makes them.
    """
    if conditions.allow_large:
        return
    in_rounds = _round_length(conditions.scheduler.policy) is not None
    load = Load.of(jobs, float(cluster.num_gpus) if in_rounds else math.inf)
    found = estimate(load, cluster, conditions)
    what, most = max(found.events.items(), key=lambda item: item[1])
    total, most = flights * found.total, flights * most
    limit = (MAX_EVENTS if flights == 1 else MAX_OF_A_SEARCH) + flights * MAX_OF_A_JOB * load.jobs
    if total > limit:
        subject = "this run" if flights == 1 else f"a search of about {flights:,} flights"
        raise SpecError(
            "allow_large",
            f"{subject} would cost about as much as {total:.2g} events, {most:.2g} of them "
            f"{what}; more than {limit:,} are flown only if it is set (--allow-large).",
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


def _failures(
    load: Load, cluster: ClusterSpec, conditions: Conditions, horizon: float
) -> tuple[float, float, int]:
    """Return how often random failures begin and end, the nodes of gangs they hit, the streams.

    A job of d seconds that loses all at a failure of rate r fails e^(rd) - 1 times on average
    before it ends, in (e^(rd) - 1) / r seconds of work (Feller, vol. 1, XIII); with checkpoints
    every c seconds of work, d/c times both of c. A gang's rate is that of all its nodes. The clock
    runs on meanwhile, up to the run's end where that is set; jobs that are over with a failure, and
    those without GPUs, add nothing. A gang waits until so many nodes are up together.
    """
    disruptions = conditions.site.disruptions
    if disruptions is None:
        return 0.0, 0.0, 0
    total, moved, streams = 0.0, 0.0, 0
    kept = _seconds(disruptions.checkpoint, "interval")
    is_bounded = conditions.until is not None or disruptions.on_failure == "end"
    nodes = load.held_gpus * cluster.num_nodes / max(cluster.num_gpus, 1)
    nodes = np.clip(nodes, 1.0, max(cluster.num_nodes, 1))
    held = nodes
    for model in disruptions.failure_models:
        of = cluster.num_nodes if model.nodes is None else len(model.nodes)
        streams += of
        nodes = np.minimum(held, max(of, 1))
        mtbf, mttr = _seconds(model, "mtbf"), _seconds(model, "mttr")
        piece = np.minimum(kept, load.held)
        pieces = np.divide(load.held, piece, out=np.zeros_like(piece), where=piece > 0)
        late = seconds("found_after", model.found_after)
        again = pieces * np.expm1(np.minimum((piece + late) * nodes / mtbf, _STEEP))
        rarely = _up_together(nodes, max(of, 1), mtbf / (mtbf + mttr))
        tries = np.minimum(again * mtbf / nodes / rarely, _ENDLESS)
        if model.speed:  # nobody is stopped
            tries = load.held / model.speed
        longer = np.maximum(tries - load.held, 0.0)
        spread = float((longer * load.held_gpus).sum()) / max(cluster.num_gpus, 1)
        length = horizon + max(float(longer.max(initial=0.0)), spread) * (not is_bounded)
        total += 2.0 * of * length / (mtbf + mttr)
        if not model.speed:
            moved += float((np.minimum(tries, length) * nodes / mtbf * held).sum())
    return total, moved, streams


def _up_together(nodes: np.ndarray, of: int, share: float) -> np.ndarray:
    """Return at most for which part of the time so many nodes are up (Chernoff's bound).

    Args:
        nodes: how many, shape (n,).
        of: of how many.
        share: of the time that each is up, independently.
    """
    if not 0 < share < 1:
        return np.ones(len(nodes))
    part = np.clip(nodes / max(of, 1), share, 1.0)
    others = np.maximum(1.0 - part, 1e-300)
    apart = part * np.log(part / share) + (1.0 - part) * np.log(others / (1.0 - share))
    bound: np.ndarray = np.exp(-np.minimum(of * apart, _STEEP))
    return bound


def _seconds(what: Any, name: str) -> float:
    value = getattr(what, name)
    return math.inf if value is None else seconds(name, value, endless=True) or math.inf


def _rounds(load: Load, conditions: Conditions, busy: float, turns: float) -> dict[str, float]:
    """Return what the rounds of the policy cost, by cause; none where it has no rounds.

    They go on for ``busy`` s, while a job runs or waits.
    """
    policy = conditions.scheduler.policy
    length = _round_length(policy)
    if not length:
        return {}
    each = _ROUND
    if policy.elastic:
        each = _SIZES
    elif policy.every is None:
        each = _SHARES
    elif policy.levels is None and not policy.in_numbers:
        each = _ASKED
    scheduler = conditions.scheduler
    if scheduler.node_sleep is not None or (scheduler.shift and scheduler.shift.interruptible):
        each += _AFTER
    in_tree = split_placement(scheduler.placement).name == Tree.name
    found = each * busy / length + (_TURN_IN_TREE if in_tree else _TURN) * turns
    if policy.preemptive:
        found += _RUNNING * min(load.run_time, busy * load.jobs) / length
    if conditions.engine == "reference" and each < _ASKED:
        found *= _REFERENCE
    return {f"for rounds of {policy.label}, one in {length:g} s": found}


def _held_up(load: Load, cluster: ClusterSpec, conditions: Conditions) -> float:
    """Return for how long jobs may wait, or launch, s: for a decision, for a better hour, to start.

    Decisions that are ``decide_every`` apart fill the cluster once each. Each job of an elastic
    policy is launched once, at least.
    """
    scheduler, held_up = conditions.scheduler, 0.0
    if scheduler.policy.elastic and scheduler.penalty is not None:
        penalty = scheduler.penalty
        penalties = list(penalty.values()) if isinstance(penalty, Mapping) else [penalty]
        held_up += max(map(float, penalties), default=0.0)
    if scheduler.decide_every is not None:
        fills = min(1.0 + load.gpus / max(cluster.num_gpus, 1), float(load.jobs))
        held_up += seconds("decide_every", scheduler.decide_every) * fills
    if scheduler.shift is not None:
        most = scheduler.shift.max_delay
        held_up += load.span + (0.0 if most is None else seconds("max_delay", most))
    return held_up


def _turns(load: Load, conditions: Conditions) -> float:
    """Return how often jobs give way to others at rounds."""
    policy = conditions.scheduler.policy
    length = _round_length(policy)
    return load.waited / length if length and policy.preemptive else 0.0


def _round_length(policy: Any) -> float | None:
    """Return the seconds of a policy's rounds, whatever it calls them; None = it has none."""
    rules = getattr(policy, "rules", None)
    length = policy.every or getattr(policy, "length", None) or getattr(rules, "length", None)
    return None if length is None else float(length)
