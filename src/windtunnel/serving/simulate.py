"""Serving a workload with a placement: immediate, event-driven and batching simulators.

Semantics are those of AlpaServe's simulators (OSDI'23, section 4; spec in docs/guides/serving.md).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_choice, checked_count
from windtunnel.errors import SpecError
from windtunnel.serving.compiled import Tables, kernels, tables
from windtunnel.serving.outcome import ServingOutcome
from windtunnel.serving.overheads import Overheads, as_overheads

if TYPE_CHECKING:
    from windtunnel.serving.parallel import Parallel
    from windtunnel.serving.placement import Placement
    from windtunnel.serving.profile import Profile
    from windtunnel.serving.workload import Workload

#: Dispatch rules, in the order of the kernel's codes.
DISPATCH = (
    *("least_work", "shortest_queue", "round_robin", "random", "two_choices", "earliest_finish"),
)


@dataclass(frozen=True)
class Delays:
    """What messages cost in the event-driven simulator: |Normal(mean, sd)| each, s.

    Attributes:
        client: mean and deviation, from the client to the controller.
        dispatch: from the controller to the group manager.
        engine: from the group manager to the first stage.
        margin: what the group manager adds to the finish that it foresees.
    """

    client: tuple[float, float] = (0.0, 0.0)
    dispatch: tuple[float, float] = (0.0, 0.0)
    engine: tuple[float, float] = (0.0, 0.0)
    margin: float = 0.0

    def draw(self, count: int, seed: int) -> list[np.ndarray]:
        """Return the three delays of each request, shape (count,) each, s."""
        random = np.random.default_rng(seed)
        return [
            np.abs(random.normal(mean, deviation, count))
            for mean, deviation in (self.client, self.dispatch, self.engine)
        ]


#: Named delays: ``alpaserve`` is the published event simulator's.
DELAYS = {
    "none": Delays(),
    "alpaserve": Delays((0.0025, 0.0005), (0.0025, 0.0005), (0.005, 0.0005), 0.004),
}


def simulate(
    placement: Placement,
    workload: Workload,
    profile: Profile,
    *,
    overheads: Overheads | str = "none",
    dispatch: str = "least_work",
    mem_budget: float | None = None,
    seed: int = 0,
) -> ServingOutcome:
    """Serve a workload; every request is handled completely at its arrival.

    A request goes to one of the groups that hold its model, passes the stages in order (each is
    first come, first served, over all models of the group) and is refused, using nothing, if its
    answer would come later than its SLO.

    Args:
        placement: models on groups.
        workload: the requests.
        profile: stage latencies, at batch size 1.
        overheads: ``none``, ``alpaserve``, or your own.
        dispatch: which group: ``least_work``, whose last stage is free the earliest (AlpaServe's);
            ``shortest_queue``, fewest requests in flight; ``round_robin``, by model; ``random``;
            ``two_choices``, the lesser work of two random ones; ``earliest_finish``. Ties go to the
            lowest index.
        mem_budget: bytes for weights on a GPU; None does not ask.
        seed: of the random rules.

    Raises:
        SpecError: a name is unknown, or the placement does not suit the profile.
        InfeasibleError: a group's models need more memory than the budget.
    """
    costs = as_overheads(overheads)
    checked_choice("dispatch", dispatch, DISPATCH)
    placement.check(workload.models, profile, mem_budget)
    arrays = tables(placement, workload.models, profile, costs)
    clocks = np.full(arrays.clock_start[-1], -math.inf)
    group, start, finish = serve_immediately(
        arrays, workload, costs, clocks, dispatch=dispatch, seed=seed
    )
    settings = {"simulator": "immediate", "dispatch": dispatch, "seed": seed, **asdict(costs)}
    return outcome(placement, workload, arrays, (group, start, finish), settings)


def serve_immediately(
    arrays: Tables,
    workload: Workload,
    overheads: Overheads,
    clocks: np.ndarray,
    *,
    dispatch: str,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run the immediate kernel; ``clocks`` are where each stage is free, changed in place."""
    group, start, finish = kernels().serve_at_once(
        *workload.arrays(), *arrays, overheads.fixed, clocks, DISPATCH.index(dispatch),
        seed % 2**64,
    )  # fmt: skip
    return group, start, finish


def simulate_events(
    placement: Placement,
    workload: Workload,
    profile: Profile,
    *,
    delays: Delays | str = "none",
    overheads: Overheads | str = "none",
    mem_budget: float | None = None,
    seed: int = 0,
) -> ServingOutcome:
    """Serve a workload event by event: client, controller, group manager, engine, stages.

    The controller sends a request to the group with the fewest requests in flight. The group's
    manager foresees its finish with clocks of its own and refuses it if that is too late; an
    accepted one may still be late, which `ServingOutcome.good` tells.

    Args:
        placement: models on groups.
        workload: the requests.
        profile: stage latencies, at batch size 1.
        delays: ``none``, ``alpaserve``, or your own.
        overheads: of the stages; the fixed part is added to the finish.
        mem_budget: bytes for weights on a GPU; None does not ask.
        seed: of the delays.

    Raises:
        SpecError: a name is unknown, or the placement does not suit the profile.
        InfeasibleError: a group's models need more memory than the budget.
    """
    costs = as_overheads(overheads)
    if isinstance(delays, str) and delays not in DELAYS:
        raise SpecError.unknown("delays", delays, DELAYS)
    chosen = DELAYS[delays] if isinstance(delays, str) else delays
    placement.check(workload.models, profile, mem_budget)
    arrays = tables(placement, workload.models, profile, costs)
    client, to_manager, to_engine = chosen.draw(len(workload), seed)
    reached = workload.arrival + client
    group, start, finish = kernels().serve_events(
        *workload.arrays(), reached, np.argsort(reached, kind="stable"), to_manager, to_engine,
        *arrays, chosen.margin + costs.fixed,
    )  # fmt: skip
    settings = {"simulator": "events", "dispatch": "shortest_queue", "seed": seed, **asdict(costs)}
    settings["delays"] = [*chosen.client, *chosen.dispatch, *chosen.engine, chosen.margin]
    return outcome(placement, workload, arrays, (group, start, finish + costs.fixed), settings)


def simulate_batches(
    placement: Placement,
    workload: Workload,
    profile: Profile,
    *,
    max_batch: int = 16,
    overheads: Overheads | str = "none",
    mem_budget: float | None = None,
) -> ServingOutcome:
    """Serve a workload in batches.

    An arrival joins its model's queue in the group with the fewest requests. When a group's first
    stage is idle it takes the model whose head has waited longest, drops heads that could not be on
    time even alone, and starts the largest profiled batch that the queue fills and whose finish is
    in time for the head.

    Args:
        placement: models on groups.
        workload: the requests.
        profile: stage latencies by batch size, 1 among them.
        max_batch: larger batches are not made.
        overheads: ``none``, ``alpaserve``, or your own.
        mem_budget: bytes for weights on a GPU; None does not ask.

    Raises:
        SpecError: a name is unknown, or the placement does not suit the profile.
        InfeasibleError: a group's models need more memory than the budget.
    """
    costs = as_overheads(overheads)
    checked_count("max_batch", max_batch)
    placement.check(workload.models, profile, mem_budget)
    arrays = tables(placement, workload.models, profile, costs)
    keys = _pairs(placement, workload, arrays)
    sizes, first, times = _batch_tables(keys, profile, costs, max_batch)
    group, start, finish, batch, at = kernels().serve_batches(
        *workload.arrays(), arrays.host_start, arrays.hosts, arrays.clock_start, sizes, first,
        times, costs.fixed,
    )  # fmt: skip
    busy = _busy_by_batch(placement, workload, arrays, (group, batch, at), (first, times))
    settings = {"simulator": "batching", "max_batch": max_batch, **asdict(costs)}
    gpus = np.array([g.parallel.gpus for g in placement.groups])
    return ServingOutcome(workload, group, start, finish, batch, busy, gpus, settings)


def outcome(
    placement: Placement,
    workload: Workload,
    arrays: Tables,
    served: tuple[np.ndarray, np.ndarray, np.ndarray],
    settings: dict[str, Any],
) -> ServingOutcome:
    """Return a kernel's arrays as an outcome; every request is a batch of its own."""
    group, start, finish = served
    accepted = ~np.isnan(finish)
    busy = np.zeros(len(placement.groups))
    pairs = pair_counts(arrays, workload.model[accepted], group[accepted])
    for pair, count in enumerate(pairs.tolist()):
        parallel = placement.groups[arrays.hosts[pair]].parallel
        first = arrays.pair_first[pair]
        time = arrays.stage_time[first : first + parallel.pp].sum()
        busy[arrays.hosts[pair]] += count * time * parallel.op
    gpus = np.array([g.parallel.gpus for g in placement.groups])
    batch = accepted.astype(np.int64)
    return ServingOutcome(workload, group, start, finish, batch, busy, gpus, settings)


def pair_counts(arrays: Tables, model: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return how many requests each pair of model and group served, shape (pairs,)."""
    models, groups = len(arrays.host_start) - 1, len(arrays.clock_start) - 1
    counts = np.bincount(model * groups + group, minlength=models * groups)
    owner = np.repeat(np.arange(models), np.diff(arrays.host_start))
    return np.asarray(counts[owner * groups + arrays.hosts])


def _pairs(placement: Placement, workload: Workload, arrays: Tables) -> list[tuple[str, Parallel]]:
    """Return the profile's key of each pair of model and group."""
    owner = np.repeat(np.arange(len(workload.models)), np.diff(arrays.host_start)).tolist()
    return [
        (workload.models[model], placement.groups[group].parallel)
        for model, group in zip(owner, arrays.hosts.tolist(), strict=True)
    ]


def _batch_tables(
    keys: list[tuple[str, Parallel]], profile: Profile, overheads: Overheads, max_batch: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return batch sizes; first stage time by pair and size, -1 where unknown; stage times."""
    known = {batch for key in keys for batch in profile.batches(*key)}
    sizes = np.array(sorted({1} | {b for b in known if b <= max_batch}), dtype=np.int64)
    first = np.full((len(keys), len(sizes)), -1, dtype=np.int64)
    times, total = [np.empty(0)], 0
    for pair, key in enumerate(keys):
        for column, size in enumerate(sizes.tolist()):
            if profile.has(*key, size):
                first[pair, column] = total
                times.append(overheads.stage_times(profile.stages(*key, size).latency))
                total += len(times[-1])
    return sizes, first, np.concatenate(times)


def _busy_by_batch(
    placement: Placement,
    workload: Workload,
    arrays: Tables,
    served: tuple[np.ndarray, np.ndarray, np.ndarray],
    stage_times: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return each group's GPU time in use, shape (groups,), s: a batch counts once."""
    group, batch, at = served
    first, times = stage_times
    busy = np.zeros(len(placement.groups))
    for column in range(first.shape[1]):
        mine = (batch > 0) & (at == column)
        if not mine.any():
            continue
        counts = pair_counts(arrays, workload.model[mine], group[mine]) / batch[mine][0]
        for pair, count in enumerate(counts.tolist()):
            parallel = placement.groups[arrays.hosts[pair]].parallel
            begin = first[pair, column]
            if count:
                busy[arrays.hosts[pair]] += (
                    count * times[begin : begin + parallel.pp].sum() * parallel.op
                )
    return busy
