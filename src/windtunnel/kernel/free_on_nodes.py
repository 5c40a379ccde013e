"""`FreeOnNodes`: a free state of nodes, each of which may be withheld."""

from __future__ import annotations

import cython

from windtunnel.kernel.free import Free
from windtunnel.kernel.free_holds import LOOK_BOTH, LOOK_OPEN, LOOK_SHOWN, Holds
from windtunnel.kernel.marks import compiled


@cython.cclass
class FreeOnNodes(Free):
    """What the states of nodes have in common: how nodes are withheld, shown and restored.

    Attributes:
        holds: what is withheld.
        looks: which nodes a search looks at.
    """

    holds: Holds
    looks: cython.int

    @compiled
    def fit(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits now, and write where into ``place``."""
        if self.looks != LOOK_OPEN:
            # What the job's reservations have goes first.
            self.looks = LOOK_SHOWN
            fits = self.fit_in_sight(kind)
            self.looks = LOOK_BOTH
            if fits:
                return True
        return self.fit_in_sight(kind)

    @compiled
    def fit_in_sight(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits the nodes that a search looks at; see `fit`."""
        return False

    @compiled
    def copy_from(self, other: Free) -> cython.void:
        """Become equal to another state of the same cluster."""
        Free.copy_from(self, other)
        self.holds.copy_from(cython.cast(FreeOnNodes, other).holds)
        self.looks = cython.cast(FreeOnNodes, other).looks

    @compiled
    def withhold(self, node: cython.int, group: cython.int, units: cython.longlong) -> cython.void:
        """Hide what a node has free from all but a group's jobs until it is restored as often."""
        if self.holds.add(node, group):
            self.hide(node)
        self.changes += 1
        if self.looks != LOOK_OPEN:
            self.look_again()

    @compiled
    def restore(self, node: cython.int, group: cython.int, units: cython.longlong) -> cython.void:
        """Undo one `withhold` of the same node for the same group."""
        if self.looks != LOOK_OPEN:
            self.look_away()
        if self.holds.remove(node, group):
            self.unhide(node)
        self.version += 1
        self.changes += 1
        if self.looks != LOOK_OPEN:
            self.look_again()

    @compiled
    def open_for(self, access: cython.int) -> cython.bint:
        """Show what is withheld for the groups of an access set alone; return if anything is."""
        if self.looks != LOOK_OPEN:
            self.close()
        if self.holds.count == 0 or access == 0 or not self.holds.open_for(access):
            return False
        self.looks = LOOK_BOTH
        self.look_again()
        return True

    @compiled
    def close(self) -> cython.void:
        """Undo `open_for`."""
        if self.looks != LOOK_OPEN:
            self.look_away()
            self.looks = LOOK_OPEN
            self.holds.close()

    # What a state does of its own when nodes are hidden or shown.

    @compiled
    def hide(self, node: cython.int) -> cython.void:
        """Count a node out that is withheld from now on."""

    @compiled
    def unhide(self, node: cython.int) -> cython.void:
        """Count a node in that is not withheld any more."""

    @compiled
    def look_again(self) -> cython.void:
        """Find out anew what the open access set shows."""
        self.holds.refresh()

    @compiled
    def look_away(self) -> cython.void:
        """Count out what the open access set shows."""

    # What is withheld.

    @compiled
    def closings(self, node: cython.int, access: cython.int) -> cython.int:
        """Return how many holds of a node are for groups that an access set does not have."""
        return self.holds.closings(node, access)

    @compiled
    def holder(self, node: cython.int) -> cython.int:
        """Return whom a node is withheld for: its oldest hold's group, 0 nobody, -1 no hold."""
        return self.holds.holder(node)

    @compiled
    def down(self) -> cython.longlong:
        """Return the GPU units that nobody holds and nobody may use."""
        found: cython.longlong = 0
        for at in range(self.holds.size):
            if self.holds.is_first_of_nobody(at):
                found += self.free_units(self.holds.node[at])
        return found

    def held(self) -> list:
        """Return what is withheld, the oldest first: (node, group it is held for) pairs."""
        return self.holds.listed()
