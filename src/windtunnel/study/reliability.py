"""A plan against failures: how often to save, how many spare nodes, which nodes to drain.

Each is searched over flights with the same failures (common random numbers: a node's draws are its
own), so that few flights tell neighbours apart. Beside what flew best stands what theory says
(`windtunnel.sim.disruptions.closed_forms`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec
import numpy as np

from windtunnel.checked import checked_choice, checked_count
from windtunnel.errors import SpecError
from windtunnel.sim.disruptions import CapacityChange
from windtunnel.sim.disruptions import closed_forms as theory
from windtunnel.sim.flight import REJECTED
from windtunnel.sim.metrics import horizon
from windtunnel.sim.observe.goodput import parts
from windtunnel.study.budget import refuse_large
from windtunnel.study.changes import conditions_with_nodes, varied_nodes
from windtunnel.study.resolving import cluster_of
from windtunnel.study.simulate import fly
from windtunnel.study.statistics import student_quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.disruptions import Disruptions
    from windtunnel.site.conditions import Conditions

#: Share of the flights in which a deadline that is kept is kept.
SURE = 0.95
#: Intervals are tried at so many to a doubling.
STEPS = 4
#: Choices that a search tries, about.
CHOICES = 12


class Choice(NamedTuple):
    """What is flown: s of work between checkpoints, spare nodes, drained nodes."""

    interval: float
    spares: int
    drained: int


@dataclass(frozen=True)
class Flights:
    """Measures of the flights of a choice, one number a flight.

    Attributes:
        goodput: productive share of the GPU time held.
        ettr: productive share of the jobs' time since submission, waits included.
        owned: productive share of the GPU time of all nodes, spare and drained ones included.
        end: when the last job ends after the first submission, s; infinite = not all do.
    """

    goodput: np.ndarray
    ettr: np.ndarray
    owned: np.ndarray
    end: np.ndarray


@dataclass(frozen=True)
class Gang:
    """What theory needs to know of a job.

    Attributes:
        nodes: that it holds; of several jobs the mean over the GPU time, rounded up.
        mtbf: of a node, s.
        mttr: of a repair, s.
        mttf: of the job, s.
        work: s at full speed; None = there are several jobs.
    """

    nodes: int
    mtbf: float
    mttr: float
    mttf: float
    work: float | None


@dataclass(frozen=True)
class Plan:
    """What flew best.

    Attributes:
        best: the choice.
        now: as things are described; None = without checkpoints.
        flights: choice -> its flights; all that were tried.
        gang: what theory was asked of.
        intervals: theory's word -> its interval, s.
        spares: theory's fewest spares; None = several jobs, or nothing to reckon with.
        good: least and largest interval tried whose goodput is within 1 % of the best.
        drainable: nodes described by themselves that fail most, worst first.
        goal: (``ettr`` or ``deadline``, how much); None = the most work for all nodes.
    """

    best: Choice
    now: Choice | None
    flights: dict[Choice, Flights]
    gang: Gang
    intervals: dict[str, float]
    spares: int | None
    good: tuple[float, float]
    drainable: tuple[int, ...]
    goal: tuple[str, float] | None


def with_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return a mean of shares with both ends of its 95 % interval (Student's t), within 0 to 1.

    Of one value both ends are the value.
    """
    mean, count = float(values.mean()), len(values)
    if count < 2:  # noqa: PLR2004 - one value has no spread
        return mean, mean, mean
    half = student_quantile(0.975, count - 1) * float(values.std(ddof=1)) / math.sqrt(count)
    return mean, max(0.0, mean - half), min(1.0, mean + half)


