"""`Standby`: nodes for nobody that stand in for failed ones."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.free import NOBODY

if TYPE_CHECKING:
    from windtunnel.sim.disruptions.holds import Hold
    from windtunnel.sim.disruptions.places import Places


class Standby:
    """The spare nodes of a run, and all that is taken out of it and comes back.

    As many nodes are for nobody as there are spares of their size, less those that have failed: so
    one stands in at once, and who is repaired is a spare where nobody is without one.

    Args:
        run: what the engine lends.
        nodes: the spares as the run begins.
    """

    def __init__(self, run: Any, nodes: Places) -> None:
        self.run = run
        self._nodes = dict(nodes)
        self._number = Counter(self._nodes.values())
        #: Failures of each node that are not repaired; failed nodes of each size.
        self._failures: Counter[int] = Counter()
        self._failed: Counter[int] = Counter()
        for place, units in nodes:
            run.hold(place, NOBODY, units)

    def take_out(self, hold: Hold) -> None:
        """Keep the places of a hold; spares take those of nodes that fail."""
        for place, units in hold.places:
            self.run.hold(place, hold.group, units)
            if hold.planned or not self._number:
                continue
            self._failures[place] += 1
            if self._failures[place] > 1:
                continue
            self._failed[units] += 1
            alike = (spare for spare, size in self._nodes.items() if size == units)
            stands_in = place if place in self._nodes else next(alike, None)
            if stands_in is not None:
                self.run.release(stands_in, NOBODY, self._nodes.pop(stands_in))

    def bring_back(self, hold: Hold) -> None:
        """Undo `take_out`; a repaired node that nobody lacks is a spare."""
        for place, units in hold.places:
            if not hold.planned and self._number:
                self._failures[place] -= 1
                if not self._failures[place]:
                    self._failed[units] -= 1
                    there = sum(size == units for size in self._nodes.values())
                    if there < self._number[units] - self._failed[units]:
                        self._nodes[place] = units
                        continue
            self.run.release(place, hold.group, units)
