"""The scored placements by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.placements.fgd import Fgd
from windtunnel.placements.load import (
    BestFitDevices,
    FirstFit,
    LeastIdle,
    LoadRate,
    LowestUtilization,
    MostIdle,
    Random,
    SpreadDevices,
    WorstFit,
)
from windtunnel.placements.packing import DotProd, GpuClustering, GpuPacking, OpenbBestFit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.placements.scored import ScoredPlacement
    from windtunnel.sim.fragmentation import TargetWorkload

SCORED: dict[str, type[ScoredPlacement]] = {
    placement.name: placement
    for placement in (
        *(BestFitDevices, FirstFit, WorstFit, SpreadDevices, LeastIdle, MostIdle),
        *(
            LoadRate,
            LowestUtilization,
            OpenbBestFit,
            DotProd,
            GpuPacking,
            GpuClustering,
            Fgd,
            Random,
        ),
    )
}


def resolve_scored(
    name: str | type[ScoredPlacement],
    *,
    scores: str = "integer",
    ties: str | None = None,
    gang: str = "node",
    topology: str = "none",
    seed: int = 0,
    workload: TargetWorkload | None = None,
    weights: str | Sequence[float] | None = None,
) -> ScoredPlacement:
    """Return a scored placement, by its name or class; options as there.

    ``weights`` is for `LoadRate` alone.

    Raises:
        SpecError: unknown name (the nearest is suggested), or an option is wrong.
    """
    kind = name if isinstance(name, type) else SCORED.get(name)
    if kind is None:
        raise SpecError.unknown("placement", str(name), SCORED)
    own: dict[str, Any] = {}
    if weights is not None:
        if kind is not LoadRate:
            raise SpecError("weights", f"placement {kind.name!r} weighs nothing; 'load_rate' does.")
        own = {"weights": weights}
    return kind(
        scores=scores,
        ties=ties,
        gang=gang,
        topology=topology,
        seed=seed,
        workload=workload,
        **own,
    )