@dataclass
class Wind:
    """Flights of the same jobs with the same failures, each choice once.

    Attributes:
        jobs: a jobs table.
        conditions: as things are, resolved; their seed is the first flight's.
        repeats: flights of a choice.
        drainable: nodes, in the order in which they are drained.
        on_done: called as a flight is over, with its choice.
    """

    jobs: pa.Table
    conditions: Conditions
    repeats: int
    drainable: tuple[int, ...]
    on_done: Callable[[Choice], None] = lambda _: None
    flights: dict[Choice, Flights] = field(default_factory=dict)

    def fly(self, choice: Choice) -> Flights:
        """Return the flights of a choice."""
        if choice not in self.flights:
            conditions = self._having(choice)
            seed = self.conditions.seed or 0
            rows = []
            for k in range(self.repeats):
                rows.append(self._measures(conditions, seed + k))
                self.on_done(choice)
            self.flights[choice] = Flights(*np.array(rows).T)
        return self.flights[choice]

    def refuse_large(self, choice: Choice) -> None:
        """Check that a search around a choice is not out of all proportion.

        Raises:
            SpecError: it is, and was not allowed to be.
        """
        conditions = self._having(choice)
        refuse_large(self.jobs, cluster_of(conditions), conditions, CHOICES * self.repeats)

    def _having(self, choice: Choice) -> Conditions:
        down: Disruptions = self.conditions.site.disruptions
        checkpoint = msgspec.structs.replace(down.checkpoint, interval=choice.interval)
        gone = down.capacity_changes
        if choice.drained:
            nodes = self.drainable[: choice.drained]
            gone = (*gone, CapacityChange(time=0.0, remove=nodes))
        down = msgspec.structs.replace(down, checkpoint=checkpoint, capacity_changes=gone)
        there = self.conditions.having(disruptions=down)
        return conditions_with_nodes(there, choice.spares) if choice.spares else there

    def _measures(self, conditions: Conditions, seed: int) -> tuple[float, ...]:
        out = fly(self.jobs, conditions.having(seed=seed))
        first, last = horizon(out)
        split = {name: float(of.sum()) for name, of in parts(out).items()}
        end = np.where(np.isnan(out.flight.end), last, out.flight.end)
        flown = out.flight.status != REJECTED
        asked = float((np.nan_to_num(out.num_gpus) * (end - out.submit_time))[flown].sum())
        wholes = (math.fsum(split.values()), asked, out.cluster.num_gpus * (last - first))
        shares = [split["productive"] / whole if whole > 0 else 0.0 for whole in wholes]
        ended = not np.isnan(out.flight.end[flown]).any()
        return (*shares, last - first if ended else math.inf)


def plan_reliability(
    jobs: pa.Table,
    conditions: Conditions,
    *,
    goal: tuple[str, float] | None = None,
    repeats: int = 20,
    on_done: Callable[[Choice], None] = lambda _: None,
) -> Plan:
    """Search checkpoint interval, number of spare nodes and drained nodes.

    The interval is the one of the best goodput; the spares are the fewest that reach the goal,
    or, without one, those with which all nodes together do most work; nodes are drained, worst
    first, as long as that helps. Theory's answers are where each search begins.

    Args:
        jobs: a jobs table; a table of one job is a gang on a cluster of its own.
        conditions: as things are, resolved, with random failures and a cluster of nodes.
        goal: (``ettr``, 0..1) or (``deadline``, s since the first submission).
        repeats: flights of a choice, with one seed after the other.
        on_done: called as a flight is over, with its choice.

    Raises:
        SpecError: nothing fails at random, a checkpoint costs nothing, the cluster is a pool, or
            not even as many spare nodes as there are nodes reach the goal; no flight is asked for,
            or the goal is none; the flights would be more than are flown unasked.
    """
    _check(goal, repeats)
    gang = _gang(jobs, conditions)
    down: Disruptions = conditions.site.disruptions
    cost, restart = cast("float", down.checkpoint.cost), cast("float", down.checkpoint.restart_cost)
    intervals = {
        "Young": theory.young(cost, gang.mttf),
        "Daly": theory.daly(cost, gang.mttf),
        "Tc": theory.availability_optimal(cost, gang.mttf, restart) - cost,
    }
    needed = _spares_in_theory(gang, down, intervals["Daly"], goal)
    drainable = _drainable(down)
    wind = Wind(jobs, conditions, repeats, drainable, on_done)
    begin = Choice(intervals["Daly"], needed or 0, 0)
    wind.refuse_large(begin)
    best = begin._replace(interval=_best_interval(wind, begin, jobs))
    tried = {c.interval: f.goodput.mean() for c, f in wind.flights.items()}
    near = [one for one, good in tried.items() if good >= 0.99 * max(tried.values())]
    best = _most_work(wind, best, "spares", math.inf) if goal is None else _fewest(wind, best, goal)
    best = _most_work(wind, best, "drained", len(drainable))
    now, interval = None, down.checkpoint.interval
    if interval is not None:
        now = Choice(cast("float", interval), 0, 0)
        wind.fly(now)
    good = min(near), max(near)
    return Plan(best, now, wind.flights, gang, intervals, needed, good, drainable, goal)


