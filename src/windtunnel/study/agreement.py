"""Decision agreement: from the recorded state at a recorded start, would Slurm have started it now?

The one measure that chaos does not blur: a second's delay makes another history, yet each decision
is judged from the state that was recorded. Running is who had started and not ended, waiting who
was eligible and had not started; limits, throttles and places follow from these.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.gpu_types import with_types_of
from windtunnel.predictors.features import numbers
from windtunnel.sim import problem as problems
from windtunnel.sim.slurm.priority import BASIC_FIRST
from windtunnel.site.host_list import readable_hosts
from windtunnel.study.resolving import cluster_of

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.policies.slurm.policy import Slurm
    from windtunnel.sim.slurm.tables import SlurmTables
    from windtunnel.site.conditions import Conditions

#: So many instants at which jobs started are looked at, evenly over the log.
MOST_DECISIONS = 1000
#: A job that starts by itself so much later is one that need not have waited, s: two looks of each
#: loop by their defaults.
SOON = 120


@dataclass(frozen=True)
class Agreement:
    """Decisions compared.

    Attributes:
        starts: jobs that started in the record at the instants looked at.
        agreed: of these, those that the scheduler starts from the recorded state, too.
        early: jobs that it starts there, and that in the record waited on for more than `SOON`.
        placed: of those agreed on, those on the recorded nodes.
        shut: node -> seconds that jobs waited on though the scheduler would have started them on
            it, and nobody used it until they started.
    """

    starts: int
    agreed: int
    early: int
    placed: int
    shut: dict[str, float]

    @property
    def share(self) -> float | None:
        """Share of decisions, recorded or the scheduler's, that both make; None = there is none."""
        all_made = self.starts + self.early
        return self.agreed / all_made if all_made else None

    def data(self) -> dict[str, Any]:
        """Return its counts, ``share``, and ``same_nodes`` (share of those agreed on)."""
        same = self.placed / self.agreed if self.agreed else None
        counts = {name: value for name, value in asdict(self).items() if name != "shut"}
        return {**counts, "share": self.share, "same_nodes": same}


def agreement(jobs: pa.Table, conditions: Conditions) -> Agreement | None:
    """Compare a log's decisions with the scheduler's from the same states.

    Args:
        jobs: as they are flown, with ``start_time``, ``end_time`` and ``nodelist``.
        conditions: resolved; policy ``slurm`` with a site.

    Returns:
        None where the log does not say on which nodes jobs ran.
    """
    if "nodelist" not in jobs.column_names:
        return None
    states = _States(jobs, conditions)
    instants = np.unique(states.start[states.is_known])
    if not len(instants):
        return None
    step = max(1, math.ceil(len(instants) / MOST_DECISIONS))
    found = [states.compared(now) for now in instants[::step].tolist()]
    starts, agreed, early, placed = (sum(one[at] for one in found) for at in range(4))
    return Agreement(starts, agreed, early, placed, states.shut())


