"""Where gangs go among the nodes of their type, and what is free there.

Jobs that go on where they were keep their GPUs (a *lease*). The others are placed by falling size:
on the node with the fewest free GPUs that suffice, the lowest index first; a gang that fits on no
node takes the nodes with most free GPUs, and is *spread*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.rounds.record import Spot

if TYPE_CHECKING:
    from windtunnel.sim.rounds.contract import Work


class Places:
    """The free GPUs of each node, type by type.

    Args:
        work: the nodes.
    """

    def __init__(self, work: Work) -> None:
        self._index = work.node_index
        self._free = [sizes.copy() for sizes in work.node_sizes]
        self._at = [{int(n): at for at, n in enumerate(index)} for index in work.node_index]
        self.left = work.num_gpus.astype(np.int64).copy()

    def place(self, kind: int, gang: int) -> Spot:
        """Return where a gang goes on a type that has room for it; nothing is taken yet."""
        free, index = self._free[kind], self._index[kind]
        if len(free) == 1:
            return Spot(kind, (int(index[0]),), (gang,))
        enough = (free >= gang).nonzero()[0]
        if len(enough):
            best = int(enough[free[enough].argmin()])
            return Spot(kind, (int(index[best]),), (gang,))
        nodes, gpus, wanted = [], [], gang
        for at in np.argsort(-free, kind="stable").tolist():
            taken = min(int(free[at]), wanted)
            nodes.append(int(index[at]))
            gpus.append(taken)
            wanted -= taken
            if not wanted:
                break
        return Spot(kind, tuple(nodes), tuple(gpus))

    def fits(self, spot: Spot) -> bool:
        """Return whether a place is free."""
        at, free = self._at[spot.kind], self._free[spot.kind]
        return all(free[at[n]] >= g for n, g in zip(spot.nodes, spot.gpus, strict=True))

    def take(self, spot: Spot) -> None:
        """Take a place.

        Raises:
            AssertionError: it is not free: more GPUs would be used than there are.
        """
        self._change(spot, -1)

    def give(self, spot: Spot) -> None:
        """Give a place back."""
        self._change(spot, 1)

    def _change(self, spot: Spot, sign: int) -> None:
        at, free = self._at[spot.kind], self._free[spot.kind]
        for node, gpus in zip(spot.nodes, spot.gpus, strict=True):
            free[at[node]] += sign * gpus
            self.left[spot.kind] += sign * gpus
            if free[at[node]] < 0:
                raise AssertionError(spot)
