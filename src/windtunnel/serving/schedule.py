"""Placements that change over time, and what changing them costs.

AlpaServe's baseline Clockwork++ (OSDI'23, section 6.1) places anew for every stretch of the trace,
for free and with empty queues: an upper bound. Beside it stands the same with a price: work under
way is finished first, and weights that a GPU does not hold yet are loaded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_choice, checked_number
from windtunnel.errors import SpecError, quote
from windtunnel.serving.compiled import tables
from windtunnel.serving.outcome import ServingOutcome
from windtunnel.serving.overheads import as_overheads
from windtunnel.serving.simulate import DISPATCH, outcome, serve_immediately

if TYPE_CHECKING:
    from windtunnel.serving.overheads import Overheads
    from windtunnel.serving.placement import Group, Placement
    from windtunnel.serving.profile import Profile
    from windtunnel.serving.workload import Workload


@dataclass(frozen=True)
class Schedule:
    """Placements, each from its start on.

    Attributes:
        starts: ascending, s; requests before the first are served by the first.
        placements: one a start, all of the same number of GPUs.

    Raises:
        SpecError: numbers differ or starts do not ascend.
    """

    starts: tuple[float, ...]
    placements: tuple[Placement, ...]

    def __post_init__(self) -> None:
        if not self.starts or len(self.starts) != len(self.placements):
            raise SpecError("schedule", "expected one placement for each start.")
        if not (np.diff(self.starts) > 0).all() or not np.isfinite(self.starts).all():
            raise SpecError("schedule.starts", "expected finite times in ascending order.")
        if len({placement.num_gpus for placement in self.placements}) > 1:
            raise SpecError("schedule.placements", "expected the same number of GPUs in each.")


@dataclass(frozen=True)
class Switch:
    """What it costs to change a placement.

    Attributes:
        bandwidth: of loading weights onto a GPU, bytes/s; infinite = at once.
        fixed: time of a change for every group that changes, s.
    """

    bandwidth: float = math.inf
    fixed: float = 0.0

    def __post_init__(self) -> None:
        if not self.bandwidth > 0 or not 0 <= self.fixed < math.inf:
            raise SpecError("switch", f"found {quote(self)}; expected bandwidth > 0, fixed >= 0.")


def segments(workload: Workload, length: float) -> list[slice]:
    """Cut requests into stretches: one ends before the first arrival > length after its first.

    Raises:
        SpecError: the length is not positive.
    """
    checked_number("length", length, "seconds > 0", above=0)
    cuts, first = [], 0
    while first < len(workload):
        end = int(np.searchsorted(workload.arrival, workload.arrival[first] + length, "right"))
        cuts.append(slice(first, end))
        first = end
    return cuts


def simulate_schedule(
    schedule: Schedule,
    workload: Workload,
    profile: Profile,
    *,
    switch: Switch | None = None,
    overheads: Overheads | str = "none",
    dispatch: str = "least_work",
    mem_budget: float | None = None,
) -> ServingOutcome:
    """Serve a workload with placements that change, by the immediate simulator.

    Args:
        schedule: placements over time.
        workload: the requests; each is served by the placement of its arrival.
        profile: stage latencies and weights.
        switch: its cost. None is Clockwork++'s: free, and every queue is empty after it. Else a
            group that changes waits until its GPUs have finished the work of before, then loads
            the weights that are not there (the largest stage of each new model, one after the
            other); a group that stays as it is keeps working, and one that only drops models, too.
        overheads: ``none``, ``alpaserve``, or your own.
        dispatch: as in `windtunnel.serving.simulate.simulate`.
        mem_budget: bytes for weights on a GPU; None does not ask.

    Raises:
        SpecError: a name is unknown, or a placement does not suit the profile.
        InfeasibleError: a group's models need more memory than the budget.

    The outcome's settings have ``loading``: for each change of a group that costs time, its
    ``segment``, ``first_gpu``, ``gpus``, when its GPUs had ``drained`` and when it was ``loaded``.
    """
    costs = as_overheads(overheads)
    checked_choice("dispatch", dispatch, DISPATCH)
    edges = np.searchsorted(workload.arrival, [-math.inf, *schedule.starts[1:], math.inf]).tolist()
    parts: list[ServingOutcome] = []
    loading: list[dict[str, float]] = []
    before: tuple[Placement, np.ndarray] | None = None
    for number, placement in enumerate(schedule.placements):
        placement.check(workload.models, profile, mem_budget)
        arrays = tables(placement, workload.models, profile, costs)
        clocks = np.full(arrays.clock_start[-1], -math.inf)
        if switch is not None and before is not None:
            clocks, loads = _clocks(
                before, placement, schedule.starts[number], workload.models,
                profile=profile, switch=switch,
            )  # fmt: skip
            loading += [{"segment": number, **load} for load in loads]
        part = workload.rows(slice(edges[number], edges[number + 1]))
        served = serve_immediately(arrays, part, costs, clocks, dispatch=dispatch, seed=0)
        parts.append(outcome(placement, part, arrays, served, {}))
        before = (placement, clocks)
    settings = {"dispatch": dispatch, "switch": repr(switch), "loading": loading}
    return _joined(parts, workload, schedule, settings)


def _spans(placement: Placement) -> list[tuple[int, int]]:
    """Return the first GPU of each group and the one after its last."""
    ends = np.cumsum([group.parallel.gpus for group in placement.groups]).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _clocks(
    before: tuple[Placement, np.ndarray],
    after: Placement,
    now: float,
    models: tuple[str, ...],
    *,
    profile: Profile,
    switch: Switch,
) -> tuple[np.ndarray, list[dict[str, float]]]:
    """Return where each stage of the new placement is free, and what was loaded."""
    old, clocks = before
    drained = np.full(old.num_gpus, -math.inf)
    there: dict[tuple[int, int], tuple[Group, np.ndarray]] = {}
    first = 0
    for span, group in zip(_spans(old), old.groups, strict=True):
        mine = clocks[first : first + group.parallel.pp]
        drained[slice(*span)] = mine.max()
        there[span] = (group, mine)
        first += group.parallel.pp
    ready, loads = [], []
    for span, group in zip(_spans(after), after.groups, strict=True):
        known = there.get(span)
        held: set[int] = set()
        if known is not None and known[0].parallel == group.parallel:
            held = set(known[0].models)
            if held.issuperset(group.models):
                ready.append(known[1])
                continue
        new = [model for model in group.models if model not in held]
        weights = [profile.weight(models[model], group.parallel) for model in new]
        idle = max(now, float(drained[slice(*span)].max()))
        loaded = idle + switch.fixed + sum(weights) / switch.bandwidth
        ready.append(np.full(group.parallel.pp, loaded))
        if loaded > now:
            gpus = span[1] - span[0]
            loads.append({"first_gpu": span[0], "gpus": gpus, "drained": idle, "loaded": loaded})
    return np.concatenate(ready), loads


def _joined(
    parts: list[ServingOutcome], workload: Workload, schedule: Schedule, settings: dict[str, Any]
) -> ServingOutcome:
    """Return the parts as one outcome; busy time is of the whole cluster."""
    return ServingOutcome(
        workload,
        np.concatenate([part.group for part in parts]),
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.finish for part in parts]),
        np.concatenate([part.batch for part in parts]),
        _summed([part.busy for part in parts]),
        np.array([schedule.placements[0].num_gpus]),
        {"simulator": "immediate", "segments": len(parts), **settings},
    )


def _summed(busy: list[np.ndarray]) -> np.ndarray:
    """Return busy time by group index over all segments, s."""
    total = np.zeros(max(len(part) for part in busy))
    for part in busy:
        total[: len(part)] += part
    return total
