"""The scored placements by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.placements.load import LoadRate
from windtunnel.placements.scored import ScoredPlacement
from windtunnel.plugins import declared_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@cache
def scored_placements() -> Mapping[str, type[ScoredPlacement]]:
    """Return the scored placements that the modules of `windtunnel.placements` declare, by name."""
    return declared_in("windtunnel.placements", ScoredPlacement)


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
    kind = name if isinstance(name, type) else scored_placements().get(name)
    if kind is None:
        raise SpecError.unknown("placement", str(name), scored_placements())
    if weights is not None:
        if kind is not LoadRate:
            raise SpecError("weights", f"placement {kind.name!r} weighs nothing; 'load_rate' does.")
        options["weights"] = weights
    return kind(**options)
