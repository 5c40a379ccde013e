"""What a job asks of a topology."""

from __future__ import annotations

import msgspec


class Layer(msgspec.Struct, frozen=True):
    """Slices within slices: so many pods stay within one domain of a level."""

    level: str
    size: int


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
        """Whether it asks for places at all, not just for company."""
        return bool(self.named_levels) or self.unconstrained

    @property
    def named_levels(self) -> tuple[str, ...]:
        """The levels that it names."""
        levels = (self.required, self.preferred, self.slice_level)
        return (*filter(None, levels), *(layer.level for layer in self.layers))
