"""Power from a counter of energy: what a GPU drew on average between two readings.

DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counts millijoules since the driver was loaded. Its mean slope
is exact, where readings of POWER_USAGE miss what happens between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.telemetry.sample_batches import SCHEMA, Tally, repeated

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from windtunnel.telemetry.blocks import Meter
    from windtunnel.telemetry.stream import Source

COUNTER = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
#: The name of the metric that it becomes, W.
POWER = "POWER_FROM_ENERGY"
FIRST = "the first reading of an energy counter"
RESTARTED = "an energy counter that began anew"
BACKWARDS = "an energy reading without a time, or not after the one before it"
_MILLI = 1e-3
_Device = tuple[str | None, str | None]


class PowerFromEnergy:
    """Passes on another source's samples, readings of the energy counter as power.

    A sample of power stands at the end of its interval and is the mean over it. The first reading
    of a GPU, one after the counter began anew (it is smaller: the driver was reloaded some time
    in between) and one that is not later than the last give none; they are counted.

    Args:
        source: gives the samples, each GPU's in the order of time.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size = source.size
        self.metrics: tuple[str, ...] | None = (
            None
            if source.metrics is None
            else tuple(POWER if name == COUNTER else name for name in source.metrics)
        )

    def batches(self, tally: Tally, meter: Meter) -> Iterator[pa.RecordBatch]:
        """Yield the samples in the source's order."""
        latest: dict[_Device, tuple[float, float, float]] = {}
        for found in self._source.batches(tally, meter):
            is_counter = np.array(found.column("metric").to_pylist(), dtype=object) == COUNTER
            yield _converted(found, is_counter, latest, tally) if is_counter.any() else found


def _converted(
    found: pa.RecordBatch,
    is_counter: np.ndarray,
    latest: dict[_Device, tuple[float, float, float]],
    tally: Tally,
) -> pa.RecordBatch:
    """Return a batch with its counter readings replaced by power, those that give none left out.

    ``latest`` has, for each device, time, energy (mJ) and power (W) at its last reading.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    time = found.column("time").to_numpy(zero_copy_only=False)
    value = np.array(found.column("value").to_numpy(zero_copy_only=False), np.float64)
    nodes, gpus = found.column("node").to_pylist(), found.column("gpu").to_pylist()
    kept = np.ones(len(value), bool)
    for row in np.flatnonzero(is_counter).tolist():
        device, now, energy = (nodes[row], gpus[row]), float(time[row]), float(value[row])
        power, reason = _power(latest.get(device), now, energy)
        if reason != BACKWARDS:
            latest[device] = (now, energy, power)
        if reason is not None:
            tally.drop(reason, 1)
            tally.samples -= 1
            kept[row] = False
        value[row] = power
    metric = pc.if_else(pa.array(is_counter), repeated(POWER, len(value)), found.column("metric"))
    columns = [*found.columns[:4], metric, pa.array(value)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA).filter(pa.array(kept))


def _power(
    before: tuple[float, float, float] | None, now: float, energy: float
) -> tuple[float, str | None]:
    """Return the mean power since the reading before, W, or NaN and why there is none."""
    if np.isnan(now):
        return np.nan, BACKWARDS
    if before is None:
        return np.nan, FIRST
    then, had, power = before
    if now == then and energy == had and not np.isnan(power):
        return power, None  # the same reading under another job's name: a shared GPU
    if now <= then:
        return np.nan, BACKWARDS
    if energy < had:
        return np.nan, RESTARTED
    return (energy - had) * _MILLI / (now - then), None