def _check(goal: tuple[str, float] | None, repeats: int) -> None:
    checked_count("repeats", repeats)
    if goal is None:
        return
    name, value = goal
    most = {"ettr": 1.0, "deadline": math.inf}
    checked_choice("goal", name, most)
    if not 0 < value < most[name]:
        expected = "a share between 0 and 1" if name == "ettr" else "seconds above 0"
        raise SpecError(f"--{name}", f"found {value:g}; expected {expected}.")


def _peak(value: Callable[[int], float], start: int, low: float, high: float, stride: int) -> int:
    """Return where a number of one peak is greatest: uphill in ever shorter strides."""
    at = start
    while stride:
        near = (place for place in (at - stride, at + stride) if low <= place <= high)
        best = max((at, *near), key=value)
        stride, at = (stride // 2, at) if best == at else (stride, best)
    return at


def _best_interval(wind: Wind, begin: Choice, jobs: pa.Table) -> float:
    """Return the s between checkpoints of the best goodput; it is at most the longest job's."""
    longest = float(np.nanmax(jobs["duration"].to_numpy()))

    def interval(step: int) -> float:
        return begin.interval * math.exp2(step / STEPS)

    def goodput(step: int) -> float:
        return float(wind.fly(begin._replace(interval=interval(step))).goodput.mean())

    most = max(0.0, STEPS * math.log2(longest / begin.interval))
    return interval(_peak(goodput, 0, -math.inf, most, STEPS))


def _most_work(wind: Wind, begin: Choice, name: str, most: float) -> Choice:
    """Return the choice whose number of that name lets all nodes do most work."""

    def owned(number: int) -> float:
        return float(wind.fly(begin._replace(**{name: number})).owned.mean())

    start = getattr(begin, name)
    # So far is the number of nodes that are down from its mean by chance.
    stride = 1 << (int(min(most, max(math.sqrt(start), 2))).bit_length() - 1) if most else 0
    return begin._replace(**{name: _peak(owned, start, 0, most, stride)})


def reaches(flights: Flights, goal: tuple[str, float]) -> bool:
    """Return whether flights reach a goal: the mean ETTR, or `SURE` of them the deadline."""
    name, value = goal
    if name == "ettr":
        return float(flights.ettr.mean()) >= value
    return float((flights.end <= value).mean()) >= SURE


def _fewest(wind: Wind, begin: Choice, goal: tuple[str, float]) -> Choice:
    """Return the choice with the fewest spares that reaches the goal."""

    def enough(spares: int) -> bool:
        return reaches(wind.fly(begin._replace(spares=spares)), goal)

    low, high, most = -1, begin.spares, varied_nodes(wind.conditions)
    while not enough(high):
        if high >= most:
            last = wind.fly(begin._replace(spares=high))
            late = float((last.end > goal[1]).mean())
            reached = f"the ETTR is {last.ettr.mean():.4f}"
            reached = reached if goal[0] == "ettr" else f"{late:.0%} of the flights end later"
            raise SpecError(f"--{goal[0]}", f"not even {high:,} spare nodes reach it: {reached}.")
        low, high = high, min(most, max(1, 2 * high))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return begin._replace(spares=high)


def _gang(jobs: pa.Table, conditions: Conditions) -> Gang:
    """Return what theory needs to know.

    Raises:
        SpecError: nothing stops jobs at random, a checkpoint costs nothing, the cluster is a pool,
            or no job holds a GPU.
    """
    cluster, down = cluster_of(conditions), conditions.site.disruptions
    if cluster.is_pool:
        raise SpecError("cluster", "a pool has no nodes that fail; expected one such as 64x8.")
    models = () if down is None else tuple(one for one in down.failure_models if not one.speed)
    if down is None or not (models or down.job_failures.rate):
        message = "nothing fails at random; expected mtbf:30d/mttr:4h/cost:60 or rsc/cost:60."
        raise SpecError("disruptions", message)
    if not cast("float", down.checkpoint.cost) > 0:
        message = "a checkpoint costs nothing, and so none can be too many; add /cost:60."
        raise SpecError("disruptions", message)
    kind = max((node for node in cluster.node_types if node.gpus), key=lambda node: node.count)
    gpus = np.nan_to_num(jobs["num_gpus"].to_numpy())
    held = gpus * np.nan_to_num(jobs["duration"].to_numpy())
    if not held.sum() > 0:
        raise SpecError("jobs", "none holds a GPU for a known time; there is nothing to save.")
    # No more than the largest, which rounding would otherwise pass, and then no cluster is enough.
    mean = min(float((gpus * held).sum() / held.sum()), float(gpus.max()))
    if mean > cluster.num_gpus:
        raise SpecError("jobs", f"want {mean:,.6g} GPUs; the cluster has {cluster.num_gpus:,}.")
    nodes = math.ceil(mean / kind.gpus)
    rates, repairs, stops = [], [], []
    for model in models:
        of = 1.0 if model.nodes is None else len(model.nodes) / kind.count
        rates.append(of * (1 + model.lemons * (model.lemon_factor - 1)) / cast("float", model.mtbf))
        repairs.append(cast("float", model.mttr))
        stops.append(math.ceil(nodes / _nodes_of_a_domain(cluster, model.level)) * rates[-1])
    rate = math.fsum(rates)
    alone = down.job_failures.rate * mean / 3600
    return Gang(
        nodes=nodes,
        mtbf=1 / rate if rate else math.inf,
        mttr=float(np.average(repairs, weights=rates)) if rate else 0.0,
        mttf=1 / (math.fsum(stops) + alone),
        work=float(jobs["duration"][0].as_py()) if jobs.num_rows == 1 else None,
    )


def _nodes_of_a_domain(cluster: ClusterSpec, level: str | None) -> float:
    """Return how many nodes fail as one; 1 where each fails by itself."""
    levels, paths = cluster.level_paths
    if level not in levels:  # a host; other names are refused by the flights
        return 1.0
    return len(paths) / len({path[: levels.index(level) + 1] for path in paths})


def _spares_in_theory(
    gang: Gang, down: Disruptions, interval: float, goal: tuple[str, float] | None
) -> int | None:
    """Return the spares of a job by machine repair; None where theory knows none."""
    if gang.work is None or gang.mtbf == math.inf:
        return None
    checkpoint = down.checkpoint
    cost, restart = cast("float", checkpoint.cost), cast("float", checkpoint.restart_cost)
    repair = gang.nodes, down.repair_crews, gang.mtbf, gang.mttr
    if goal is None:
        return theory.spares_of_most_work(*repair)
    ettr = goal[1] if goal[0] == "ettr" else gang.work / goal[1]
    up = ettr / theory.goodput(interval, cost, gang.mttf, restart=restart)
    return theory.spares_for(*repair, up) if up < 1 else None


def _drainable(down: Disruptions) -> tuple[int, ...]:
    """Return the nodes that a failure model names, the one that fails most often first."""
    rates: dict[int, float] = {}
    for model in down.failure_models:
        for node in model.nodes or ():
            rates[node] = rates.get(node, 0.0) + 1 / cast("float", model.mtbf)
    return tuple(sorted(rates, key=lambda node: (-rates[node], node)))
