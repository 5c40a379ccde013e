"""`Deciding`: asks a policy that decides all by itself, and carries out what it yields.

Each decision is carried out before the next is asked for. What is refused, and what happens rarely
(alarms, sentences of errors), is the driver's (`windtunnel.sim.deciding`).
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.asked import Asked
from windtunnel.kernel.free import Free
from windtunnel.kernel.job_views import JobView, JobViews
from windtunnel.kernel.lines import Lines
from windtunnel.kernel.places import Search
from windtunnel.kernel.state import (
    STATE_FAILED,
    STATE_FINISHED,
    STATE_RUNNING,
    STATE_WAITING,
    State,
)

#: Asks in a row in which nothing runs, arrives or is started, after which nobody ever will be.
DECIDING_MAX_IDLE = cython.declare(cython.int, 10_000)


@cython.cclass
class Deciding:
    """Asks a policy and applies what it yields.

    Args:
        state: the run.
        asked: what has happened.
        search: where jobs would go.
        driver: `windtunnel.sim.deciding.Driver`.

    Attributes:
        is_elastic: jobs run in options (`windtunnel.sim.elastic`).
        starts: the policy has started jobs by ``cluster.start``, or tried to.
        idle: asks in a row in which nothing happened and nothing runs.
        has_rates: somebody has run at another rate than 1.
        shared: stays on the GPUs of others: pairs of its number and the other's.
    """

    state: State
    lines: Lines
    asked: Asked
    views: JobViews
    search: Search
    driver: object
    policy: object
    queue: object
    cluster: object
    is_elastic: cython.bint
    starts: cython.bint
    has_rates: cython.bint
    shared: list
    idle: cython.int
    changes: cython.longlong
    options: list
    stay_options: list
    _start: object
    _preempt: object

    def __init__(self, state: State, asked: Asked, search: Search, driver: object) -> None:
        self.state, self.asked, self.search = state, asked, search
        self.lines, self.views = state.lines, asked.views
        self.driver, self.policy = driver, driver.policy
        self.is_elastic = driver.works is not None
        self.options = [None] * state.num_jobs if self.is_elastic else []
        self.stay_options = []
        self._start, self._preempt = driver.kinds
        self.starts = self.has_rates = False
        self.shared = []
        self.idle = 0
        self.changes = -1

    def shows(self, queue: object, cluster: object) -> None:
        """Say what the policy is shown."""
        self.queue, self.cluster = queue, cluster

    # Asking.

    def decide(self) -> None:
        """Ask the policy and carry out its decisions.

        Raises:
            PolicyError: a decision that is impossible; names the instant and the job.
        """
        self._ask(self.policy.decide)
        self._forget()

    def fill(self) -> None:
        """Ask the policy for its decisions between two rounds, and carry them out.

        What has happened stays to be seen at the next round.

        Raises:
            PolicyError: a decision that is impossible; names the instant and the job.
        """
        self._ask(self.policy.fill)

    def _ask(self, ask: object) -> None:
        self.asked.look_again()
        self.search.forget()
        self.search.admission.begin()
        if self.state.tells:
            self.views.tell(self.policy)
        self._refuse_idling()
        decisions = ask(self.state.now, self.queue, self.cluster)
        if decisions is None and (self.starts or self.lines.count == 0):
            decisions = ()
        try:
            decisions = iter(decisions)
        except TypeError:
            raise self.driver.no_decisions(decisions) from None
        for decision in decisions:
            if isinstance(decision, self._start):
                self.start(decision.job, decision.where, decision.rate, decision.beside)
            elif isinstance(decision, self._preempt):
                self.preempt(decision.job, decision.loses, decision.ends)
            else:
                self.driver.carry_out(decision)

    @cython.cfunc
    def _refuse_idling(self) -> cython.void:
        """Count asks in a row at which nothing runs or has happened; the driver stops that."""
        happened: cython.bint = (
            self.state.num_running > 0
            or self.asked.arrived.count > 0
            or self.asked.over.count > 0
            or self.changes != self.search.free.changes
        )
        self.changes = self.search.free.changes
        self.idle = 0 if happened else self.idle + 1
        if self.idle > DECIDING_MAX_IDLE:
            self.driver.idles(self.lines.count)

    @cython.cfunc
    def _forget(self) -> cython.void:
        at: cython.longlong
        job: cython.int
        for at in range(self.asked.over.count):
            job = self.asked.over.job[at]
            if self.state.status[job] == STATE_FINISHED or self.state.status[job] == STATE_FAILED:
                self.views.known[job] = None
        self.asked.forget()

    # Which job.

    @cython.cfunc
    @cython.exceptval(-1)
    def number(self, view: object) -> cython.int:
        """Return the arrival number of a job the policy names.

        Raises:
            PolicyError: the job is not active.
        """
        if isinstance(view, JobView):
            mine: JobView = view
            if mine._state is self.state:
                status: cython.int = self.state.status[mine.number]
                if status == STATE_RUNNING or status == STATE_WAITING:
                    return mine.number
        message = "names a job that is neither waiting nor running"
        raise self.driver.impossible(message, view)

    def active(self, view: object) -> int:
        """Return the arrival number of a job the policy names; see `number`."""
        return self.number(view)

    def running(self, view: object, does: str) -> int:
        """Return the number of a job that must run."""
        job: cython.int = self.number(view)
        if self.state.status[job] != STATE_RUNNING:
            raise self.driver.impossible(f"{does} a job that does not run", view)
        return job

    # Decisions.

    def start(
        self, view: object, where: object = None, rate: object = 1.0, beside: object = None
    ) -> None:
        """Start a waiting job."""
        job: cython.int = self.number(view)
        if self.state.status[job] == STATE_RUNNING:
            raise self.driver.impossible("starts a job that already runs", view)
        if rate != 1.0:
            rate = self.driver.rate(rate, view)
        if beside is not None:
            self._start_beside(job, view, where, rate, beside)
            return
        kind: cython.int = self.state.kind[job]
        if self.is_elastic:
            self.options[job] = self.driver.works[job].requested
            if where is None and self.driver.differs_by_node:
                where = self.cluster.fit(view)
        if where is None:
            if not self.search.looks_for(job):
                raise self.driver.unfit("starts", view, kind)
        elif not self.search.is_offered(job, where):
            self.choose("starts", view, where, kind, self.search.free)
            self.search.take_given()
        self.begin(job, self.search.kind, rate)

    def start_if_it_fits(self, view: object, where: object, rate: object) -> bool:
        """Start a waiting job where it fits; return whether it does."""
        self.starts = True
        if where is None:
            job: cython.int = self.number(view)
            if self.state.status[job] != STATE_RUNNING:
                if not self.search.looks_for(job):
                    return False
                if rate == 1.0 and not self.is_elastic:
                    self.begin(job, self.search.kind, 1.0)
                    return True
        self.start(view, where, rate, None)
        return True

    @cython.cfunc
    def begin(self, job: cython.int, kind: cython.int, rate: cython.double) -> cython.void:
        """Let a waiting job begin where ``free.place`` says."""
        self._set_rate(job, rate)
        self.lines.remove(job)
        self.state.begin(job, kind)
        self._changed(job)

    @cython.cfunc
    def _set_rate(self, job: cython.int, rate: cython.double) -> cython.void:
        self.state.base_rate[job] = rate
        if rate != 1.0:
            self.has_rates = True

    @cython.cfunc
    def _changed(self, job: cython.int) -> cython.void:
        """Look after what follows from a change."""
        self.search.forget()
        if self.is_elastic and self.state.status[job] == STATE_RUNNING:
            paid = self.state.paid[job] if self.state.resumes else 0.0
            self.stay_options.append((self.options[job], paid))
        if self.state.tells:
            self.views.tell(self.policy)

    def went_on(self, job: cython.int) -> None:
        """Look after what follows from a failed node that another takes the place of."""
        self._changed(job)

    @cython.cfunc
    def _start_beside(
        self, job: cython.int, view: object, where: object, rate: cython.double, beside: object
    ) -> cython.void:
        other: cython.int = self.running(beside, "starts a job beside")
        self.driver.check_beside(view, job, other, where, self.state.mate[other] >= 0)
        self._set_rate(job, rate)
        self.lines.remove(job)
        self.state.begin_beside(job, other)
        self.shared.append((self.state.stay[job], self.state.stay[other]))
        self._changed(job)

    def allows_beside(self, job: cython.int, other: cython.int) -> bool:
        """Return whether a job's quota suffices for it where another runs."""
        stay: cython.int = self.state.stay[other]
        self.search.given.count = 0
        self.search.given.extend(
            self.state.stays.pairs, self.state.stays.first[stay], self.state.stays.last(stay)
        )
        return self.state.allows(
            self.search.free, job, self.state.held_kind[other], self.search.given
        )

    def affords_beside(self, job: cython.int, other: cython.int) -> bool:
        """Return whether there is power for a job where another runs."""
        if not self.state.has_power:
            return True
        stay: cython.int = self.state.stay[other]
        floor: cython.longlong = self.state.power.choices.floor_of(
            job, self.state.stays.pairs, self.state.stays.first[stay], self.state.stays.last(stay)
        )
        more: cython.longlong = floor - self.state.power.floor[other]
        return (more if more > 0 else 0) <= self.state.spare()

    def preempt(self, view: object, loses: bool, ends: bool) -> None:
        """Stop a running job; it waits again, or that was its end."""
        job: cython.int = self.running(view, "preempts")
        if loses:
            self.driver.check_loses(view)
        self.state.preempt(job, loses)
        if ends:
            self.state.fail(job)
        else:
            self.lines.add(job)
            self.asked.note_wait(job)
        self._changed(job)

    def rerate(self, view: object, rate: float) -> None:
        """Let a running job get on at another rate, once the instant is over."""
        job: cython.int = self.running(view, "rerates")
        self._set_rate(job, rate)
        self.state.set_base(job, rate)

    def move(self, view: object, where: object, rate: object) -> None:
        """Let a running job go on elsewhere from now on."""
        job: cython.int = self.running(view, "moves")
        base: cython.double = self.state.base_rate[job]
        if rate is not None:
            base = self.driver.rate(rate, view)
        self._go_on("moves", view, job, where, self.state.kind[job], base, None)

    def resize(self, view: object, option: object, kind: int, rate: float, where: object) -> None:
        """Let an elastic job run in an option, waiting or running."""
        job: cython.int = self.number(view)
        if self.state.status[job] == STATE_RUNNING:
            self._go_on("runs", view, job, where, kind, rate, option)
            return
        if where is None:
            if not self.search.fit_as(self.search.free, job, kind):
                raise self.driver.unfit("runs", view, kind)
        else:
            self.choose("runs", view, where, kind, self.search.free)
            self.search.take_given()
        self.options[job] = option
        self.begin(job, kind, rate)

    def _go_on(
        self,
        does: str,
        view: object,
        job: cython.int,
        where: object,
        kind: cython.int,
        rate: cython.double,
        option: object,
    ) -> None:
        """Stop a running job and let it begin another stay at once; that costs it its resuming."""
        free: Free = self.search.without([job])
        if where is None:
            if not self.search.fit_as(free, job, kind):
                raise self.driver.unfit(does, view, kind)
            self.search.given.count = 0
            self.search.given.extend(free.place, 0, free.place.count)
        else:
            self.choose(does, view, where, kind, free)
        if option is not None:
            self.options[job] = option
        self.state.stop(job, False)
        if self.state.resumes:
            self.state.start_overhead[job] = self.state.resume_cost[job]
        self.state.wait(job)
        if self.state.tells:
            self.views.tell(self.policy)
        self.search.take_given()
        self._set_rate(job, rate)
        self.state.begin(job, kind)
        self._changed(job)

    # A policy's own choice of a place.

    def choose(self, does: str, view: object, where: object, kind: cython.int, free: Free) -> None:
        """Take a policy's own choice into ``search.given``.

        Raises:
            PolicyError: it is not free, or no place for the job.
        """
        job: cython.int = self.number(view)
        if not self.has(job, where, kind, free):
            raise self.driver.misfit(does, view, where, kind, free)

    def draw_for(self, free: Free) -> None:
        """Let what is random in a free state go by the stays begun so far; nothing is offered."""
        free.draws = self.state.stays.count
        self.search.forget()

    def has(self, job: cython.int, where: object, kind: cython.int, free: Free) -> bool:
        """Return whether a policy's own choice is free for a job; ``search.given`` has it then."""
        self.search.given.count = 0
        try:
            for node, grant in self.driver.in_grants(where, kind, free):
                self.search.given.add(node, grant)
        except (TypeError, ValueError, OverflowError):
            return False
        return self.search.given_fits(free, job, kind)

    def fits_without(self, job: cython.int, where: object, kind: cython.int) -> bool:
        """Return whether a policy's own choice is free for a job, what it holds included."""
        self.search.forget()
        if self.state.status[job] == STATE_RUNNING:
            return self.has(job, where, kind, self.search.without([job]))
        return self.has(job, where, kind, self.search.free)

    def option_of(self, job: cython.int) -> object:
        """Return the option that an elastic job was launched in last."""
        return self.options[job]

    # What the run has come to.

    @property
    def now(self) -> float:
        """The instant, s."""
        return self.state.now

    @property
    def stays(self) -> int:
        """Stays begun so far; seeds what is random in the next placement."""
        return self.state.stays.count

    @property
    def colocated(self) -> list:
        """Stays on the GPUs of others: pairs of its number and the other's, in order of start."""
        return self.shared

    @property
    def rates(self) -> bool:
        """Whether somebody has run at another rate than 1."""
        return bool(self.has_rates)

    @property
    def is_idle(self) -> bool:
        """Whether the policy has been asked too often in a row while nothing happened or ran."""
        return bool(self.idle > DECIDING_MAX_IDLE)

    def ways_of_stays(self) -> list:
        """Return of each stay of an elastic run the option, and what its launch cost, s."""
        return self.stay_options

    def work_left(self) -> numpy.ndarray:
        """Return the work that each job has left, s at full speed, Float array (m,)."""
        jobs = numpy.arange(self.state.num_jobs, dtype=numpy.int32)
        return self.views.columns(jobs, "remaining")
