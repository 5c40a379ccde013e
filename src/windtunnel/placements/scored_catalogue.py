"""The scored placements by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.placements.fgd import Fgd
from windtunnel.placements.load import (
    BestFitDevices,
    FirstFit,
    LeastIdle,
    LowestUtilization,
    MostIdle,
    Random,
    SpreadDevices,
    WorstFit,
)
from windtunnel.placements.packing import DotProd, GpuClustering, GpuPacking, OpenbBestFit

if TYPE_CHECKING:
    from windtunnel.placements.scored import ScoredPlacement
    from windtunnel.sim.fragmentation import TargetWorkload

SCORED: dict[str, type[ScoredPlacement]] = {
    placement.name: placement
    for placement in (
        *(BestFitDevices, FirstFit, WorstFit, SpreadDevices, LeastIdle, MostIdle),
        *(LowestUtilization, OpenbBestFit, DotProd, GpuPacking, GpuClustering, Fgd, Random),
    )
}


def resolve_scored(
    name: str,
    *,
    scores: str = "integer",
    ties: str | None = None,
    gang: str = "node",
    seed: int = 0,
    workload: TargetWorkload | None = None,
) -> ScoredPlacement:
    """Return a scored placement by name; options as in `windtunnel.placements.scored`.

    Raises:
        SpecError: unknown name (the nearest is suggested), or an option is wrong.
    """
    if name not in SCORED:
        raise SpecError.unknown("placement", name, SCORED)
    return SCORED[name](scores=scores, ties=ties, gang=gang, seed=seed, workload=workload)
