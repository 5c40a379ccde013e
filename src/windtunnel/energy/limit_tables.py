"""Measured time and power at power limits: what a limit costs a kind of work in speed.

The tables are those of Zeus (You, Chung, Chowdhury, NSDI'23), for one GPU: draw and speed at each
limit. Draws may be above their limit, and speeds need not fall with it: so it was measured.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.energy.quirks import Sweep

#: What may stand in place of the numbers, for published measurements.
_MEASURED = ("measured", "on", "batch_size", "data")


class Level(msgspec.Struct, frozen=True):
    """One GPU at one power limit.

    Attributes:
        limit_w: the limit, W.
        power_w: what the GPU draws, W.
        speed: work per second, 1 = at the highest limit.
    """

    limit_w: float
    power_w: float
    speed: float


class LimitTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of work on a GPU type at its power limits, highest first.

    Attributes:
        limit_w: limits, W, descending.
        power_w: draw of one GPU at each, W.
        speed: speed at each, relative to the first, which is 1.
        workload: the jobs' ``workload``; None = every kind without a table of its own.
        gpu_type: GPU type; None = every type without a table of its own.
    """

    limit_w: tuple[float, ...]
    power_w: tuple[float, ...]
    speed: tuple[float, ...]
    workload: str | None = None
    gpu_type: str | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            SpecError: no limit, columns of different lengths, limits that do not fall, numbers out
                of range, or a first speed that is not 1.
        """
        where = f"power.limits of {quote(self.workload or 'all work')}"
        if not self.limit_w or not len(self.limit_w) == len(self.power_w) == len(self.speed):
            raise SpecError(where, "expected a limit_w, power_w and speed for each of the limits")
        falls = all(a > b for a, b in zip(self.limit_w, self.limit_w[1:], strict=False))
        if not falls or not 0 < self.limit_w[-1] <= self.limit_w[0] < math.inf:
            raise SpecError(where, f"found limit_w {self.limit_w}; expected W > 0 that fall")
        if not all(0 <= w < math.inf for w in self.power_w):
            raise SpecError(where, f"found power_w {self.power_w}; expected W of at least 0")
        if self.speed[0] != 1 or not all(0 < s < math.inf for s in self.speed):
            raise SpecError(where, f"found speed {self.speed}; expected > 0, the first 1")

    @classmethod
    def from_sweep(
        cls, sweep: Sweep, *, workload: str | None = None, gpu_type: str | None = None
    ) -> LimitTable:
        """Return the table that a batch size's measurements are.

        Args:
            sweep: epoch time and draw at each limit.
            workload: whose work it is.
            gpu_type: on which GPUs.
        """
        fastest = sweep.epoch_time[0]
        return cls(
            limit_w=tuple(float(limit) for limit in sweep.power_limits),
            power_w=sweep.power_w,
            speed=tuple(fastest / time for time in sweep.epoch_time),
            workload=workload,
            gpu_type=gpu_type,
        )

    def levels(self) -> tuple[Level, ...]:
        """Return the table as rows, highest limit first."""
        rows = zip(self.limit_w, self.power_w, self.speed, strict=True)
        return tuple(Level(*row) for row in rows)

    def above_limit(self) -> int:
        """Return at how many limits the measured draw is above the limit."""
        return sum(w > limit for w, limit in zip(self.power_w, self.limit_w, strict=True))


def with_measured(tables: Sequence[Any], source: str) -> list[Any]:
    """Return plain tables, those that name published measurements with the numbers in place.

    Such a table has ``measured`` (a dataset of Zeus' measurements) and ``on`` (its GPU, as in
    ``v100``) and may have ``batch_size`` (default: the job's own) and ``data`` (a folder).

    Args:
        tables: as parsed.
        source: where they come from, for messages.

    Raises:
        SpecError: unknown measurements, or keys that do not go together.
        TraceError: the measurements cannot be read.
    """
    return [_measured(one, f"{source}: $.limits[{i}]") for i, one in enumerate(tables)]


def _measured(raw: Any, path: str) -> Any:
    if not isinstance(raw, dict) or not any(key in raw for key in _MEASURED):
        return raw
    known = (*_MEASURED, "workload", "gpu_type")
    for key in raw:
        checked_choice(f"{path}.{key}", key, known)
    if not isinstance(raw.get("measured"), str) or not isinstance(raw.get("on"), str):
        raise SpecError(path, "expected both measured = 'cifar100' and on = 'v100'")
    from windtunnel.energy.open import open_workload

    found = open_workload(raw["measured"], raw["on"], data=raw.get("data"))
    size = raw.get("batch_size", found.default_batch_size)
    if size not in found.sweeps:
        sizes = ", ".join(map(str, found.batch_sizes))
        raise SpecError(f"{path}.batch_size", f"found {size!r}; measured were {sizes}")
    table = LimitTable.from_sweep(
        found.sweeps[size],
        workload=raw.get("workload", raw["measured"]),
        gpu_type=raw.get("gpu_type"),
    )
    data: dict[str, Any] = msgspec.to_builtins(table)
    return data
