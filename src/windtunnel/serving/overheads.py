"""What serving costs besides the profiled stages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windtunnel.checked import checked_choice, checked_number


@dataclass(frozen=True)
class Overheads:
    """Explicit overheads of the immediate and the batching simulator.

    Attributes:
        by_stage: every stage takes 1 + by_stage x pp times its profiled latency.
        fixed: added once to a request's finish, s; it occupies no GPU.
    """

    by_stage: float = 0.0
    fixed: float = 0.0

    def __post_init__(self) -> None:
        for name in ("by_stage", "fixed"):
            checked_number(name, getattr(self, name), least=0)

    def stage_times(self, latency: np.ndarray) -> np.ndarray:
        """Return the time of each stage, shape (pp,), s, from profiled latencies."""
        return np.asarray(latency * (1.0 + self.by_stage * len(latency)))


#: Named settings: ``alpaserve`` is the published simulator's (0.9 % a stage, 11 ms a request).
OVERHEADS = {"none": Overheads(), "alpaserve": Overheads(0.009, 0.011)}


def as_overheads(value: Overheads | str) -> Overheads:
    """Return a named setting, or the value itself.

    Raises:
        SpecError: an unknown name.
    """
    if isinstance(value, Overheads):
        return value
    checked_choice("overheads", value, OVERHEADS)
    return OVERHEADS[value]
