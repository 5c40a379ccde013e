"""What a job asks of a topology."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class Layer(msgspec.Struct, frozen=True):
    """Slices within slices: so many pods stay within one domain of a level.

    Attributes:
        level: the level.
        size: pods a slice.
        apart: no two slices in one domain; of the outermost alone.
    """

    level: str
    size: int
    apart: bool = False


class TopologyRequest(msgspec.Struct, frozen=True):
    """Which level a job's pods share, and in which slices they come.

    Attributes:
        required: the level of whose domains one must hold all pods.
        preferred: the level at which to begin; then the next one up.
        unconstrained: anywhere.
        slice_level, slice_size: so many pods stay within one domain of that level.
        layers: slices within slices, from the top.
        group: pod sets of one group stand together: a leader and its workers.
    """

    required: str = ""
    preferred: str = ""
    unconstrained: bool = False
    slice_level: str = ""
    slice_size: int = 0
    layers: tuple[Layer, ...] = ()
    group: str = ""

    @property
    def places(self) -> bool:
        """Whether it asks for places at all, not just to be near others."""
        return bool(self.named_levels) or self.unconstrained

    @property
    def slices(self) -> tuple[Layer, ...]:
        """The slices asked for, from the top."""
        if not self.slice_level:
            return self.layers
        return (Layer(self.slice_level, self.slice_size), *self.layers)

    def kept_by(
        self, levels: tuple[str, ...], leaves: Sequence[tuple[tuple[str, ...], int]]
    ) -> bool:
        """Return whether pods stand within the domain required, and their slices are whole.

        Args:
            levels: the topology's, from the top.
            leaves: pairs of a leaf's path and the pods there.
        """

        def by_domain(level: str) -> Counter[tuple[str, ...]]:
            found: Counter[tuple[str, ...]] = Counter()
            for path, pods in leaves:
                found[path[: levels.index(level) + 1]] += pods
            return found

        if self.required and len(by_domain(self.required)) > 1:
            return False
        return not any(
            pods % layer.size or (layer.apart and pods > layer.size)
            for layer in self.slices
            for pods in by_domain(layer.level).values()
        )

    @property
    def named_levels(self) -> tuple[str, ...]:
        """The levels that it names."""
        levels = (self.required, self.preferred, self.slice_level)
        return (*filter(None, levels), *(layer.level for layer in self.layers))
