"""From policies of power to what the engine needs: `Governing`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.energy.cluster_power import PowerModel
from windtunnel.energy.power_policies import FORECASTS, NodeSleep, PowerCap, StartShift
from windtunnel.energy.shifting import cheapest_pieces, cheapest_stretch
from windtunnel.errors import SpecError, quote
from windtunnel.sim.columns import numeric_column
from windtunnel.sim.power.plan import CapPlan, Draw, PowerPlan, ShiftPlan, SleepPlan
from windtunnel.sim.power.watts import never_fit
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.cohort_order import CohortQuotas
    from windtunnel.sim.power.plan import Pieces
    from windtunnel.sim.problem import Problem


@dataclass(frozen=True)
class Governing:
    """The policies of power of a run.

    Attributes:
        model: what the cluster draws; None = not known.
        cap: never to be exceeded; None = no cap.
        shift: for whom to wait for better times; None = for nobody.
        sleep: when nodes sleep; None = never.
    """

    model: PowerModel | None = None
    cap: PowerCap | None = None
    shift: StartShift | None = None
    sleep: NodeSleep | None = None

    @classmethod
    def of(cls, power: Any, power_cap: Any, shift: Any, node_sleep: Any) -> Governing:
        """Read what a run was given; see `windtunnel.simulate` for each.

        Raises:
            SpecError, TraceError: one of them is wrong, or a cap comes without a model.
        """
        if power is not None and not isinstance(power, PowerModel):
            if isinstance(power, dict):
                power = PowerModel.from_mapping(power)
            elif isinstance(power, str):
                power = PowerModel.from_toml(power)
            else:
                message = f"found {quote(power)}; expected a PowerModel, a .toml file or its data"
                raise SpecError("power", message)
        if power_cap is not None and power is None:
            raise SpecError("power_cap", "needs a model of power (power=, --power FILE.toml)")
        return cls(
            power,
            None if power_cap is None else PowerCap.read(power_cap),
            None if shift is None else StartShift.read(shift),
            None if node_sleep is None else NodeSleep.read(node_sleep),
        )

    def given(self) -> dict[str, Any]:
        """Return what it was made of, by the names of the fields of a run."""
        return {
            "power": self.model,
            "power_cap": self.cap,
            "shift": self.shift,
            "node_sleep": self.sleep,
        }

    @property
    def acts(self) -> bool:
        """Whether the run is any different for it."""
        return not (self.cap is None and self.shift is None and self.sleep is None)

    def to_mapping(self) -> dict[str, Any]:
        """Return the settings of the run: ``power``, ``power_cap``, ``shift``, ``node_sleep``."""
        return {
            name: None if one is None else one.to_mapping() for name, one in self.given().items()
        }

    def check(self, *, as_pool: bool) -> None:
        """Check that the run's other options go with the policies.

        Raises:
            SpecError: they do not.
        """
        if self.sleep is not None and as_pool:
            raise SpecError("node_sleep", "a pool has no nodes; expected a cluster of nodes")

    def plan(
        self,
        problem: Problem,
        cluster: ClusterSpec,
        seed: int,
        oversize: str,
        *,
        least: Callable[[Problem], np.ndarray] | None = None,
        quotas: CohortQuotas | None = None,
    ) -> tuple[Problem, PowerPlan]:
        """Return what the engine needs: the jobs that can be flown, and the policies.

        Args:
            problem: the jobs.
            cluster: where.
            seed: of the forecast's errors.
            oversize: ``raise``, or ``reject`` jobs that the cap never lets run.
            least: says how many GPUs each job does with; None = with what it asks for.
            quotas: which limit the GPU types that a job may be on; None = there are none.

        Raises:
            SpecError: the model does not describe the cluster, or draws more asleep than idle; the
                cap is below what it draws idle, a job could never run, or deadlines are asked for
                that no job has.
        """
        plan = self._plan(problem, cluster, seed)
        never = never_fit(problem, plan, None if least is None else least(problem), quotas)
        if not never:
            return problem, plan
        if oversize == "raise":
            first, reason = next(iter(never.items()))
            name = quote(problem.jobs.job_id[problem.rows[first]])
            raise SpecError(
                "power_cap",
                f"{len(never):,} job(s) never fit under it: {name} {reason}. Pass "
                "oversize='reject' (--oversize reject) to list such jobs as rejected.",
            )
        flown = problem.without(never)
        return flown, self._plan(flown, cluster, seed)

    def _plan(self, problem: Problem, cluster: ClusterSpec, seed: int) -> PowerPlan:
        sleep = None
        if self.sleep is not None:
            step = seconds("node_sleep.step", self.sleep.step)
            back = round(FORECASTS[self.sleep.forecast] / step)
            wake_time = seconds("node_sleep.wake_time", self.sleep.wake_time)
            sleep = SleepPlan(self.sleep.rule(), step, wake_time, back)
        return PowerPlan(
            cap=self._cap_plan(problem, cluster),
            shift=None if self.shift is None else shift_plan(self.shift, problem, seed),
            sleep=sleep,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        if self.model is None or self.cap is None:
            return ()
        notes = []
        above = sum(table.above_limit() for table in self.model.limits)
        if above and self.cap.limits != "none":
            effect = (
                "the draw may exceed the cap there"
                if self.cap.count == "limit"
                else "the cap counts what was measured"
            )
            notes.append(
                f"At {above:,} of the power limits the measured draw is above the limit; {effect}."
            )
        if self.cap.limits != "none" and not self.model.limits:
            notes.append(
                "The power model has no tables of power limits: no job can be slowed down, jobs "
                "only wait."
            )
        return tuple(notes)

    def _cap_plan(self, problem: Problem, cluster: ClusterSpec) -> CapPlan | None:
        if self.cap is None or self.model is None:
            return None
        model, series = self.model.of_cluster(cluster), self.cap.series()
        if model.host_w and cluster.is_pool:
            message = "a pool has no nodes, and so no hosts; expected 0, or a cluster of nodes"
            raise SpecError("power.host_w", message)
        types = tuple(dict.fromkeys(problem.types))
        kinds, kind_of = _kinds(problem)
        draws = {
            (k, t): _draws(model, gpu_type, kind, self.cap.count)
            for k, kind in enumerate(kinds)
            for t, gpu_type in enumerate(types)
        }
        if problem.is_pool and any(
            draws[k, t] != draws[k, 0] for k in range(len(kinds)) for t in range(len(types))
        ):
            raise SpecError(
                "power.gpus",
                "a pool of several GPU types does not tell which a job was given; expected the "
                "same watts for all of them, or a cluster of nodes",
            )
        hosts = model.host_w
        gpus = (problem.sizes / problem.units).tolist()
        pairs = zip(gpus, problem.types, strict=True)
        idle_w = [number * model.gpu(kind).idle_w if number else 0.0 for number, kind in pairs]
        base_w = sum(idle_w) + (0.0 if cluster.is_pool else hosts * cluster.num_nodes)
        lowest = float(series.values.min())
        if lowest < model.pue * base_w:
            raise SpecError(
                "power_cap",
                f"found {lowest:,.6g} W at the lowest; with no job running the cluster draws "
                f"{model.pue * base_w:,.6g} W already",
            )
        wake_w = tuple(hosts + watts - model.asleep_w for watts in idle_w)
        if self.sleep is not None and min(wake_w) < 0:
            node = wake_w.index(min(wake_w))
            message = f"found {model.asleep_w:g} W; awake and idle node {node} draws "
            message += f"{hosts + idle_w[node]:g} W, and no more was expected asleep."
            raise SpecError("power.asleep_w", message)
        return CapPlan(
            rows=series.rows_from,
            highest_w=float(series.values.max()),
            period=series.period,
            limits=self.cap.limits,
            pue=model.pue,
            base_w=base_w,
            wake_w=wake_w,
            kind_of=kind_of,
            type_of=tuple(types.index(kind) for kind in problem.types),
            draws=draws,
        )


def _kinds(problem: Problem) -> tuple[list[str | None], tuple[int, ...]]:
    """Return the kinds of work, and each job's among them."""
    numbers: dict[str | None, int] = {}
    names = problem.jobs.workload[problem.rows]
    kind_of = tuple(numbers.setdefault(name, len(numbers)) for name in names)
    return list(numbers), kind_of


