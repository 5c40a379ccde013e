"""The placements by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.placements.best_fit import BestFit
from windtunnel.placements.pool import Pool
from windtunnel.placements.spread import Spread

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.contract import Placement

PLACEMENTS: dict[str, type[Placement]] = {p.name: p for p in (BestFit, Pool, Spread)}


def resolve_placement(name: str | None, cluster: ClusterSpec) -> Placement:
    """Return the placement to use.

    On a pool there is one "node", so every placement is the same one; it is called ``pool`` there.

    Args:
        name: a placement's name; None = ``pool`` on a pool, else ``best_fit``.
        cluster: where it is to be used.

    Raises:
        SpecError: unknown name; the nearest is suggested.
    """
    if name is not None and name not in PLACEMENTS:
        raise SpecError.unknown("placement", name, PLACEMENTS)
    if cluster.is_pool:
        return Pool()
    return PLACEMENTS[name or BestFit.name]()
