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

SCORED: dict[str, type[ScoredPlacement]] = {
    placement.name: placement
    for placement in (
        *(BestFitDevices, FirstFit, WorstFit, SpreadDevices, LeastIdle, MostIdle),
        *(LoadRate, LowestUtilization, OpenbBestFit, DotProd, GpuPacking, GpuClustering),
        *(Fgd, Random),
    )
}


def resolve_scored(
    name: str | type[ScoredPlacement],
    *,
    weights: str | Sequence[float] | None = None,
    **options: Any,
) -> ScoredPlacement:
    """Return a scored placement, by its name or class.

    Args:
        name: its name or class.
        weights: of `LoadRate` alone.
        options: of every scored placement.

    Raises:
        SpecError: unknown name (the nearest is suggested), or an option is wrong.
    """
    kind = name if isinstance(name, type) else SCORED.get(name)
    if kind is None:
        raise SpecError.unknown("placement", str(name), SCORED)
    if weights is not None:
        if kind is not LoadRate:
            raise SpecError("weights", f"placement {kind.name!r} weighs nothing; 'load_rate' does.")
        options["weights"] = weights
    return kind(**options)