def _draws(
    model: PowerModel, gpu_type: str | None, kind: str | None, count: str
) -> tuple[Draw, ...]:
    idle_w = model.gpu(gpu_type).idle_w
    return tuple(
        Draw(
            limit_w=level.limit_w,
            extra_w=(level.power_w if count == "measured" else level.limit_w) - idle_w,
            speed=level.speed,
        )
        for level in model.levels(gpu_type, kind)
    )


def shift_plan(request: StartShift, problem: Problem, seed: int) -> ShiftPlan:
    """Return for whom to wait until when at most, and the times that are best by the forecast.

    Args:
        request: what was asked for.
        problem: the jobs.
        seed: of the forecast's errors.

    Raises:
        SpecError: deadlines are asked for that no job has.
    """
    series = request.forecast(seed)
    every = None if request.every is None else seconds("shift.every", request.every)
    jobs, rows = problem.jobs, problem.rows
    length = problem.duration if request.lengths == "perfect" else jobs.estimate[rows]
    deadline = np.full(len(rows), math.nan)
    if request.max_delay is not None:
        deadline = problem.submit + length + seconds("shift.max_delay", request.max_delay)
    if request.deadlines:
        if "deadline" not in jobs.table.column_names:
            raise SpecError("shift.deadlines", "the jobs have no column 'deadline'")
        given = numeric_column(jobs.table, "deadline", "deadlines")[rows]
        deadline = np.where(np.isnan(given), deadline, given)
    if request.workloads:
        asked = np.array([name in request.workloads for name in jobs.workload[rows]], dtype=bool)
        deadline = np.where(asked, deadline, math.nan)

    def pieces(left: float, earliest: float, latest: float, full: np.ndarray) -> Pieces:
        if not earliest <= latest - left:  # by a rounding
            return ()
        if request.interruptible:
            return cheapest_pieces(series, left, earliest, latest, full)
        return cheapest_stretch(series, left, earliest, latest, every=every, full=full)

    def amount(pieces: Pieces) -> float:
        return sum(series.of_energy(1.0, begin, end) for begin, end in pieces)

    def next_change(now: float) -> float:
        rows = series.rows_from(now)
        next(rows)
        return next(rows, (math.inf, 0.0))[0]

    return ShiftPlan(
        pieces,
        amount,
        next_change,
        tuple(deadline.tolist()),
        tuple(length.tolist()),
        request.interruptible,
        None if request.blind else request.fill,
    )
