"""`PlaceSearch`: where a job would go, as far as what is free to it, power and quotas let it."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.free import NOBODY
from windtunnel.cluster.parts import reserved_first
from windtunnel.sim.elastic.nodes import FreeShares
from windtunnel.sim.power.watts import Watts
from windtunnel.sim.quota_books import QuotaBooks
from windtunnel.site.scheduler import BACKFILLING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.holds import Hold
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.reference.progress import Stay
    from windtunnel.sim.run_rules import Rules


class PlaceSearch:
    """The free state of a run, reservations, power and quotas; `State` is one.

    Attributes:
        plan: outages, checkpoints and reservations; None = none.
        watts: what jobs draw, under a power cap; None = there is none.
        works: what each job of an elastic run is; None = it is none.
        quotas: who may use how much, where quotas limit any policy; None = they do not.
        plans: the rule plans with estimates: nobody starts where a planned hold comes before.
        demand: what each job asks for; an elastic one, the option that its user asked for.
        access: the reservations that each job may use.
        class_of: jobs of one class can be given the same places: what one is refused, all are.
        holds: capacity that is taken away at times that are given.
        planned: holds that are known in advance: (time, 1 begins or 0 ends, index of the hold).
        happened: up to when what was planned has happened, s.
        sleeping: nodes that sleep, or are being woken.
    """

    stays: list[Stay]

    def __init__(
        self, problem: Problem, placement: Placement, policy: Policy, rules: Rules
    ) -> None:
        self.problem, self.placement, self.plan = problem, placement, rules.disruptions
        self.plans = rules.queueing in BACKFILLING and policy.tier < 3  # noqa: PLR2004 - the tier's name
        cap = None if rules.power is None else rules.power.cap
        elastic, plan = rules.elastic, self.plan
        self.watts = None if cap is None else Watts(problem, cap, fixed=elastic is None)
        self.works = None if elastic is None else elastic.works
        self.free: Any = problem.free_state()
        self.demand: list[Any] = [problem.demands[kind] for kind in problem.demand_of.tolist()]
        self.gpus: list[int] = problem.gpus.tolist()
        self.access = [()] * len(self.gpus) if plan is None else plan.access
        asked: Any = [None] * len(self.gpus)
        if elastic is not None:
            scores = None if elastic.scores is None else elastic.scores.copy()
            sizes = problem.sizes.tolist()
            self.free = FreeShares(sizes, elastic.cores, scores, elastic.domains)
            self.demand = [work.requested for work in elastic.works]
            asked = [(option.shape, option.num_cpus, option.nodes) for option in self.demand]
        kinds = [0] * len(self.gpus) if self.watts is None else self.watts.kind_of
        self.quotas: QuotaBooks | None = None
        claims: Any = [None] * len(self.gpus)
        if rules.quotas is not None:
            self.quotas = QuotaBooks(rules.quotas, problem, resizes=elastic is not None)
            claims = zip(self.quotas.queue, self.quotas.amount, strict=True)
        numbers: dict[Any, int] = {}
        what = zip(problem.demand_of.tolist(), self.access, kinds, asked, claims, strict=True)
        self.class_of = [numbers.setdefault(key, len(numbers)) for key in what]
        self.holds: tuple[Hold, ...] = () if plan is None else plan.holds
        self.planned: list[tuple[float, int, int]] = [] if plan is None else plan.changes()
        self.happened = -math.inf if plan is None else math.nextafter(plan.first, -math.inf)
        self.sleeping: set[int] = set()

    def search(
        self, job: int, free: Any, at: float, spare: int, *, is_open: bool = False
    ) -> tuple[Where | None, bool]:
        """Return where a job would go, and whether power alone is lacking.

        Under quotas by GPU type it is tried on one type after the other of which it has the quota.
        Where the placement's choice draws too much, it is asked again among the GPU types on which
        the whole job would not.

        ``at``: when it would start, s; ``spare``: nanowatts that it may add to the draw;
        ``is_open``: what is free is what the job may use.
        """
        shown = free if is_open else self._seen(free, job, at)
        demands, lacks_power = [self.demand[job]], False
        if self.quotas is not None:
            demands = self.quotas.demands(job, self.demand[job])
        for demand in demands:
            where, lacks = self._search_as(demand, job, shown, spare)
            if where is not None and (self.quotas is None or self.quotas.allows_on(job, where)):
                return where, False
            lacks_power |= lacks
        return None, lacks_power

    def _search_as(
        self, demand: Any, job: int, shown: Any, spare: int
    ) -> tuple[Where | None, bool]:
        where = self.put(shown, job, demand)
        if where is None or self.draw(job, where) <= spare:
            return where, False
        cheap = None
        if self.works is None and self.watts is not None:
            cheap = self.watts.on_cheap_types(job, spare, demand)
        where = None if cheap is None else self.put(shown, job, cheap)
        if where is None or self.draw(job, where) > spare:
            return None, True
        return where, False

    def is_over(self, job: int) -> bool:
        """Return whether a job that does not fit has to wait for quota."""
        return self.quotas is not None and self.quotas.is_over(job)

    @contextmanager
    def trying_quotas(self) -> Iterator[None]:
        """Let the books of quotas be as before when what is tried is over."""
        books = self.quotas
        self.quotas = None if books is None else books.copy()
        yield
        self.quotas = books

    @property
    def blocks(self) -> bool:
        """Whether a job that has to wait for quota holds up those behind it."""
        return self.quotas is not None and self.quotas.blocks

    def draw(self, job: int, where: Where) -> int:
        """Return the least that a job adds to the draw somewhere, nanowatts."""
        return 0 if self.watts is None else self.watts.floor(job, where)

    def put(self, shown: Any, job: int, demand: Any) -> Where | None:
        """Return where a demand of a job goes in what it may use, reserved nodes first."""
        if not self.access[job]:
            return self._place(shown, job, demand)
        nodes = len(self.problem.sizes)
        return reserved_first(shown, nodes, lambda free: self._place(free, job, demand))

    def _place(self, free: Any, job: int, demand: Any) -> Where | None:
        free.draws = len(self.stays)  # what is random goes by the stays begun so far
        if self.works is not None:
            asked = self.problem.demand(job)
            where: Where | None = free.place(demand, asked.allowed, asked.topology)
            return where
        return self.placement.place(free, demand)

    def put_again(self, job: int, free: Any, where: Where) -> Where | None:
        """Return the devices that a job gets on the nodes of a place, as many tasks on each."""
        shown, demand = self.opened(free, job), self.demand[job]
        found: Where = []
        placed = 0
        for node, pairs in groupby(where, key=itemgetter(0)):
            tasks = sum(demand.tasks(grant, pooled=free.pooled) for _, grant in pairs)
            grants = self.grants_on(shown, demand, node, tasks, placed)
            if grants is None:
                return None
            found += [(node, grant) for grant in grants]
            placed += tasks
        return found

    def grants_on(
        self, free: Any, demand: Any, node: int, tasks: int, first: int
    ) -> Sequence[int] | None:
        """Return what so many tasks get on a node with devices, None if they do not fit there.

        ``first``: how many of them are placed elsewhere already.
        """
        free.draws = len(self.stays)
        many = replace(demand, count=max(demand.count, tasks))
        if not 0 <= node < len(free.nodes) or free.fitting(node, many) < tasks:
            return None
        placement: Any = self.placement
        grants: Sequence[int] = placement.grants(free, node, demand, tasks, first)
        return grants

    def has(self, free: Any, job: int, where: Where, demand: Any) -> bool:
        """Return whether a policy's own choice of a place is free, and serves a demand of a job."""
        if self.works is not None:
            asked = self.problem.demand(job)
            return bool(free.has(where, demand, asked.allowed))
        return bool(free.fits(where, demand) if where else demand.is_nothing)

    def opened(self, free: Any, job: int) -> Any:
        """Return a free state with the job's reservations open to it."""
        return free.opened(self.access[job]) if self.access[job] else free

    def _seen(self, free: Any, job: int, at: float) -> Any:
        """Return what of a free state the job may use if it starts at ``at`` (s)."""
        shown = self.opened(free, job)
        coming = self.coming(job, at) if self.plans else {}
        if coming:
            shown = shown.copy()
            for place, units in coming.items():
                shown.withhold(place, NOBODY, units)
        return shown

    def coming(self, job: int, at: float) -> dict[int, int]:
        """Return what planned holds take before the job's expected end: place -> most units."""
        stop = self.planned_stop(job, at) if self.planned else at
        taken: dict[int, int] = {}
        peak: dict[int, int] = {}
        # In a pool one hold may end before another begins; a node is taken whole by any of them.
        for time, begins, index in self.planned:
            hold = self.holds[index]
            if not at < time < stop or hold.group in self.access[job]:
                continue
            for place, units in hold.places:
                if not self.problem.is_pool:
                    peak |= {place: units} if begins else {}
                    continue
                taken[place] = taken.get(place, 0) + (units if begins else -units)
                if taken[place] > peak.get(place, 0):
                    peak[place] = taken[place]
        return peak

    def planned_stop(self, job: int, start: float) -> float:
        """Return when a job is expected to end that starts at ``start`` (s), or resumes then."""
        raise NotImplementedError

    @property
    def down(self) -> int:
        """GPU units that nobody holds and outages keep from everybody; sleeping nodes are not."""
        asleep = (n for n in self.sleeping if self.free.withheld.get(n, ()).count(NOBODY) == 1)
        down: int = self.free.down - sum(self.free.free_units(node) for node in asleep)
        return down
