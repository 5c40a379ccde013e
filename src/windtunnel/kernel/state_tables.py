"""`StateTables`: what a run's tables say, as sources and policies in Python ask."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.free import Free
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.state import STATE_FINISHED, STATE_RUNNING, STATE_WAITING, State


@cython.final
@cython.cclass
class StateTables:
    """Looks into a run's state, and changes nothing.

    Args:
        state: whose tables.

    Attributes:
        finished: so many jobs have finished before the first that has not.
    """

    state: State
    finished: cython.int

    def __init__(self, state: State) -> None:
        self.state = state
        self.finished = 0

    def secured(self, job: int) -> float:
        """Return a running job's work left if it failed now, s at full speed."""
        left: cython.double = self.state.work_left(job)
        done: cython.double = (
            self.state.checkpoints.now_done
            if self.state.writes
            else self.state.stay_work[job] - left
        )
        return self.state.stay_work[job] - self.state.kept(job, done)

    def columns(self) -> dict:
        """Return the arrays of the jobs and of the log, as they are, by name."""
        stays = self.state.stays.count
        return {
            "status": numpy.asarray(self.state.status),
            "left": numpy.asarray(self.state.left),
            "run_before": numpy.asarray(self.state.run_before),
            "preemptions": numpy.asarray(self.state.preemptions),
            "base_rate": numpy.asarray(self.state.base_rate),
            "useful": numpy.asarray(self.state.useful),
            "overhead": numpy.asarray(self.state.overhead),
            "writing": numpy.asarray(self.state.writing_time),
            "lost": numpy.asarray(self.state.lost),
            "restarts": numpy.asarray(self.state.restarts),
            "slowed": numpy.asarray(self.state.slowed),
            "stay_job": numpy.asarray(self.state.stays.job)[:stays],
            "stay_start": numpy.asarray(self.state.stays.start)[:stays],
            "stay_end": numpy.asarray(self.state.stays.end)[:stays],
            "stay_first": numpy.asarray(self.state.stays.first)[: stays + 1],
            "nodes": numpy.asarray(self.state.stays.pairs.node)[: self.state.stays.pairs.count],
            "grants": numpy.asarray(self.state.stays.pairs.grant)[: self.state.stays.pairs.count],
        }

    def recorded(self) -> tuple:
        """Return what was recorded of decisions; see `Verdicts.columns`."""
        return self.state.verdicts.columns()

    def waiting_jobs(self) -> list:
        """Return the jobs that wait; of runs whose nodes sleep, in the order in which they came."""
        waiting = self.active_jobs(False)
        if self.state.counts_nodes:
            waiting = waiting[numpy.argsort(numpy.asarray(self.state.came)[waiting])]
        return waiting.tolist()

    def stay_number(self, job: int) -> int:
        """Return the number of a running job's stay, -1 = it does not run."""
        return self.state.stay[job]

    def sharing(self, job: int) -> list:
        """Return the jobs that share a running job's place, itself included, in order of coming."""
        if not self.state.has_mates or self.state.mate[job] < 0:
            return [job]
        other = self.state.mate[job]
        return [job, other] if self.state.stay[job] < self.state.stay[other] else [other, job]

    def time_to_end(self, job: int) -> float:
        """Return how long a running job still takes as things are, s."""
        return self.state.end_of(job) - self.state.now

    def start_cost(self, job: int) -> float:
        """Return the seconds that a waiting job pays as it starts."""
        return self.state.start_overhead[job] if self.state.resumes else 0.0

    def rate(self, job: int) -> float:
        """Return the work that a running job does a second."""
        return self.state.rate[job] if self.state.is_segmented else 1.0

    def levels(self) -> tuple:
        """Return (stay, time, level) of all power limits that running jobs were given."""
        many = self.state.stays.num_levels
        return (
            numpy.asarray(self.state.stays.level_stay)[:many],
            numpy.asarray(self.state.stays.level_time)[:many],
            numpy.asarray(self.state.stays.level)[:many],
        )

    def power_state(self) -> tuple:
        """Return (budget, sum of floors), nanowatts."""
        return self.state.budget.now, self.state.power.floor_sum

    def floor_of(self, job: int) -> int:
        """Return a running job's floor, nanowatts; see `PowerLevels`."""
        return self.state.power.floor[job]

    def floor_alone(self, job: int) -> int:
        """Return the least that a running job would draw if it had its GPUs alone, nanowatts."""
        return self.state.power.floor_alone(job)

    def affords(self, job: int, where: list) -> bool:
        """Return whether a running job has the power and the quota to go on elsewhere.

        What it draws and uses where it runs is given back.
        """
        pairs: Pairs = Pairs(len(where))
        allowed: cython.bint = True
        for node, grant in where:
            pairs.add(node, grant)
        if self.state.has_quotas:
            self.state.quotas.lift(job)
            allowed = self.state.allows(self.state.free, job, self.state.held_kind[job], pairs)
            self.state.quotas.put(job)
        if not self.state.has_power or not allowed:
            return allowed
        floor: cython.longlong = self.state.power.choices.floor_of(job, pairs, 0, pairs.count)
        return floor <= self.state.spare() + self.state.power.spared(job)

    def kind_of(self, job: int) -> int:
        """Return as what a running job was taken."""
        return self.state.held_kind[job]

    def draw_for(self, free: Free) -> None:
        """Let what is random in a free state go by the stays begun so far."""
        free.draws = self.state.stays.count

    def active_jobs(self, running: bool) -> numpy.ndarray:
        """Return the jobs that wait, and those that run if wanted, ascending: Int32 array."""
        first: cython.int = self._first_unfinished()
        arrived = numpy.searchsorted(numpy.asarray(self.state.submit), self.state.now, "right")
        status = numpy.asarray(self.state.status)[first:arrived]
        active = status == STATE_WAITING
        if running:
            active |= status == STATE_RUNNING
        return numpy.flatnonzero(active).astype(numpy.int32) + first

    @compiled
    def _first_unfinished(self) -> cython.int:
        """Return the first job that has not finished; all before it have, and never run again."""
        count: cython.int = self.state.num_jobs
        while self.finished < count and self.state.status[self.finished] == STATE_FINISHED:
            self.finished += 1
        return self.finished

    def running(self) -> list:
        """Return the running jobs in order of start."""
        found = []
        job = self.state.first_running
        while job >= 0:
            found.append(job)
            job = self.state.following[job]
        return found

    def running_on(self, nodes: set) -> list:
        """Return the jobs that run on any of these nodes, in order of start."""
        places = numpy.array(list(nodes), dtype=numpy.int32)
        wanted: cython.int[::1] = numpy.zeros(int(places.max(initial=-1)) + 1, dtype=numpy.int32)
        numpy.asarray(wanted)[places] = 1
        found = []
        job: cython.int = self.state.first_running
        while job >= 0:
            if self._stands_on(job, wanted):
                found.append(job)
            job = self.state.following[job]
        return found

    @compiled
    def _stands_on(self, job: cython.int, wanted: cython.int[::1]) -> cython.bint:
        """Return whether a running job is on a node that is marked."""
        stay: cython.longlong = self.state.stay[job]
        for pair in range(self.state.stays.first[stay], self.state.stays.first[stay + 1]):
            node = self.state.stays.pairs.node[pair]
            if node < wanted.shape[0] and wanted[node] != 0:
                return True
        return False

    def where(self, job: int) -> list:
        """Return the (node, grant) pairs of a running job."""
        stay = self.state.stay[job]
        pairs = range(self.state.stays.first[stay], self.state.stays.first[stay + 1])
        return [
            (self.state.stays.pairs.node[pair], self.state.stays.pairs.grant[pair])
            for pair in pairs
        ]

    def attained(self, job: int) -> tuple:
        """Return (seconds on GPUs so far, seconds of work left) of an active job."""
        if self.state.status[job] == STATE_RUNNING:
            return self.state.run_time(job), self.state.work_left(job)
        return self.state.run_time(job), self.state.left[job]

    def work_left(self) -> dict:
        """Return the work left of each active job now, s, by arrival number."""
        return {job: self.attained(job)[1] for job in self.active_jobs(True).tolist()}

    def saved_last(self, job: int) -> bool:
        """Return whether any work of a job's last stay was saved."""
        return self.state.last_kept[job] > 0.0

    @property
    def num_stays(self) -> int:
        """Stays that have begun so far."""
        return self.state.stays.count

    @property
    def counts(self) -> tuple:
        """Jobs that run, that wait, and that are over."""
        return self.state.num_running, self.state.num_waiting, self.state.num_over
