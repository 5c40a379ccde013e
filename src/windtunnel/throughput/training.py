"""A training model: everything known about how fast one kind of job runs, by plan and GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from windtunnel.errors import ThroughputError
from windtunnel.throughput.accuracy import TRUSTED, group_of, prediction_errors
from windtunnel.throughput.candidates import options_of
from windtunnel.throughput.facts import TrainingFacts
from windtunnel.throughput.memory import estimate
from windtunnel.throughput.options import as_shape, placement_name
from windtunnel.throughput.prediction import predicted_time, within_reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.throughput.accuracy import PredictionError
    from windtunnel.throughput.options import Option, Shape
    from windtunnel.throughput.plans import Plan


@dataclass(frozen=True, eq=False)
class TrainingModel(TrainingFacts):
    """What a model needs and how fast it trains."""

    def iteration_time(
        self, plan: Plan, shape: Sequence[int], cpus_per_gpu: int | None = None
    ) -> float:
        """Return the seconds per iteration of a plan on a shape.

        The plan's measured time; else, between its measured sizes, the interpolation within the
        plan; else the fitted model, where measurements stand on both sides (see `within_reach`).

        Args:
            plan: the plan that runs.
            shape: GPUs on each node, in any order.
            cpus_per_gpu: CPUs with each GPU, which matter to an optimizer on CPUs; None = those of
                the measurement.

        Raises:
            ThroughputError: it cannot run so, ran out of memory, or nothing is known there.
        """
        found = self.lookup(plan, as_shape(shape), cpus_per_gpu)
        if isinstance(found, str):
            raise ThroughputError(self.name, found, plan=plan.name, placement=placement_name(shape))
        return found[0]

    def options(self, *, node_gpus: int, node_cpus: int, num_nodes: int) -> tuple[Option, ...]:
        """Return every feasible option on a cluster of equal nodes.

        Fewest GPUs first, then fastest (see `Option.order`). Where the CPUs matter, an option
        stands there for each number of CPUs a GPU; that of the measurement is ``measured``.

        Args:
            node_gpus: GPUs of a node.
            node_cpus: CPUs of a node.
            num_nodes: nodes.
        """
        return options_of(self, self.lookup, node_gpus, node_cpus, num_nodes)

    def curve(
        self,
        max_gpus: int,
        *,
        node_gpus: int = 8,
        node_cpus: int = 96,
        plan: Plan | None = None,
    ) -> tuple[Option | None, ...]:
        """Return the resource sensitivity curve: the fastest option with at most so many GPUs.

        Item 0 is for 1 GPU, the last for ``max_gpus``; None where no option is that small. A larger
        size that is not faster keeps the smaller option.

        Args:
            max_gpus: GPUs of the largest size.
            node_gpus: GPUs of a node.
            node_cpus: CPUs of a node.
            plan: the only plan to consider; None = all.
        """
        best: Option | None = None
        curve: list[Option | None] = []
        known = options_of(self, self.lookup, node_gpus, node_cpus, max_gpus)
        options = (option for option in known if plan in {None, option.plan})
        ahead = next(options, None)
        for gpus in range(1, max_gpus + 1):
            while ahead is not None and ahead.num_gpus <= gpus:
                if best is None or ahead.iteration_time < best.iteration_time:
                    best = ahead
                ahead = next(options, None)
            curve.append(best)
        return tuple(curve)

    def lookup(self, plan: Plan, shape: Shape, cpus: int | None) -> tuple[float, bool] | str:
        """Return seconds and whether they were measured just so, or why there are none."""
        if plan.family != "zero-offload":
            cpus = None  # they hold no part of the work
        rows = self.table.at(plan, shape)
        ran = [(r.iteration_time, self.threads_of(r)) for r in rows if r.iteration_time is not None]
        if ran:
            return self._measured(ran, shape, cpus)
        if rows:
            return "it ran out of memory"
        obstacle = plan.obstacle(shape, batch=self.global_batch_size, layers=self.layers)
        obstacle = obstacle or self._too_large(plan, shape)
        if obstacle:
            return obstacle
        between = self.table.interpolated(plan, shape)
        if between is not None:
            at = self.table.fewest_threads(plan) or self.offload_threads
            return self._with_threads(between, at, cpus, sum(shape))
        return self._predicted(plan, shape, cpus)

    def _measured(
        self, ran: list[tuple[float, int | None]], shape: Shape, cpus: int | None
    ) -> tuple[float, bool] | str:
        """Return the time measured with so many CPUs, or the nearest one carried over to them.

        Args:
            ran: seconds and CPU threads a GPU of each measurement, fewest threads first.
            shape: GPUs on each node.
            cpus: CPUs with each GPU; None = the fewest measured.
        """
        for seconds, threads in ran:
            if cpus is None or threads in {None, cpus}:
                return seconds, True
        fewer = [(seconds, at) for seconds, at in ran if at is not None and at < (cpus or 0)]
        seconds, threads = fewer[-1] if fewer else ran[0]
        return self._with_threads(seconds, threads, cpus, sum(shape))

    def _with_threads(
        self, seconds: float, at: int | None, wanted: int | None, gpus: int
    ) -> tuple[float, bool] | str:
        """Return a time known at ``at`` CPU threads a GPU as it is with ``wanted``."""
        if wanted is None or at is None or wanted == at:
            return seconds, False
        if self.fitted is None or self.parameters is None:
            if wanted > at:  # a slower run is possible in any case
                return seconds, False
            return f"it was not measured with {wanted} CPUs a GPU, and no model is fitted"
        step = self.fitted.k_os_offload * self.parameters / 2**20 / gpus / 1000
        changed = seconds + step * (1 / wanted - 1 / at)
        return (changed, False) if changed > 0 else "the fitted model contradicts its measured time"

    def _predicted(self, plan: Plan, shape: Shape, cpus: int | None) -> tuple[float, bool] | str:
        """Return the fitted model's time where measurements stand on both sides of it."""
        beyond = within_reach(self, plan, shape) or self._distrusted(plan, several=len(shape) > 1)
        if beyond is not None:
            return f"it was not measured there, and {beyond}"
        time = predicted_time(self, plan, shape, cpus)
        return f"it was not measured there, and {time}" if isinstance(time, str) else (time, False)

    def _distrusted(self, plan: Plan, *, several: bool) -> str | None:
        """Return why predictions of such plans are not to be trusted; None = they are."""
        error = self._errors.get((group_of(plan), several))
        if error is None or error.mean_percent is None or error.trusted:
            return None
        where, mean = "several nodes" if several else "one node", error.mean_percent
        return (
            f"predictions of {error.plan} on {where} are {mean:.0f} % off in the mean "
            f"where it was measured; up to {TRUSTED:g} % is trusted"
        )

    @cached_property
    def _errors(self) -> dict[tuple[str, bool], PredictionError]:
        return {(e.plan, e.several_nodes): e for e in prediction_errors(self)}

    def _too_large(self, plan: Plan, shape: Shape) -> str | None:
        """Return why a plan does not fit into a GPU's memory; None = it does, or nobody knows."""
        if not self.limits:
            return self._estimated_too_large(plan, sum(shape))
        if plan.family == "3d":
            if shape in self.placements.get(plan, ()):
                return None
            return "it is not among the placements where this plan fits"
        limit = self.limits[plan.family][plan.checkpointing]
        samples = self.global_batch_size // sum(shape)
        if samples <= limit:
            return None
        if limit == 0:
            return "it does not fit into a GPU's memory"
        return f"{samples} samples on a GPU do not fit into its memory, at most {limit} do"

    def _estimated_too_large(self, plan: Plan, gpus: int) -> str | None:
        if self.gpu_memory_gib is None or self.parameters is None:
            return None
        need = estimate(
            plan,
            gpus,
            parameters=self.parameters,
            hidden=self.hidden,
            layers=self.layers,
            sequence=self.sequence,
        )
        if need.gpu <= self.gpu_memory_gib * 2**30:
            return None
        needed = f"{need.gpu / 2**30:.3g} GiB"
        return f"it needs about {needed} on a GPU of {self.gpu_memory_gib:g} GiB"
