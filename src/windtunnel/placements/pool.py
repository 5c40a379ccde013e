"""Pool: no node boundaries. Where the cluster tells GPU types apart, one pool a type."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.cluster.free import Demand, FreePool, Where


class Pool:
    """Any free GPUs of one acceptable type serve; the fullest pool that suffices is taken."""

    name = "pool"

    def place(self, free: FreePool, demand: Demand) -> Where | None:
        """Return the pool the job draws from, or None."""
        if demand.is_nothing:
            return []
        best = min(free.candidates(demand), key=free.free.__getitem__, default=None)
        return None if best is None else [(best, demand.gpus)]
