"""Clockwork++: selective replication anew for every stretch of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.serving.placement import MEM_BUDGET
from windtunnel.serving.schedule import Schedule, segments
from windtunnel.serving.search.policies import search

if TYPE_CHECKING:
    from windtunnel.serving.overheads import Overheads
    from windtunnel.serving.profile import Profile
    from windtunnel.serving.search.problem import OnDone
    from windtunnel.serving.workload import Workload


def search_schedule(
    workload: Workload,
    profile: Profile,
    gpus: int,
    length: float,
    policy: str = "sr-greedy",
    *,
    mem_budget: float = MEM_BUDGET,
    overheads: Overheads | str = "none",
    refine: int = 0,
    workers: int = 1,
    on_done: OnDone | None = None,
) -> Schedule:
    """Place anew for each stretch of the workload, knowing it in advance (``sr-replace-T``).

    Args:
        workload: the requests.
        profile: costs and memory.
        gpus: GPUs of the cluster.
        length: of a stretch, s: it ends before the first arrival more than so long after its first.
        policy: any of `windtunnel.serving.search.policies.search`.
        mem_budget: bytes for weights on a GPU.
        overheads: ``none``, ``alpaserve``, or your own.
        refine: as in `windtunnel.serving.search.policies.search`.
        workers: threads; the result is the same.
        on_done: called after each stretch.

    Raises:
        SpecError: a number makes no sense, or there are no requests.
        InfeasibleError: no model fits anywhere.
    """
    cuts = segments(workload, length)
    if not cuts:
        raise SpecError("workload", "there are no requests to search placements for.")
    starts, placements = [], []
    for cut in cuts:
        part = workload.rows(cut)
        found = search(
            part, profile, gpus, policy, mem_budget=mem_budget, overheads=overheads, refine=refine,
            workers=workers,
        )  # fmt: skip
        starts.append(float(part.arrival[0]))
        placements.append(found.placement)
        if on_done is not None:
            on_done("segment")
    return Schedule(tuple(starts), tuple(placements))