class _States:
    """A log, and the scheduler that is put into its states.

    Attributes:
        start, end: of each job that is flown, s, by arrival number.
        nodes: the numbers of the nodes that it ran on; empty = not known, or not of the site.
        is_known: bool array: it started on nodes of the site.
    """

    def __init__(self, jobs: pa.Table, conditions: Conditions) -> None:
        policy: Slurm = conditions.scheduler.policy
        cluster = cluster_of(conditions)
        table = with_types_of(jobs, cluster.gpu_types, cluster.aliases)
        problem = problems.build(
            table, cluster, as_pool=False, oversize="reject", incomplete="reject"
        )
        self.tables: SlurmTables = policy.tables_of(problem)
        rows = problem.rows
        self.submit = problem.submit
        self.start, end = (numbers(table, name)[rows] for name in ("start_time", "end_time"))
        self.end = np.where(np.isnan(end), np.inf, end)
        names = table["nodelist"].take(rows).to_pylist()
        self.nodes = [self._numbers(text) for text in names]
        self.shares = [self._shares(job) for job in range(len(rows))]
        known = [bool(nodes) and job not in self.tables.never for job, nodes in
                 enumerate(self.nodes)]  # fmt: skip
        self.is_known = np.array(known, dtype=bool) & ~np.isnan(self.start)
        self._holds: Any = None
        self._early: dict[int, tuple[float, list[int]]] = {}
        self._set_priorities(table, rows)

    def _numbers(self, text: str | None) -> list[int]:
        found = [self.tables.node_number.get(name, -1) for name in readable_hosts(text or "")]
        return [] if -1 in found else sorted(found)

    def _shares(self, job: int) -> list[tuple[int, int, int, int]]:
        """Return what a job has on each of its nodes: even parts, the first ones larger."""
        asked, count = self.tables.requests[job], len(self.nodes[job])
        gpus = asked.gpus or asked.node_gpus * count
        cpus = asked.cpus
        return [
            (node, -(-(cpus - at) // count), asked.memory or 0, -(-(gpus - at) // count))
            for at, node in enumerate(self.nodes[job])
        ]

    def _set_priorities(self, table: pa.Table, rows: np.ndarray) -> None:
        """Give jobs the priorities that the log tells, or those of their submission."""
        priorities = None
        if self.tables.site.settings.priority.multifactor and "priority" in table.column_names:
            priorities = np.nan_to_num(numbers(table, "priority"))[rows]
        for job, asked in enumerate(self.tables.requests):
            value = BASIC_FIRST - asked.identity if priorities is None else int(priorities[job])
            self.tables.jobs.columns["priority"][job] = value

    def starting(self, now: float) -> set[int]:
        """Return the jobs that started at an instant, on nodes of the site."""
        return set(np.flatnonzero((self.start == now) & self.is_known).tolist())

    def compared(self, now: float) -> tuple[int, int, int, int]:
        """Return the decisions at an instant as `Agreement` counts them.

        A log has whole seconds: whether a loop had already seen what happened within its own, it
        does not tell. What agrees better counts.
        """
        recorded = self.starting(now)
        found = []
        for is_seen in (False, True):
            mine = self.decide(now, is_seen=is_seen)
            both = recorded & mine.keys()
            placed = sum(mine[job] == self.nodes[job] for job in both)
            early = [job for job in mine.keys() - recorded if self.start[job] > now + SOON]
            starts = {job: (now, mine[job]) for job in early}
            found.append(((len(recorded), len(both), len(early), placed), starts))
            if not ((self.end == now) | (self.submit == now)).any():
                break
        best, starts = max(found, key=lambda one: one[0][1] - one[0][2])
        self._early = starts | self._early  # the first time counts
        return best

    def shut(self) -> dict[str, float]:
        """Return the nodes beside which jobs waited though nobody used them: `Agreement.shut`."""
        spans: dict[int, list[tuple[float, float]]] = {}
        for job in np.flatnonzero(self.is_known).tolist():
            for node in self.nodes[job]:
                spans.setdefault(node, []).append((self.start[job], self.end[job]))
        names = [node.name for node in self.tables.site.nodes]
        found: dict[str, float] = {}
        for job, (now, nodes) in self._early.items():
            until = float(self.start[job])
            for node in nodes:
                if all(end <= now or start >= until for start, end in spans.get(node, ())):
                    part = (until - now) / len(nodes)
                    found[names[node]] = found.get(names[node], 0.0) + part
        return found

    def decide(self, now: float, *, is_seen: bool) -> dict[int, list[int]]:
        """Return the jobs that both loops start from the recorded state, and on which nodes.

        Args:
            now: s.
            is_seen: what happened within this second is known.
        """
        tables, loops = self.tables, self.tables.loops
        loops.clear()
        is_on = self.end > now if is_seen else self.end >= now
        running = (self.start < now) & is_on & self.is_known
        for job in np.flatnonzero(running).tolist():
            parts = tables.partitions[job]
            part = tables.part_number[parts[0].name]
            loops.put_running(job, part, math.floor(self.start[job]), self.shares[job])
        holds = [h for h in tables.site.reservations if h.made < now < h.end]
        if holds != self._holds:
            loops.set_holds(tables.hold_tables(holds))
            self._holds = holds
        known = self.submit <= now if is_seen else (self.submit < now) | (self.start == now)
        waiting = known & (self.start >= now) & self.is_known
        for job in np.flatnonzero(waiting).tolist():
            tables.jobs.columns["reason"][job] = 0
            loops.put_pending(job)
        second = math.floor(now)
        started = loops.run_main(second, is_full=True) + loops.run_backfill(second)
        return {job: sorted(row[0] for row in tables.stays.of(job)) for job in started}
