"""What became of each request, and what that means for users and GPUs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_number
from windtunnel.errors import SpecError, quote
from windtunnel.quantiles import quantiles

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.serving.workload import Workload


@dataclass(frozen=True)
class ServingOutcome:
    """Requests after a simulation, in the workload's order.

    Attributes:
        workload: the requests.
        group: group that each was sent to, shape (n,); -1 where none holds its model.
        start: when its first stage began, shape (n,), s; NaN where it was rejected.
        finish: when it was answered, shape (n,), s; NaN where it was rejected.
        batch: requests in its batch, shape (n,); 0 where it was rejected.
        busy: GPU time in use by each group, shape (groups,), s.
        num_gpus: GPUs of each group, shape (groups,); of the whole cluster by segment where
            placements change.
        settings: how it was simulated.
    """

    workload: Workload
    group: np.ndarray
    start: np.ndarray
    finish: np.ndarray
    batch: np.ndarray
    busy: np.ndarray
    num_gpus: np.ndarray
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def accepted(self) -> np.ndarray:
        """Whether each request was served at all, shape (n,)."""
        return np.asarray(~np.isnan(self.finish))

    @property
    def good(self) -> np.ndarray:
        """Whether each request was served within its SLO, shape (n,)."""
        return np.asarray(self.latency <= self.workload.slo)

    @property
    def latency(self) -> np.ndarray:
        """Time from arrival to answer, shape (n,), s; NaN where it was rejected."""
        return np.asarray(self.finish - self.workload.arrival)

    @property
    def table(self) -> pa.Table:
        """A row a request: ``model``, ``arrival``, ``slo``, ``group``, ``start``, ``finish``,
        ``latency`` (s; null where rejected or without SLO), ``batch`` and ``good``.
        """  # noqa: D205 - the columns do not fit one line
        import pyarrow as pa

        gone = ~self.accepted
        times = {"start": self.start, "finish": self.finish, "latency": self.latency}
        table = self.workload.table.append_column("group", pa.array(self.group, mask=gone))
        for name, values in times.items():
            table = table.append_column(name, pa.array(values, mask=gone))
        table = table.append_column("batch", pa.array(self.batch))
        return table.append_column("good", pa.array(self.good))

    def counted(self, warm_up: float = 0.0) -> slice:
        """Return the requests left after cutting a share of them at both ends.

        Args:
            warm_up: s; the share is warm_up / span, counted in requests: AlpaServe's rule.

        Raises:
            SpecError: nothing would be left, or the time is negative.
        """
        checked_number("warm_up", warm_up, "seconds >= 0", least=0)
        count, span = len(self.workload), self.workload.span
        if warm_up == 0 or count == 0:
            return slice(0, count)
        cut = int(warm_up / span * count) if span else count
        if 2 * cut >= count:
            raise SpecError(
                "warm_up",
                f"found {quote(warm_up)} s; expected less than half the span of arrivals, "
                f"{span:.6g} s: nothing would be left to count.",
            )
        return slice(cut, count - cut)

    def metrics(self, warm_up: float = 0.0) -> dict[str, Any]:
        """Return the run's figures.

        Latencies are of requests that were served; attainment is reported apart from them.

        Args:
            warm_up: see `counted`.

        Returns:
            ``num_requests``, ``num_counted``, ``num_accepted``, ``num_good``, ``slo_attainment``,
            ``throughput`` (good requests per second of the counted span), ``mean_latency``,
            ``std_latency``, ``p50_latency``, ``p90_latency``, ``p99_latency`` (s), ``utilization``
            (GPU time in use over all GPUs, from the first arrival to the last answer, of the whole
            run), ``mean_in_system``, ``by_model`` (the same for each model that has requests, with
            ``model`` and ``name``), ``group_requests`` (requests sent to each group, rejected ones
            included). None where there is nothing to measure.
        """
        rows = self.counted(warm_up)
        good, latency = self.good[rows], self.latency[rows]
        accepted, model = self.accepted[rows], self.workload.model[rows]
        arrival = self.workload.arrival[rows]
        span = float(arrival[-1] - arrival[0]) if len(arrival) else 0.0
        by_model = []
        for index in np.unique(model).tolist():
            mine = model == index
            figures = _figures(good[mine], latency[mine][accepted[mine]], span)
            by_model.append(
                {"model": index, "name": self.workload.models[index], **figures},
            )
        sent = self.group[self.group >= 0]
        return {
            "num_requests": len(self.workload),
            **_figures(good, latency[accepted], span),
            "utilization": self.utilization(),
            "mean_in_system": self._mean_in_system(),
            "by_model": by_model,
            "group_requests": np.bincount(sent, minlength=len(self.busy)).tolist(),
        }

    def utilization(self) -> float | None:
        """Return GPU time in use over all GPUs' time, first arrival to last answer; None if 0."""
        span = self._length()
        gpus = float(self.num_gpus.sum())
        return float(self.busy.sum()) / (span * gpus) if span * gpus > 0 else None

    def queue(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of requests in the system over time.

        Returns:
            times, ascending, shape (k,), s; requests in the system from each time to the next,
            shape (k,). Rejected requests are never in it. At equal times departures and arrivals
            count together.
        """
        there = self.accepted
        times = np.concatenate([self.workload.arrival[there], self.finish[there]])
        steps = np.repeat([1, -1], int(there.sum()))
        instants, which = np.unique(times, return_inverse=True)
        change = np.bincount(which, weights=steps, minlength=len(instants)).astype(np.int64)
        return instants, np.cumsum(change)

    def _length(self) -> float:
        served = self.finish[self.accepted]
        return float(served.max() - self.workload.arrival[0]) if len(served) else 0.0

    def _mean_in_system(self) -> float | None:
        span = self._length()
        return float(np.nansum(self.latency)) / span if span > 0 else None


def _figures(good: np.ndarray, served: np.ndarray, span: float) -> dict[str, Any]:
    p50, p90, p99 = quantiles(served, [0.5, 0.9, 0.99]).tolist()
    figures = {
        "num_counted": len(good),
        "num_accepted": len(served),
        "num_good": int(good.sum()),
        "slo_attainment": float(good.mean()) if len(good) else None,
        "throughput": float(good.sum()) / span if span > 0 else None,
        "mean_latency": float(served.mean()) if len(served) else None,
        "std_latency": float(served.std()) if len(served) else None,
        "p50_latency": p50,
        "p90_latency": p90,
        "p99_latency": p99,
    }
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in figures.items()
    }
