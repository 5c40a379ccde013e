"""What a fit of the analytic model minimises, with its gradient (MLSys'25, section 5.1)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from windtunnel.throughput.tables import ProfiledPoint

    Floats: TypeAlias = npt.NDArray[np.float64]

#: What may be fitted beside the seven parameters where it is not given: the forward time of the
#: global batch on one GPU (ms), and the inverse bandwidths in 100 s/GB, so that all are near 1.
EXTRAS = ("forward", "pcie", "nvlink")
#: Unit of the inverse bandwidths: 1 stands for 100 GB/s.
SCALE = 100.0


class Objective:
    """The sum of three root-mean-square errors of logarithms.

    They are those of backward with communication (``Tcc``), of the optimizer with swapping
    (``Topt``) and of the whole iteration, each over the points where it was measured.

    Args:
        points: profiled points.
        theta: parameters / 2^20.
        pcie: GB/s; None = fitted.
        nvlink: GB/s; None = fitted.
    """

    def __init__(
        self,
        points: Sequence[ProfiledPoint],
        *,
        theta: float,
        pcie: float | None,
        nvlink: float | None,
    ) -> None:
        def column(values: Sequence[float | None]) -> Floats:
            return np.array(values, dtype=np.float64)  # None becomes NaN

        gpus = column([p.gpus for p in points])
        self._offloads = column([p.plan.family == "zero-offload" for p in points])
        shards = column([p.plan.family == "zero-dp" for p in points])
        self._again = column([2.0 if p.plan.checkpointing else 1.0 for p in points])
        self._forward = column([p.forward for p in points])
        self._share = np.where(np.isnan(self._forward), 1 / gpus, 0.0)
        self._forward = np.nan_to_num(self._forward)
        self._reduced = 8 * theta * (gpus - 1) / gpus / (nvlink or SCALE)
        self._crossing = self._offloads * 4 * theta / gpus / (pcie or SCALE)
        self._on_gpu = (1 - self._offloads) * theta / np.where(shards == 1, gpus, 1.0)
        self._on_cpu = self._offloads * theta / (gpus * column([p.threads for p in points]))
        measured = (column([getattr(p, phase) for p in points]) for phase in _PHASES)
        self._logs = [(~np.isnan(times), np.log(times)) for times in measured]
        needed = {
            "forward": bool(self._share.any()),
            "pcie": pcie is None and bool(self._offloads.any()),
            "nvlink": nvlink is None and bool(self._reduced.any()),
        }
        #: Names of what is fitted beside the seven parameters.
        self.extras: tuple[str, ...] = tuple(name for name in EXTRAS if needed[name])

    @property
    def has_phases(self) -> bool:
        """Whether backward with communication was measured anywhere."""
        return bool(self._logs[0][0].any())

    def __call__(self, values: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient.

        Args:
            values: the seven parameters, then what `extras` names.
        """
        return self._errors(self._phases(values))

    def squares(self, values: Floats) -> tuple[float, Floats]:
        """Return the sum of the mean squared errors, which has no kinks, and its gradient.

        Args:
            values: as above.
        """
        return self._errors(self._phases(values), squared=True)

    def _phases(self, values: Floats) -> list[tuple[Floats, list[Floats]]]:
        """Return each phase's predicted times and its slopes by every value."""
        k_bwd, k_sync, k_opt, k_os, k_const, k_off, k_swap = values[:7]
        extra = dict(zip(self.extras, values[7:], strict=True))
        forward = self._forward + self._share * extra.get("forward", 0.0)
        reduced = self._reduced * extra.get("nvlink", 1.0)
        crossing = self._crossing * extra.get("pcie", 1.0)
        norm, by_backward, by_reduced, by_sync = _norm(k_bwd * forward, reduced, k_sync)
        sync = norm + self._offloads * k_off + crossing
        update = k_opt * self._on_gpu + k_os * self._on_cpu + k_swap + crossing
        total = self._again * forward + sync + update + k_const

        one, none = np.ones_like(sync), np.zeros_like(sync)
        of_sync = [by_backward * forward, by_sync, none, none, none, self._offloads, none]
        of_update = [none, none, self._on_gpu, self._on_cpu, none, none, one]
        of_total = [a + b for a, b in zip(of_sync, of_update, strict=True)]
        of_total[4] = one
        slopes = {
            "forward": (by_backward * k_bwd * self._share, none, self._again * self._share),
            "pcie": (self._crossing, self._crossing, none),
            "nvlink": (by_reduced * self._reduced, none, none),
        }
        for name in self.extras:
            by_phase = slopes[name]
            of_sync.append(by_phase[0])
            of_update.append(by_phase[1])
            of_total.append(by_phase[0] + by_phase[1] + by_phase[2])
        return [(sync, of_sync), (update, of_update), (total, of_total)]

    def _errors(
        self, phases: list[tuple[Floats, list[Floats]]], *, squared: bool = False
    ) -> tuple[float, Floats]:
        """Return the summed errors of phases, each given with its slopes, and their gradient."""
        value, gradient = 0.0, np.zeros(len(phases[0][1]))
        for (predicted, slopes), (known, log) in zip(phases, self._logs, strict=True):
            if not known.any():
                continue
            off = (np.log(predicted) - log)[known]
            square = float(np.mean(off**2))
            value += square if squared else math.sqrt(square)
            if square > 0:
                weights = off / predicted[known] * (2 if squared else 1 / math.sqrt(square))
                gradient += np.array([np.mean(weights * slope[known]) for slope in slopes])
        return value, gradient


_PHASES = ("sync", "update", "total")


def _norm(
    backward: Floats, reduced: Floats, k_sync: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the ``k_sync``-norm of two times, and its slopes by either and by ``k_sync``.

    Ratios to the larger one are what is raised to a power, which cannot overflow.
    """
    most = np.maximum(backward, reduced)
    ratios = np.stack([backward / most, reduced / most])
    powers = ratios**k_sync
    total = powers.sum(axis=0)
    norm = most * total ** (1 / k_sync)
    logs = np.log(ratios, out=np.zeros_like(ratios), where=ratios > 0)
    by_sync = norm * ((powers * logs).sum(axis=0) / total / k_sync - np.log(total) / k_sync**2)
    by_backward, by_reduced = (np.stack([backward, reduced]) / norm) ** (k_sync - 1)
    return norm, by_backward, by_reduced, by_sync
