"""What measured sweeps do that a model would not: reported with every result, never repaired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A neighbouring, higher limit that is slower by more than this share counts as not monotone.
SLOWER = 0.02
#: A sweep whose power stays within this share over all limits is bound by the host.
_FLAT_POWER = 0.05


@dataclass(frozen=True)
class Sweep:
    """One batch size at each of its power limits, highest limit first.

    Attributes:
        power_limits: W, descending.
        epoch_time: seconds an epoch, one a limit.
        power_w: mean draw of the GPU, W, one a limit.
    """

    power_limits: tuple[int, ...]
    epoch_time: tuple[float, ...]
    power_w: tuple[float, ...]


def above_limit(sweeps: Mapping[int, Sweep]) -> list[float]:
    """Return by how many watts the mean power exceeds the limit, where it does; sizes ascending."""
    return [
        power - limit
        for sweep in sweeps.values()
        for limit, power in zip(sweep.power_limits, sweep.power_w, strict=True)
        if power > limit
    ]


def slower_at_more_power(sweeps: Mapping[int, Sweep]) -> tuple[int, int]:
    """Return how many neighbouring pairs of limits get slower by more than 2 % as the limit rises.

    Returns:
        Their number, and the number of all neighbouring pairs.
    """
    slower = pairs = 0
    for sweep in sweeps.values():
        for high, low in zip(sweep.epoch_time, sweep.epoch_time[1:], strict=False):
            pairs += 1
            slower += high > low * (1 + SLOWER)
    return slower, pairs


def bound_by_host(sweeps: Mapping[int, Sweep]) -> list[int]:
    """Return the batch sizes whose power never comes near the lowest limit nor changes with it."""
    return [
        size
        for size, sweep in sweeps.items()
        if len(sweep.power_w) > 1
        and max(sweep.power_w) < min(sweep.power_limits)
        and max(sweep.power_w) <= min(sweep.power_w) * (1 + _FLAT_POWER)
    ]


def quirks_of(
    epochs: Mapping[int, np.ndarray], sweeps: Mapping[int, Sweep], max_epochs: int
) -> tuple[str, ...]:
    """Return what is odd about a workload's measurements, a sentence each.

    Args:
        epochs: batch size -> epochs to the target, NaN = never.
        sweeps: batch size -> its power limits.
        max_epochs: after which a run has failed.
    """
    notes = []
    failing = {size: int(np.sum(~(runs <= max_epochs))) for size, runs in epochs.items()}
    if any(failing.values()):
        sizes = ", ".join(f"{b} ({n} of {len(epochs[b])})" for b, n in failing.items() if n)
        notes.append(
            f"Runs that miss the target within {max_epochs} epochs, by batch size: {sizes}."
        )
    every = {limit for sweep in sweeps.values() for limit in sweep.power_limits}
    missing = {size: len(every) - len(sweep.power_limits) for size, sweep in sweeps.items()}
    if any(missing.values()):
        sizes = ", ".join(f"{b} ({n} of {len(every)})" for b, n in missing.items() if n)
        notes.append(f"Power limits that were not measured, by batch size: {sizes}.")
    above = above_limit(sweeps)
    if above:
        notes.append(
            f"Mean power above the limit in {len(above)} of "
            f"{sum(len(s.power_limits) for s in sweeps.values())} measurements, by up to "
            f"{max(above):.1f} W; used as measured."
        )
    slower, pairs = slower_at_more_power(sweeps)
    if slower:
        notes.append(
            f"Slower by more than 2 % at the higher of two neighbouring limits: {slower} of "
            f"{pairs} pairs."
        )
    idle = bound_by_host(sweeps)
    if idle:
        notes.append(
            "Bound by the host, so that the limit changes nothing and the best one is noise: batch "
            f"size {', '.join(map(str, idle))}."
        )
    return tuple(notes)
