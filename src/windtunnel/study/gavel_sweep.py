"""Gavel's headline experiments: completion time against input rate, makespan, shares over time.

Narayanan et al., OSDI'20, section 7: jobs drawn by the published generator on 36 V100s, 36 P100s
and 36 K80s; of a stream of jobs, those that come 4000th to 4999th are measured, so that the
cluster is full of others before, between and after them.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel import __version__
from windtunnel.checked import checked_number
from windtunnel.cluster.parse import parse_cluster
from windtunnel.errors import SpecError, TraceError
from windtunnel.policies.gavel.in_rounds import PREFIX, GavelPolicy
from windtunnel.schema import conform
from windtunnel.site.conditions import Conditions
from windtunnel.study.gavel_rounds import run_rounds
from windtunnel.traces.gavel import generate_gavel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.sim.outcome import Outcome
    from windtunnel.throughput.measured import ThroughputTable

#: The published cluster.
CLUSTER = "k80:36,p100:36,v100:36"
#: Hours after the last measured arrival for which jobs keep coming.
_TAIL_HOURS = 500.0
_HOUR = 3600.0
#: Jobs of an entity of `entity_timeline`.
_JOBS_EACH = 6


@dataclass(frozen=True)
class SweepOptions:
    """What the runs of a sweep share.

    Attributes:
        cluster: where, in words.
        multi_gpu: gangs of 1, 2, 4 and 8 GPUs instead of 1 alone.
        priorities: a fifth of the jobs has weight 5.
        compat: ``gavel``: the published mechanism; None = ours.
        throughputs: a throughput table; None = the published speeds, without pairs.
        first: the first job, by arrival, that is measured.
        last: the first after them that is not.
        limit_hours: a run in which the measured jobs are not done so long after the last of them
            came is given up: the policy does not keep up with the rate.
    """

    cluster: str = CLUSTER
    multi_gpu: bool = False
    priorities: bool = False
    compat: str | None = None
    throughputs: ThroughputTable | str | None = None
    first: int = 4000
    last: int = 5000
    limit_hours: float = 2000.0

    def __post_init__(self) -> None:
        if not 0 <= self.first < self.last:
            raise SpecError("measure", f"found {self.first}:{self.last}; expected first < last.")


def rate_sweep(
    policies: Sequence[str],
    rates: Sequence[float],
    seeds: Sequence[int],
    options: SweepOptions | None = None,
    *,
    on_done: Callable[[str], None] | None = None,
    kept: str | Path | None = None,
) -> pa.Table:
    """Run policies at input rates.

    Args:
        policies: names without ``gavel:``, parameters behind them.
        rates: jobs per hour, > 0.
        seeds: of the workload and of what policies draw.
        options: what the runs share.
        on_done: called with a few words after each run.
        kept: file of finished runs, to which each is added as it is done; what is there is not
            flown again.

    Returns:
        A row a run, in the order policy, rate, seed: ``policy``, ``rate`` (jobs per hour),
        ``seed``, ``num_measured``, ``avg_jct``, ``p99_jct`` (s, of the measured jobs; null where
        the run was given up), ``avg_jct_high`` and ``avg_jct_low`` (by priority; null without),
        ``avg_rho`` (completion time over that under an equal share), ``utilization``, ``end`` (s),
        ``rounds``, ``solves``.

    Raises:
        SpecError: an unknown policy, or an option out of range.
        TraceError: the file of finished runs is none.
    """
    chosen = options or SweepOptions()
    for rate in rates:
        checked_number("rates", rate, "jobs per hour > 0", above=0)
    fly = partial(_continuous, options=chosen)
    rows = _swept(policies, ("rate", rates), seeds, fly, _Kept(kept, chosen), on_done)
    return pa.Table.from_pylist(rows, schema=_RATE_SCHEMA)


def _swept(  # noqa: PLR0917 - a sweep is this
    policies: Sequence[str],
    axis: tuple[str, Sequence[Any]],
    seeds: Sequence[int],
    fly: Callable[[GavelPolicy, Any, int], dict[str, Any]],
    kept: _Kept,
    on_done: Callable[[str], None] | None,
) -> list[dict[str, Any]]:
    """Return a row a run, in the order policy, point of the axis, seed."""
    made = [(name, GavelPolicy.of(PREFIX + name)) for name in policies]
    word, points = axis
    rows = []
    for (name, policy), at, seed in product(made, points, seeds):
        place = {"policy": name, word: at, "seed": seed}
        row = kept.row(place)
        if row is None:
            row = {**place, **fly(policy, at, seed)}
            kept.add(place, row)
        rows.append(row)
        if on_done is not None:
            on_done(f"{policy.label}, {word} {at:g}, seed {seed}")
    return rows


class _Kept:
    """Finished runs of sweeps: a line of JSON each, with what it was a run of.

    Args:
        path: the file; None = nothing is kept.
        options: what the runs share.

    Raises:
        SpecError: speeds that a file cannot name.
        TraceError: the file is none of these.
    """

    def __init__(self, path: str | Path | None, options: SweepOptions) -> None:
        self._path = None if path is None else Path(path)
        if self._path is None:
            return
        if not isinstance(options.throughputs, str | None):
            raise SpecError("throughputs", "expected a file, as runs are kept by its name.")
        self._shared = {"version": __version__, **asdict(options)}
        self._rows: dict[str, dict[str, Any]] = {}
        text = self._path.read_text("utf-8") if self._path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # a run that was killed leaves a part of a line
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                found = json.loads(line)
                self._rows[json.dumps(found["of"], sort_keys=True)] = found["run"]
            except (ValueError, KeyError, TypeError) as error:
                expected = "a finished run of a sweep"
                raise TraceError(str(path), expected, row=number) from error
        if whole != text:
            self._path.write_text(whole, "utf-8")

    def row(self, place: dict[str, Any]) -> dict[str, Any] | None:
        """Return a finished run; None = it is none yet."""
        return None if self._path is None else self._rows.get(self._key(place))

    def add(self, place: dict[str, Any], row: dict[str, Any]) -> None:
        """Keep a run."""
        if self._path is not None:
            line = json.dumps({"of": {**self._shared, **place}, "run": row})
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    def _key(self, place: dict[str, Any]) -> str:
        return json.dumps({**self._shared, **place}, sort_keys=True)


def _continuous(policy: Any, rate: float, seed: int, options: SweepOptions) -> dict[str, Any]:
    """Return the figures of one run of a stream of jobs."""
    gap = _HOUR / rate
    count = options.last + math.ceil(rate * _TAIL_HOURS)
    jobs = generate_gavel(
        jobs=count,
        gap=gap,
        multi_gpu=options.multi_gpu,
        priorities=options.priorities,
        whole_steps=False,
        seed=seed,
    ).jobs
    submit = np.asarray(jobs["submit_time"])
    until = float(submit[options.last - 1]) + options.limit_hours * _HOUR
    flight = Conditions().having(
        compat=options.compat, throughputs=options.throughputs, seed=seed, until=until
    )
    cluster = parse_cluster(options.cluster)
    window = slice(options.first, options.last)
    run = run_rounds(jobs, cluster, policy, flight, stop_after=window)
    jct = (run.end - run.work.submit)[window]
    given_up = bool(np.isnan(jct).any())
    weights = np.asarray(jobs["priority"])[run.rows][window]
    high = weights > 1
    mean = {
        "avg_jct": jct,
        "avg_jct_high": jct[high],
        "avg_jct_low": jct[~high] if high.any() else jct[:0],
        "avg_rho": jct / run.isolated_time[window],
    }
    found = {
        name: None if given_up or not len(values) else float(values.mean())
        for name, values in mean.items()
    }
    used = float(run.gpu_time.sum()) / (cluster.num_gpus * run.stopped_at)
    return {
        "seed": seed,
        "num_measured": int((~np.isnan(jct)).sum()),
        **found,
        "p99_jct": None if given_up else float(np.quantile(jct, 0.99)),
        "utilization": used,
        "end": run.stopped_at,
        "rounds": run.log.rounds,
        "solves": run.log.solves,
    }


_RATE_SCHEMA = pa.schema(
    [
        ("policy", pa.string()),
        ("rate", pa.float64()),
        ("seed", pa.int64()),
        ("num_measured", pa.int64()),
        *((name, pa.float64()) for name in ("avg_jct", "p99_jct", "avg_jct_high", "avg_jct_low")),
        *((name, pa.float64()) for name in ("avg_rho", "utilization", "end")),
        ("rounds", pa.int64()),
        ("solves", pa.int64()),
    ]
)


def makespan_sweep(
    policies: Sequence[str],
    counts: Sequence[int],
    seeds: Sequence[int],
    options: SweepOptions | None = None,
    *,
    on_done: Callable[[str], None] | None = None,
    kept: str | Path | None = None,
) -> pa.Table:
    """Run policies on jobs that are all there at the start.

    Args:
        policies: names without ``gavel:``, parameters behind them.
        counts: numbers of jobs.
        seeds: of the workload and of what policies draw.
        options: what the runs share; ``first``, ``last`` and ``limit_hours`` do not count.
        on_done: called with a few words after each run.
        kept: as of `rate_sweep`.

    Returns:
        A row a run, in the order policy, count, seed: ``policy``, ``jobs``, ``seed``,
        ``makespan``, ``avg_jct`` (s), ``utilization``.

    Raises:
        SpecError: an unknown policy, or an option out of range.
        TraceError: the file of finished runs is none.
    """
    chosen = options or SweepOptions(multi_gpu=True)
    cluster = parse_cluster(chosen.cluster)

    def fly(policy: GavelPolicy, count: int, seed: int) -> dict[str, Any]:
        jobs = generate_gavel(
            jobs=count, multi_gpu=chosen.multi_gpu, priorities=chosen.priorities, seed=seed
        ).jobs
        flight = Conditions().having(
            compat=chosen.compat, throughputs=chosen.throughputs, seed=seed
        )
        found = run_rounds(jobs, cluster, policy, flight).outcome.metrics()
        return {name: found[name] for name in ("makespan", "avg_jct", "utilization")}

    rows = _swept(policies, ("jobs", counts), seeds, fly, _Kept(kept, chosen), on_done)
    return pa.Table.from_pylist(rows)


def entity_timeline(
    *,
    weights: Sequence[float] = (1.0, 2.0, 3.0),
    hours: float = 24.0,
    cluster: str = "k80:3,p100:3,v100:3",
) -> pa.Table:
    """Run entities whose jobs come one after another, and return what each has over time.

    As the paper's figure on hierarchical policies: every hour a job, `_JOBS_EACH` of the first
    entity, then those of the second, ...; none of them ends within the time looked at.

    Args:
        weights: of the entities, in order.
        hours: for how long.
        cluster: where, in words.

    Returns:
        A row an entity and hour: ``hour`` (the hour's end), ``entity``, ``weight``, ``gpus``
        (mean GPUs held in the hour), ``throughput`` (mean of the sum over its jobs of speed over
        that on V100s alone), ``share`` of all entities' throughput.

    Raises:
        SpecError: an option is out of range.
    """
    count = len(weights) * _JOBS_EACH
    drawn = generate_gavel(jobs=count, gap=0.0, multi_gpu=False, seed=0).jobs
    names = [f"entity {number // _JOBS_EACH}" for number in range(count)]
    columns = {
        "job_id": [str(number) for number in range(count)],
        "submit_time": np.arange(count) * _HOUR,
        "num_gpus": [1.0] * count,
        "template": drawn["template"],
        "duration": [1e9] * count,
        "total_steps": [1e12] * count,
        "vc": names,
    }
    table = conform(pa.table(columns), source="entities")
    words = "/".join(f"{weight:g}" for weight in weights)
    chosen = GavelPolicy.of(f"{PREFIX}hierarchical_water_filling_perf:weights={words}")
    span = math.ceil(hours)
    flight = Conditions().having(until=span * _HOUR)
    run = run_rounds(table, parse_cluster(cluster), chosen, flight)
    held = held_between(run.outcome, run.work.gpu_types, np.arange(span + 1) * _HOUR) / _HOUR
    speeds = run.work.speeds[np.argsort(run.rows)]
    fastest = speeds[:, run.work.gpu_types.index("v100")][:, None]
    entity = np.arange(count) // _JOBS_EACH
    rows = []
    for hour, step in enumerate(held, start=1):
        pace = (step * speeds / fastest).sum(axis=1)
        total = max(float(pace.sum()), 1e-300)
        for number, weight in enumerate(weights):
            mine = entity == number
            rows.append(
                {
                    "hour": hour,
                    "entity": f"entity {number}",
                    "weight": float(weight),
                    "gpus": float(step[mine].sum()),
                    "throughput": float(pace[mine].sum()),
                    "share": float(pace[mine].sum()) / total,
                }
            )
    return pa.Table.from_pylist(rows)


def held_between(outcome: Outcome, gpu_types: Sequence[str], edges: np.ndarray) -> np.ndarray:
    """Return the seconds each job was on each GPU type in each span, from its stays.

    Args:
        outcome: a run on nodes.
        gpu_types: the types.
        edges: s, ascending, the last where the run was cut; shape (spans + 1,).

    Returns:
        Shape (spans, rows, types); jobs that share GPUs count in full.
    """
    nodes = outcome.cluster.node_types
    kind_of = np.repeat(
        [gpu_types.index(str(node.gpu_type)) for node in nodes], [node.count for node in nodes]
    )
    flight = outcome.flight
    found = np.zeros((len(edges) - 1, len(outcome.jobs), len(gpu_types)))
    stop = np.where(np.isnan(flight.segment_end), edges[-1], flight.segment_end)
    within = np.minimum(stop, edges[1:, None]) - np.maximum(flight.segment_start, edges[:-1, None])
    kinds = kind_of[flight.nodes[flight.node_offset[:-1]]]
    for span, seconds in zip(found, np.maximum(within, 0.0), strict=True):
        np.add.at(span, (flight.segment_job, kinds), seconds)
    return found
