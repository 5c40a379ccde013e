"""Why did jobs wait? Each recorded wait split by cause: the log's own, else by a rule.

Where the log says why a job waited (column ``reason``, as Slurm's), its wait from when it was
eligible has that cause: a limit of a QOS or an association is ``quota``, an array's own limit
``throttle``, nodes that were down or reserved ``reservation``, ``Priority`` is ``order``. All other
waits are split by a rule on the recorded history.

Nothing is simulated: who held which GPUs when is what the trace says. The jobs that ask for GPUs
stand in one line, by the time from which nothing but the queue held them (``eligible_time`` where
the source has it, else their submission), then by row; one that never started and whose ``reason``
is neither Resources nor Priority (a hold, an array's own limit) is not in it. At every instant of
a wait the cause is the first of these that holds:

1. ``dependency``: the job is not eligible yet (a dependency, a begin time, a hold);
2. ``quota``: its virtual cluster holds so much that the job would exceed its quota (if given);
3. ``order``: the free GPUs of types that it accepts do not suffice, but would together with those
   that jobs behind it in the line hold at that instant: they were served before it;
4. ``resources``: the free GPUs do not suffice even so;
5. ``fragmentation``: they suffice, but no placement of the job on the nodes exists;
6. ``order``: it would fit, and a job before it in the line still waits;
7. ``other``: it would fit and nobody is before it: the scheduler's cycle, limits or reservations
   that are not given, nodes that were down.

The causes of a wait add up to it. A trace's nodes are known as numbers only, so jobs are put on
them best fit at their recorded starts; what does not fit there counts as taken all the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.recorded import Recorded
from windtunnel.cluster.gpu_types import with_types_of
from windtunnel.policies.quotas import Quotas, by_type, unused_vcs
from windtunnel.quantiles import quantiles
from windtunnel.sim import problem as problems
from windtunnel.sim.metrics import size_classes
from windtunnel.sim.timeline import steps
from windtunnel.study.recorded_line import History, Replayed, gpus_alone, replay

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec

#: The causes, in the order of the columns.
CAUSES: tuple[str, ...] = (
    *("dependency", "quota", "throttle", "order", "resources", "fragmentation", "reservation"),
    "other",
)
_DEPENDENCY, _QUOTA, _THROTTLE, _ORDER, _RESOURCES, _FRAGMENTATION, _RESERVATION, _OTHER = range(
    len(CAUSES)
)
#: How Slurm's reasons begin, and the causes that they stand for.
_REASONS = (
    *(("Priority", _ORDER), ("Resources", _RESOURCES), ("Nodes required", _RESOURCES)),
    *(("JobArrayTaskLimit", _THROTTLE), ("QOS", _QUOTA), ("Assoc", _QUOTA), ("Max", _QUOTA)),
    ("Licenses", _QUOTA),
    *((word, _DEPENDENCY) for word in ("Dependency", "BeginTime", "JobHeld")),
    *((word, _RESERVATION) for word in ("Reserv", "ReqNodeNotAvail", "NodeDown", "PartitionDown")),
)
#: Of the jobs behind a job in the line so many are looked at, the nearest ones.
MAX_BEHIND = 20_000
_PERCENTS = {"p50_wait": 0.5, "p90_wait": 0.9}


@dataclass(frozen=True)
class WaitCauses:
    """Why the jobs of a trace waited.

    Attributes:
        recorded: the jobs' history.
        cluster: where they ran.
        rows: Int array (m,): the jobs that are explained: GPU jobs that started, by place in line.
        causes: Float array (m, causes): seconds of each job's wait by `CAUSES`.
        line: eligible and leaving times of all GPU jobs that stood in the line, s, shape (k, 2), in
            its order.
        line_rows: Int array (k,): their rows in the jobs table.
        left_out: reason -> GPU jobs that are not explained.
        notes: what a reader of the numbers must know, one sentence each.
    """

    recorded: Recorded
    cluster: ClusterSpec
    rows: np.ndarray
    causes: np.ndarray
    line: np.ndarray
    line_rows: np.ndarray
    left_out: dict[str, int]
    notes: tuple[str, ...]

    @cached_property
    def wait(self) -> np.ndarray:
        """Float array (m,): the waits, s."""
        wait: np.ndarray = self.recorded.wait[self.rows]
        return wait

    def total(self) -> dict[str, float]:
        """Return seconds waited by cause, over all jobs."""
        return dict(zip(CAUSES, self.causes.sum(axis=0).tolist(), strict=True))

    def by_size(self) -> list[dict[str, Any]]:
        """Return waits and causes by size of the job; see `_grouped`."""
        codes, labels = size_classes(self.recorded.gpus[self.rows])
        return self._grouped(codes, labels, "size")

    def by_name(self, column: str) -> list[dict[str, Any]]:
        """Return waits and causes by a column of text, the longest waits in sum first."""
        codes, labels = self.recorded.names(column)
        rows = self._grouped(codes[self.rows], labels, column)
        return sorted(rows, key=lambda row: (-row["wait"], row[column]))

    def by_hour(self, epoch: str | None, zone: str | None) -> list[dict[str, Any]]:
        """Return waits and causes by the hour of the day of the submission, from 0 to 23.

        Args:
            epoch: UTC instant of time 0; None = time 0 is a midnight.
            zone: IANA zone of the hours; None = UTC.
        """
        hours = hours_of(self.recorded.submit[self.rows], epoch, zone)
        return self._grouped(hours, [str(hour) for hour in range(24)], "hour")

    def in_front(self, column: str) -> list[dict[str, Any]]:
        """Return who held the GPUs while jobs waited.

        Args:
            column: ``user`` or ``vc``.

        Returns:
            Most first, then by name: the column, ``gpus`` (that they held, on average over all
            time that jobs spent waiting, a second of two waiting jobs counting twice), ``share``
            (of the cluster's GPUs), ``num_jobs``. Empty where nobody waited.
        """
        begin, leave = self.line[:, 0], self.line[:, 1]
        last = self.recorded.span[1]
        times = np.concatenate([begin, np.minimum(leave, last)])
        signs = np.concatenate([np.ones(len(begin)), -np.ones(len(begin))])
        order = np.argsort(times, kind="stable")
        at, waiting = times[order], np.cumsum(signs[order])
        area = np.concatenate([[0.0], np.cumsum(np.diff(at) * waiting[:-1])]) if len(at) else at
        if not len(at) or area[-1] <= 0:
            return []
        start, end = self.recorded.start, self.recorded.end
        held = ~np.isnan(start) & ~np.isnan(end) & (self.recorded.gpus > 0)
        seen = np.zeros(len(start))
        seen[held] = np.interp(end[held], at, area) - np.interp(start[held], at, area)
        codes, labels = self.recorded.names(column)
        gpus = np.bincount(codes, seen * self.recorded.gpus, minlength=len(labels)) / area[-1]
        jobs = np.bincount(codes[held], minlength=len(labels))
        ranked = sorted(range(len(labels)), key=lambda place: (-gpus[place], labels[place]))
        return [
            {
                column: labels[place],
                "gpus": float(gpus[place]),
                "share": float(gpus[place] / self.cluster.num_gpus),
                "num_jobs": int(jobs[place]),
            }
            for place in ranked
            if jobs[place]
        ]

    def _grouped(self, codes: np.ndarray, labels: list[str], name: str) -> list[dict[str, Any]]:
        """Return a row a group that has jobs.

        Keys: ``name``, ``num_jobs``, ``num_waited`` (a second or more), ``wait`` (s, all
        together), ``avg_wait``, ``p50_wait``, ``p90_wait``, and the mean s of each of `CAUSES`.
        """
        found = []
        for code in np.unique(codes):
            mask = codes == code
            wait = self.wait[mask]
            row = {
                name: labels[code],
                "num_jobs": int(mask.sum()),
                "num_waited": int((wait >= 1).sum()),
                "wait": float(wait.sum()),
                "avg_wait": float(wait.mean()),
                **{key: float(quantiles(wait, share)) for key, share in _PERCENTS.items()},
            }
            means = self.causes[mask].mean(axis=0).tolist()
            found.append(row | dict(zip(CAUSES, means, strict=True)))
        return found


def wait_causes(
    jobs: pa.Table, cluster: ClusterSpec, *, quotas: Mapping[str, float] | None = None
) -> WaitCauses:
    """Split the recorded wait of every GPU job that started by its causes.

    Args:
        jobs: a jobs table (`windtunnel.schema`), its starts and ends as recorded.
        cluster: where it ran; its cores and memory do not count.
        quotas: virtual cluster -> GPUs that its jobs may hold at once; None = no quotas.

    Raises:
        SchemaError: the jobs cannot be put on any cluster.
    """
    jobs = with_types_of(jobs, cluster.gpu_types, cluster.aliases)
    found = Recorded.of(jobs)
    gpus = found.gpus
    as_pool = cluster.is_pool or bool((gpus != np.rint(gpus)).any())
    problem = problems.build(
        jobs, gpus_alone(cluster), as_pool=as_pool, oversize="reject", incomplete="reject"
    )
    history = History.of(found, problem)
    states = replay(history, problem, gpus_alone(cluster), as_pool=as_pool)
    started = np.flatnonzero(~np.isnan(history.start))
    recorded = _recorded_causes(found, history.rows[started], quotas)
    causes = np.array(
        [
            _split(history, states, place, quotas)
            if cause is None
            else _whole(history, place, cause)
            for place, cause in zip(started.tolist(), recorded, strict=True)
        ]
    )
    flown = np.isin(np.arange(len(gpus)), problem.rows)
    left_out = {
        "that ask for more than the cluster has, or lack a time or GPUs": int(
            ((gpus > 0) & ~flown).sum()
        ),
        "that never started": int(np.isnan(history.start).sum()),
    }
    return WaitCauses(
        found,
        cluster,
        history.rows[started],
        causes.reshape(len(started), len(CAUSES)),
        np.column_stack([history.eligible, history.leave]),
        history.rows,
        {reason: number for reason, number in left_out.items() if number},
        (
            *unused_vcs(quotas or (), jobs["vc"].unique().to_pylist()),
            *_recorded_note(recorded),
            *_notes(history, states, cluster, as_pool=as_pool),
            *problem.notes,
        ),
    )


def hours_of(times: np.ndarray, epoch: str | None, zone: str | None) -> np.ndarray:
    """Return the hour of the day of times, int64.

    Args:
        times: s since the epoch, shape (n,).
        epoch: UTC instant of time 0, ISO 8601; None = time 0 is a midnight of the zone.
        zone: IANA zone; None = UTC.
    """
    from datetime import datetime

    from windtunnel.traces.wallclock import zone_info

    if epoch is None or zone is None:
        base = 0.0 if epoch is None else datetime.fromisoformat(epoch).timestamp()
        return np.asarray((times + base) // 3600 % 24, dtype=np.int64)
    import pyarrow as pa
    import pyarrow.compute as pc

    zone_info(zone)
    micros = np.rint((times + datetime.fromisoformat(epoch).timestamp()) * 1e6).astype(np.int64)
    moments = pa.array(micros, pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
    return np.asarray(pc.hour(moments).to_numpy(), dtype=np.int64)


def cause_of(reason: str | None) -> int | None:
    """Return the cause that one of Slurm's reasons stands for; None = it tells none.

    >>> CAUSES[cause_of("QOSMaxGRESPerUser")], CAUSES[cause_of("ReqNodeNotAvail, Reserved")]
    ('quota', 'reservation')
    """
    word = (reason or "").partition(",")[0].strip()
    if word.lower() in {"", "none"}:
        return None
    return next((cause for start, cause in _REASONS if word.startswith(start)), _OTHER)


def _recorded_causes(
    found: Recorded, rows: np.ndarray, quotas: Mapping[str, float] | None
) -> list[int | None]:
    """Return the cause that the log itself names for each row; with quotas asked for, none."""
    if "reason" not in found.jobs.column_names or quotas is not None:
        return [None] * len(rows)
    return [cause_of(word) for word in found.jobs["reason"].take(rows).to_pylist()]


def _recorded_note(causes: list[int | None]) -> list[str]:
    number = sum(cause is not None for cause in causes)
    if not number:
        return []
    known = f"Of {number:,} waits a reason is known (the last one)"
    counts = "which counts from when the job was eligible; the others are split by the rule."
    return [f"{known}, {counts}"]


def _whole(history: History, place: int, cause: int) -> list[float]:
    """Return the seconds of one job's wait by `CAUSES`, all but the first of one cause."""
    causes = [0.0] * len(CAUSES)
    begin = min(float(history.eligible[place]), float(history.start[place]))
    causes[_DEPENDENCY] = begin - float(history.submit[place])
    causes[cause] += float(history.start[place]) - begin
    return causes


def _split(
    history: History, states: Replayed, place: int, quotas: Mapping[str, float] | None
) -> list[float]:
    """Return the seconds of one job's wait by `CAUSES`."""
    causes = [0.0] * len(CAUSES)
    begin, end = float(history.eligible[place]), float(history.start[place])
    causes[_DEPENDENCY] = begin - float(history.submit[place])
    if end <= begin:
        return causes
    state = states.of_class[int(history.demand[place])]
    low = int(np.searchsorted(state.times, begin, side="right")) - 1
    high = int(np.searchsorted(state.times, end, side="left"))
    units = int(history.units[place])
    cuts = [state.times[low:high]]
    limit = None if quotas is None else quotas.get(history.names[int(history.vcs[place])])
    if limit is not None:
        instants, of_vc = history.by_vc.get(int(history.vcs[place]), (np.array([-np.inf]), [0.0]))
        first, last = np.searchsorted(instants, [begin, end])
        cuts.append(instants[first:last])
    is_short = bool((state.free[low:high] < units).any())
    behind_times, behind_units = _held_behind(history, place) if is_short else _NOBODY
    cuts.append(behind_times)
    ahead = float(history.ahead[place])
    times = np.concatenate([[begin, min(max(ahead, begin), end)], *cuts])
    times = np.unique(times[(times >= begin) & (times < end)])
    spans = np.diff(times, append=end)
    at = np.searchsorted(state.times, times, side="right") - 1
    free, fits = state.free[at], state.fits[at]
    behind = behind_units[np.searchsorted(behind_times, times, side="right")]
    cause = np.where(
        free < units,
        np.where(free + behind >= units, _ORDER, _RESOURCES),
        np.where(~fits, _FRAGMENTATION, np.where(times < ahead, _ORDER, _OTHER)),
    )
    if limit is not None:
        held = np.asarray(of_vc)[np.searchsorted(instants, times, side="right") - 1]
        cause[held + units > limit * history.units_per_gpu] = _QUOTA
    seconds = np.bincount(cause, spans, minlength=len(CAUSES)).tolist()
    return [one + other for one, other in zip(causes, seconds, strict=True)]


_NOBODY = (np.empty(0), np.zeros(1))


def _held_behind(history: History, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what jobs behind a job hold while it waits.

    Returns:
        Rising instants, shape (c,), and GPU units held before the first, and from each on, shape
        (c + 1,).
    """
    end = float(history.start[place])
    last = int(np.searchsorted(history.eligible, end, side="left"))
    near = slice(place + 1, min(last, place + 1 + MAX_BEHIND))
    start = history.start[near]
    before = start < end  # NaN, a job that never started, is not
    if not before.any():
        return _NOBODY
    units = history.units[near][before].astype(np.float64)
    stops = np.where(np.isnan(history.end[near][before]), np.inf, history.end[near][before])
    times = np.concatenate([start[before], np.minimum(stops, end)])
    instants, held = steps(times, np.concatenate([units, -units]))
    return instants, np.concatenate([[0.0], held])


def _notes(history: History, states: Replayed, cluster: ClusterSpec, *, as_pool: bool) -> list[str]:
    notes = []
    if as_pool:
        notes.append(
            "Nodes are not distinguished, so no wait is put down to fragmentation."
            if cluster.is_pool
            else "Jobs with a part of a GPU: nodes are not distinguished, nor is fragmentation."
        )
    else:
        notes.append(
            "Where on the nodes a job ran is not read from the log: jobs are put on them best fit "
            "at their recorded starts, which is what fragmentation goes by."
        )
    if states.unplaced:
        notes.append(
            f"Recorded starts for which the cluster had no room so: {states.unplaced:,}; their "
            "GPUs count as taken all the same."
        )
    if not history.has_eligible:
        notes.append(
            "The trace does not say when jobs became eligible: a wait for a dependency or a begin "
            "time cannot be distinguished."
        )
    longest = int((history.leave == math.inf).sum())
    if longest:
        notes.append(f"GPU jobs that still wait at the end of the log: {longest:,}.")
    return notes


def limits_of(path: str) -> dict[str, float]:
    """Return how many GPUs each virtual cluster may hold at once, from a file of quotas.

    A queue without a cohort may hold its nominal quota, one in a cohort its borrowing limit more;
    where it may borrow without limit, what its cohort has in all. GPU types are added up.

    Args:
        path: TOML, see `windtunnel.policies.quotas.Quotas.from_toml`.

    Raises:
        SpecError: the file is wrong.
    """
    quotas = Quotas.from_toml(path)
    cohorts: dict[str, float] = {}
    own = {queue.vc: sum(by_type(queue.nominal_quota).values()) for queue in quotas.queues}
    for queue in quotas.queues:
        if queue.cohort is not None:
            cohorts[queue.cohort] = cohorts.get(queue.cohort, 0.0) + own[queue.vc]
    limits = {}
    for queue in quotas.queues:
        limit = own[queue.vc]
        if queue.cohort is not None:
            more = queue.borrowing_limit
            whole = cohorts[queue.cohort]
            limit = whole if more is None else min(whole, limit + sum(by_type(more).values()))
        limits[queue.vc] = limit
    return limits
