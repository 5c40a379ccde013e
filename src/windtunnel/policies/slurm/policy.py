"""Policy ``slurm``: a trace under slurmctld's two loops, limits and priorities.

slurmctld counts cores, memory and GPUs itself; what the run knows besides (failures, drains, power,
sleep) keeps nodes from it. Its clock has whole seconds: docs/systems/slurm.md.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from windtunnel.errors import PolicyError, SpecError
from windtunnel.policies.described import PerRun
from windtunnel.policies.slurm.site_of import check_nodes, read_site_folder, site_of_problem
from windtunnel.sim.contract import Policy, Preempt, Wake
from windtunnel.sim.slurm.asked import requests_of
from windtunnel.sim.slurm.controller import Controller
from windtunnel.sim.slurm.meters import reason_text
from windtunnel.sim.slurm.names import unused_site_names
from windtunnel.sim.slurm.tables import SlurmTables, not_modelled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.problem import Problem
    from windtunnel.site.slurm import SlurmSite

#: The last second that floats tell from the next one.
LAST_SECOND = 2**53


class Slurm(PerRun):
    """Slurm's main loop and backfill cycle, as its configuration says.

    Args:
        site: what its files say, as read.
        conf: a folder of them, or a ``slurm.conf``; None = one partition of all nodes, everything
            as by default.

    Raises:
        TraceError: a file is missing, or not understood.
    """

    name = "slurm"
    chooses_nodes = True

    def __init__(self, site: SlurmSite | None = None, *, conf: str | Path | None = None) -> None:
        if isinstance(site, str):
            raise SpecError("slurm", "a folder of Slurm's files is given as conf=FOLDER.")
        self.site = read_site_folder(conf) if conf is not None else site

    def for_run(self, problem: Problem) -> Policy:
        """Return slurmctld at work on these jobs.

        Raises:
            PolicyError: the cluster's nodes are not the site's.
        """
        site = self.site  # None: all nodes are one partition, whatever jobs name
        notes = [] if site is None else unused_site_names(site, problem.jobs.table)
        return SlurmRun(self.tables_of(problem), notes)

    def tables_of(self, problem: Problem) -> SlurmTables:
        """Return the site and the jobs as the loops take them.

        Raises:
            PolicyError: the cluster's nodes are not the site's, or its reservations have dates.
        """
        if problem.is_pool:
            raise PolicyError(self.label, "chooses nodes, and a pool has none; give them: 4x8")
        site = self.site or site_of_problem(problem)
        check_nodes(site, problem)
        if any(hold.is_dated for hold in site.reservations):
            message = "its reservations have dates, and a table of jobs has none"
            raise PolicyError(self.label, f"{message}: windtunnel.site.slurm_changes.site_at")
        return SlurmTables(site, requests_of(problem, site, has_cores=self.site is not None))


class SlurmRun(Policy):
    """slurmctld in one run.

    Args:
        tables: the site and the jobs.
        notes: on the names of both.
    """

    name = "slurm"

    def __init__(self, tables: SlurmTables, notes: list[str]) -> None:
        self.tables, self.controller = tables, Controller(tables)
        self._notes = notes
        self._total = sum(sum(node.gpus.values()) for node in tables.site.nodes)
        self._held = 0
        self._views: dict[int, JobView] = {}
        self._up = [True] * len(tables.site.nodes)
        self._put_back = 0
        self._again: set[int] = set()
        self.loses = any(map(any, tables.preempting.rules["rank"]))
        self.lets_wait = self.controller.minutes.may_run_out
        self._wake = math.inf
        #: Seconds to whose multiples the run delays decisions; 0 = it does not. Only then events
        #: may lie before a decision, and when jobs left is kept.
        self._delay = 0.0
        self._left: dict[int, float] = {}
        self._nodes = _nodes_by_job(tables)
        site = tables.site
        self.parameters = {
            "partitions": [part.name for part in site.partitions],
            "priority": "multifactor" if site.settings.priority.multifactor else "basic",
            "scheduler_parameters": dict(site.settings.scheduler),
            "enforce": sorted(site.settings.enforce),
        }

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override] # known after the run
        """What a reader of the numbers must know."""
        found = list(self._notes)
        if self.tables.preempting.suspends():
            found.append("Nobody is suspended: jobs that Slurm would suspend for others run on.")
        words = not_modelled(self.tables.site)
        if words:
            found.append(f"Of SchedulerParameters these decide nothing here: {', '.join(words)}.")
        if self._put_back:
            found.append(
                f"{self._put_back:,} starts of Slurm waited for power, or for nodes that slept."
            )
        return tuple(found)

    def refuses(self) -> dict[int, str]:
        """Return the jobs that Slurm would never start, and its reason."""
        found = dict(self.tables.never)
        for job in range(len(self.tables.requests)):
            if job not in found and not self.tables.loops.fits_alone(job):
                found[job] = "BadConstraints"
        return {job: f"Slurm never starts it: {reason}" for job, reason in found.items()}

    def node_sets_for(self, job: int) -> tuple[frozenset[int] | None, ...]:
        """Return the nodes of each of a job's partitions."""
        return self._nodes[job]

    def wait_reasons(self) -> dict[int, str]:
        """Return Slurm's last reason of each job that waited, by arrival number."""
        numbers = enumerate(self.tables.jobs.columns["reason"].tolist())
        return {job: reason_text(number) for job, number in numbers if number}

    def decides_every(self, interval: float) -> None:
        """Note that decisions are delayed: they then go by when things really happened."""
        self._delay = self.controller.every = interval

    @property
    def watches(self) -> bool:
        """Whether it hears who stops when."""
        return self._delay > 0

    def stopped(self, job: JobView, now: float) -> None:
        """Note when a job left its GPUs."""
        self._left[job.number] = now

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Preempt | Wake]:
        """Start whom the loops start, and ask to be woken for the next."""
        if now > LAST_SECOND:
            message = f"found a decision; Slurm counts whole seconds, up to {LAST_SECOND:,}."
            raise PolicyError("slurm", message, time=now)
        controller, finished = self.controller, cluster.finished
        arrived = self._look_at_jobs(now, finished, queue, cluster)
        self._look_at_nodes(now, cluster)
        if self._delay:
            # Its last decision was so long ago at least; what has happened since may be due.
            self._wake = controller.next_time(now - self._delay)
        if now >= self._wake:
            started = controller.act(math.floor(now), math.floor(self._wake))
            yield from self._preemptions(math.floor(now), {job.number for job in finished})
            self._start(started, cluster)
        for job in finished:
            self._gone(job, now)
        for job in arrived:
            self._join(job, now)
        self._wake = controller.next_time(now)
        if self._wake < math.inf:
            yield Wake(self._wake)

    def _look_at_jobs(
        self, now: float, finished: list[JobView], queue: Any, cluster: Any
    ) -> list[JobView]:
        """Let failures, and what lies before a delayed decision, have happened.

        Returns:
            Jobs that arrive at this very decision: they are seen after it.
        """
        for job in (*cluster.interrupted, *finished):
            if job.number in self.controller.running:
                self._held -= int(job.num_gpus)
        self._again.update(job.number for job in cluster.interrupted)
        arrived: list[JobView] = queue.arrived
        if self._delay:
            gone = (*cluster.interrupted, *finished)
            events = [(self._left.get(job.number, now), self._gone, job) for job in gone]
            events += [(self._came(job, now), self._join, job) for job in arrived]
            for when, happens, job in sorted(events, key=itemgetter(0)):
                if when < now:
                    happens(job, now)
            arrived = [job for job in arrived if self._came(job, now) >= now]
        for job in cluster.interrupted:
            self._gone(job, now)
        return arrived

    def _came(self, job: JobView, now: float) -> float:
        """Return when a job that arrived began to wait, as far as that can be told, s."""
        if job.number in self._left:
            return self._left[job.number]
        return max(job.submit_time, now - self._delay)

    def _join(self, job: JobView, now: float) -> None:
        """Let a job wait that has arrived, or was stopped by a failure."""
        self._views[job.number] = job
        came = self._came(job, now) if self._delay else now
        if job.number in self._again:  # its node failed: it is requeued
            self._again.discard(job.number)
            self.controller.requeue(job.number, came)
        else:
            self.controller.submit(job.number, came)

    def _gone(self, job: JobView, now: float) -> None:
        if job.number in self.controller.running:
            self.controller.end(job.number, self._left.get(job.number, now))
            self._views.pop(job.number, None)

    def _preemptions(self, now: int, over: set[int]) -> Iterator[Preempt]:
        """Stop whom the loops have stopped, but for those that ended in that very second."""
        for job in self.controller.stopped:
            if job in over:
                del self._views[job]
            else:
                yield self._preempt(job, now)

    def _preempt(self, job: int, now: int) -> Preempt:
        """Stop a job for another: it waits until it may begin again, or it is over."""
        view, again = self._views[job], self.controller.runs_again(job)
        self._held -= int(view.num_gpus)
        if again:
            self.controller.requeue(job, now + 1)
        else:
            del self._views[job]
        return Preempt(view, loses=True, ends=not again)

    def _start(self, started: list[int], cluster: Any) -> None:
        """Start jobs where the loops have put them; those that find no place wait on."""
        for job in started:
            where = [(node, gpus) for node, _, _, gpus in self.tables.stays.of(job) if gpus > 0]
            try:
                cluster.start(self._views[job], where or None)
                self._held += sum(gpus for _, gpus in where)
            except PolicyError:
                self.controller.put_back(job)
                self._put_back += 1

    def _look_at_nodes(self, now: float, cluster: Any) -> None:
        """Take nodes out that lack GPUs which no job of ours holds, and back in."""
        if round(cluster.free_gpus) == self._total - self._held and all(self._up):
            return
        mine = self.tables.nodes.gpus_free()
        for node, (there, own) in enumerate(zip(cluster.free_by_node, mine, strict=True)):
            is_up = there >= own
            if is_up != self._up[node]:
                self._up[node] = is_up
                self.controller.loops.set_up(node, is_up)
                # When that was before a delayed decision is not known: it counts as seen.
                self.controller.ask(now - 1 if self._delay else now)


def _nodes_by_job(tables: SlurmTables) -> list[tuple[frozenset[int] | None, ...]]:
    """Return the nodes of each of a job's partitions; None = all, or it has none."""
    names = [node.name for node in tables.site.nodes]
    known: dict[str, frozenset[int] | None] = {}
    found = []
    for parts in tables.partitions:
        for part in parts:
            if part.name not in known:
                nodes = frozenset(at for at, name in enumerate(names) if name in part.nodes)
                known[part.name] = nodes if 0 < len(nodes) < len(names) else None
        found.append(tuple(dict.fromkeys(known[part.name] for part in parts)) or (None,))
    return found
