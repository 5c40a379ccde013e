"""Tier-3 policies: they are asked, and what they decide is carried out, one decision at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.parts import free_units
from windtunnel.sim.contract import Preempt, Start
from windtunnel.sim.decisions import Decisions
from windtunnel.sim.elastic.headroom import Headroom
from windtunnel.users_code import note_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.reference.state import State
    from windtunnel.sim.run_rules import Rules

#: Decisions in a row in which nothing runs, arrives or is started.
MAX_IDLE_DECISIONS = 10_000


class Deciding(Decisions):
    """Asks a tier-3 policy and carries out what it yields.

    Attributes:
        queue, cluster: what the policy is shown, set by who makes this.
        arrived: jobs that began to wait since the last decision.
        over: jobs that are over, or were taken out of the queue, since then.
        stopped: jobs that were stopped since then.
        moved: running jobs of which another node took a failed one's place since then.

    Raises (from `decide`):
        PolicyError: a decision that is impossible; names the instant and the job.
    """

    queue: Any

    def __init__(self, state: State, rules: Rules) -> None:
        super().__init__(state.policy, state.problem, rules)
        self.state: State = state
        self.deciding = self
        #: The policy starts jobs by ``cluster.start``, or has tried to.
        self._starts = False
        self.arrived: list[int] = []
        self.over: list[int] = []
        self.stopped: list[int] = []
        self.moved: list[int] = []
        self._idle, self._changes = 0, 0

    # What happens.

    def came(self, job: int, *, was_stopped: bool = False) -> None:
        """Note that a job waits."""
        self.arrived.append(job)
        self.stopped += [job] if was_stopped else []

    def planned_starts(self) -> list[tuple[float, list[int]]]:
        """Return nothing: what the policy plans, nobody knows."""
        return []

    def giving_way(self, kind: int) -> tuple[int, list[int]]:  # noqa: ARG002 - nobody knows
        """Return nobody."""
        return -1, []

    def gone(self, job: int) -> None:
        """Note that a job is over, or out of the queue."""
        self.over.append(job)

    def moves(self, job: int) -> None:
        """Note that a job goes on with other nodes."""
        self.moved.append(job)

    def rekey(self) -> None:
        """Do nothing: a tier-3 policy keeps no keys here."""

    def decide(self) -> None:
        """Ask the policy, and carry out its decisions.

        What has happened between two rounds stays to be seen at the next.
        """
        fills = self.policy.fills and not self.state.at_round
        try:
            self._ask(self.policy.fill if fills else self.policy.decide)
        except Exception as error:
            note_instant(error, self.policy.label, self.now)
            raise
        if fills:
            return
        for notes in (self.arrived, self.over, self.stopped, self.moved):
            notes.clear()

    def _ask(self, ask: Callable[[float, Any, Any], Any]) -> None:
        self.forget_alarms(self.now)
        self._refuse_idling()
        for job in self.state.running:
            self.state.view(job)
        decisions: Any = ask(self.now, self.queue, self.cluster)
        if decisions is None and (self._starts or not self.state.waiting):
            decisions = ()
        if not isinstance(decisions, Iterable):
            raise self.no_decisions(decisions)
        for decision in decisions:
            if isinstance(decision, Start):
                self.start(decision.job, decision.where, decision.rate, decision.beside)
            elif isinstance(decision, Preempt):
                job = self.running(decision.job, "preempts")
                if decision.loses:
                    self.check_loses(decision.job)
                if self.state.recorder is not None:
                    self.state.recorder.preempted(job)
                self.state.preempt(job, loses=decision.loses, ends=decision.ends)
            else:
                self.carry_out(decision)

    def _refuse_idling(self) -> None:
        """Count decisions in a row at which nothing runs or has happened; stop that in the end."""
        changed, self._changes = self.state.changes != self._changes, self.state.changes
        happened = self.state.running or self.arrived or self.over or changed
        self._idle = 0 if happened else self._idle + 1
        if self.is_idle:
            self.idles(len(self.state.waiting))

    @property
    def is_idle(self) -> bool:
        """Whether the policy has been asked too often in a row while nothing happened or ran."""
        return self._idle > MAX_IDLE_DECISIONS

    @property
    def now(self) -> float:
        """The instant, s."""
        return self.state.now

    # Which job.

    def active(self, view: JobView) -> int:
        """Return the arrival number of a job the policy names.

        Raises:
            PolicyError: the job is not active.
        """
        number, state = getattr(view, "number", -1), self.state
        is_active = number in state.running or number in state.waiting
        if not is_active or state.view(number) is not view:
            raise self.impossible("names a job that is neither waiting nor running", view)
        return number

    def running(self, view: JobView, does: str) -> int:
        """Return the number of a job that must run."""
        job = self.active(view)
        if not view.running:
            raise self.impossible(f"{does} a job that does not run", view)
        return job

    # Decisions.

    def start(self, view: JobView, where: Any, rate: Any, beside: JobView | None = None) -> None:
        """Start a waiting job."""
        job, state = self.active(view), self.state
        if view.running:
            raise self.impossible("starts a job that already runs", view)
        rate = self.rate(rate, view)
        if beside is None:
            if where is None and self.works is not None and self.differs_by_node:
                where = self.cluster.fit(view)
            state.begin(job, self._place("starts", job, where), rate=rate)
            return
        other = self.running(beside, "starts a job beside")
        shares = len(state.running[other].place.jobs) > 1
        self.check_beside(view, job, other, where, shares)
        state.begin(job, state.where(other), rate=rate, beside=other)

    def start_if_it_fits(self, view: JobView, where: Any, rate: Any) -> bool:
        """Start a waiting job where it fits; return whether it does."""
        self._starts = True
        job = self.active(view)
        if where is None and not view.running and self.state.fit(job) is None:
            return False
        self.start(view, where, rate)
        return True

    def rerate(self, view: JobView, rate: float) -> None:
        """Let a running job get on at another rate, once the instant is over."""
        self.state.set_base(self.running(view, "rerates"), rate)

    def move(self, view: JobView, where: Any, rate: Any) -> None:
        """Let a running job go on elsewhere from now on."""
        job = self.running(view, "moves")
        base = self.state.running[job].base if rate is None else self.rate(rate, view)
        self.state.move(job, self._place("moves", job, where), rate=base)

    def resize(self, view: JobView, option: Any, kind: Any, rate: float, where: Any) -> None:
        """Let an elastic job run in an option, waiting or running."""
        job = self.active(view)
        place = self._place("runs", job, where, kind)
        change = self.state.move if view.running else self.state.begin
        change(job, place, rate=rate, option=option)

    def stop(self) -> None:
        """End the run once the policy has decided at this instant."""
        self.state.is_stopped = True

    # Where.

    def _place(self, does: str, job: int, where: Any, demand: Any = None) -> Where:
        """Return where a job goes, what it holds counting as free: where the policy says, or else.

        Raises:
            PolicyError: it does not fit there.
        """
        state, view, own = self.state, self.state.view(job), demand or self.state.demand[job]
        if where is not None:
            chosen = self._own_choice(job, where, own)
            if chosen is None:
                free = self.opened(state.free_without([job]), job)
                raise self.no_such_place(does, view, where, own, free_units(free))
            return chosen
        if job in state.waiting and self.works is None:
            found = state.fit(job)
        else:
            found = self.fit_without(job, own, [job])
        if found is None:
            raise self.no_place(does, view, own, free_units(state.free))
        return found

    def fit_without(self, job: int, demand: Any, jobs: Sequence[int]) -> Where | None:
        """Return where a job would go with a demand if some jobs were gone, or None."""
        where = self.state.put(self.opened(self.state.free_without(jobs), job), job, demand)
        return where if where is not None and self.state.affords(job, where, jobs) else None

    def fits_without(self, job: int, where: Any, demand: Any) -> bool:
        """Return whether a policy's own choice is free for a job, what it holds included."""
        return self._own_choice(job, where, demand) is not None

    def _own_choice(self, job: int, where: Any, demand: Any) -> Where | None:
        """Return a policy's own choice in grants, None if it is not free for a job."""
        free = self.opened(self.state.free_without([job]), job)
        try:
            found = self.in_grants(where, demand, free)
        except (TypeError, ValueError):
            return None
        fits = self.state.has(free, job, found, demand)
        return found if fits and self.state.affords(job, found, [job]) else None

    def grants_on(
        self, free: Any, kind: Any, node: int, tasks: int, first: int
    ) -> Sequence[int] | None:
        """Return what so many tasks get on a node with devices, None if they do not fit there."""
        return self.state.grants_on(free, kind, node, tasks, first)

    def affords_beside(self, job: int, other: int) -> bool:
        """Return whether there is power for a job where another runs."""
        state, place = self.state, self.state.running[other].place
        more = state.draw(job, place.where) - state.draw_of(place)
        return state.watts is None or max(more, 0) <= state.spare

    def allows_beside(self, job: int, other: int) -> bool:
        """Return whether a job's quota suffices for it where another runs."""
        quotas = self.state.quotas
        return quotas is None or quotas.allows_on(job, self.state.where(other))

    # Elastic runs.

    def option_of(self, job: int) -> Any:
        """Return the option that a running job was launched in."""
        return self.state.running[job].place.demand

    def closed_to(self, job: int) -> set[int]:
        """Return the nodes on which a job may not start, though others may run there."""
        groups, free = self.groups_of(job), self.state.free
        return {n for n, held in free.withheld.items() if any(g not in groups for g in held)}

    def headroom(self) -> Headroom | None:
        """Return what admission leaves besides who runs now; None = it does not limit the run."""
        state = self.state
        if state.quotas is None and state.watts is None:
            return None
        room = Headroom(state.quotas, state.watts, state.spare).copy()
        room.floors, room.running = state.floors, set(state.running)
        if state.watts is not None:
            pairs = [place for place in state.places if len(place.jobs) > 1]
            room.mates = {
                job: (other, state.draw(other, place.where))
                for place in pairs
                for job, other in (place.jobs, place.jobs[::-1])
            }
        return room

    def free_shares(self) -> Any:
        """Return a copy of what is free on each node, and of what admission leaves besides."""
        free: Any = self.state.free.copy()
        free.headroom = self.headroom()
        return free

    # What it has come to.

    @property
    def stays(self) -> int:
        """Stays begun so far; seeds what is random in the next placement."""
        return len(self.state.stays)

    @property
    def colocated(self) -> list[tuple[int, int]]:
        """Stays on the GPUs of others: pairs of its number and the first one's there."""
        first: dict[int, int] = {}
        stays = self.state.stays
        pairs = [(stay.number, first.setdefault(id(stay.place), stay.number)) for stay in stays]
        return [(stay, other) for stay, other in pairs if stay != other]

    def ways_of_stays(self) -> list[tuple[Any, float]]:
        """Return of each stay of an elastic run the option, and what its launch cost, s."""
        return [(stay.place.demand, stay.overhead) for stay in self.state.stays]

    def work_left(self) -> list[float]:
        """Return the work that each job has left."""
        return self.state.left
