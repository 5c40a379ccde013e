"""`Driver`: policies that decide all by themselves (tier 3) on the compiled engine.

The kernel asks and carries out (`windtunnel.kernel.deciding`); here stands what it does not need at
every decision: kinds of demands that only a policy asks for, and, as for every engine, what
`windtunnel.sim.decisions` has.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import kernel
from windtunnel.sim.contract import Preempt, Start
from windtunnel.sim.decisions import Decisions
from windtunnel.sim.elastic.headroom import Headroom
from windtunnel.sim.elastic.nodes import FreeShares
from windtunnel.sim.elastic.views import ElasticView
from windtunnel.sim.jobs import JobView
from windtunnel.sim.quota_books import QuotaBooks
from windtunnel.users_code import note_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.errors import PolicyError
    from windtunnel.sim.kernel_run import KernelRun


class KernelElasticView(ElasticView, kernel.ClusterView):  # type: ignore[misc] # of the compiled kernel
    """The cluster at this instant, with the jobs' options."""


class Driver(Decisions):
    """Drives a policy of tier 3, on a run whose loop is not made yet.

    Attributes:
        rule: what the loop tells of what happens.
        kinds: the classes of the two decisions that the kernel carries out without a question.
    """

    def __init__(self, run: KernelRun) -> None:
        JobView.register(kernel.JobView)
        super().__init__(run.policy, run.problem, run.rules)
        self.run, self.state, self.free, self.shapes = run, run.tables, run.free, run.shapes
        self.kinds = (Start, Preempt)
        count = max(len(self.problem.rows), 1)
        one = np.zeros(count, dtype=np.int32)
        run.state.use_lines(kernel.Lines(1, one, np.zeros(count), is_sorted=True))
        admission = run.admit()
        self.rule = kernel.Asked(run.state, admission, run.views)
        search = kernel.Search(run.state, admission, run.line_of)
        self.deciding = kernel.Deciding(run.state, self.rule, search, self)
        run.went_on = self.deciding.went_on
        cluster = kernel.ClusterView if self.works is None else KernelElasticView
        self.cluster = cluster(self.deciding)
        self.deciding.shows(kernel.QueueView(self.deciding), self.cluster)
        #: What admission leaves, and what is free in shares, besides the jobs that are entered.
        self._admits = self._nobody_admitted()
        self._shares = self._every_share()
        self._held: dict[int, tuple[int, Any, Any]] = {}
        self._plain_kinds: dict[Any, int] = {}
        self._kinds_on: dict[Any, int] = {}
        self._demands: dict[int, Any] = dict(enumerate(self.problem.demands))

    def _nobody_admitted(self) -> Headroom | None:
        """Return what admission leaves while nobody runs; None = all."""
        quotas, resizes = self.run.rules.quotas, self.works is not None
        if quotas is None and self.run.watts is None:
            return None
        books = None if quotas is None else QuotaBooks(quotas, self.problem, resizes=resizes)
        return Headroom(books, self.run.watts, 0)

    def _every_share(self) -> FreeShares | None:
        """Return what is free of an elastic run's cluster while nobody runs; None = of another."""
        shapes = self.shapes
        if shapes is None:
            return None
        return FreeShares(self.problem.sizes.tolist(), shapes.cores, shapes.scores, shapes.domains)

    # Asking.

    def decide(self) -> None:
        """Ask the policy, and carry out what it decides.

        Raises:
            PolicyError: a decision that is impossible; names the instant and the job.
        """
        if self.alarms:
            self.forget_alarms(self.deciding.now)
        fills = self.policy.fills and not self.run.sim.takes_round()
        try:
            (self.deciding.fill if fills else self.deciding.decide)()
        except Exception as error:
            note_instant(error, self.policy.label, self.deciding.now)
            raise
        if self.alarms or self.policy.renews_wakes:
            self.run.sim.alarm = self.alarms[0] if self.alarms else math.inf

    def stop(self) -> None:
        """End the run once the policy has decided at this instant."""
        self.run.stop()

    # Places.

    def plain_kind(self, num_gpus: float, gpu_types: Iterable[str | None] | None) -> int:
        """Return the kind of so many GPUs, of any type or some.

        Raises:
            SpecError: the cluster has no such GPU type.
            PolicyError: it is no number of GPUs, or the cluster cannot give such parts of them.
        """
        types = None if gpu_types is None else self.types(gpu_types)
        num_gpus = self.gpus(num_gpus)
        found = self._plain_kinds.get((num_gpus, types))
        if found is None:
            demand = self.problem.plain_demand(num_gpus)
            if types is not None:
                demand = self.on_types(demand, types)
            found = self._plain_kinds[num_gpus, types] = self._new_kind(demand)
        return found

    def kind_on(self, kind: int, gpu_types: Iterable[str | None]) -> int:
        """Return what a kind asks for, on some GPU types alone.

        Raises:
            SpecError: the cluster has no such GPU type.
        """
        types = gpu_types if isinstance(gpu_types, frozenset) else self.types(gpu_types)
        found = self._kinds_on.get((kind, types))
        if found is None:
            demand = self.on_types(self._demands[kind], types)
            found = self._kinds_on[kind, types] = self._new_kind(demand)
        return found

    def _new_kind(self, demand: Any) -> int:
        kind: int = self.free.add_kind(demand)
        self._demands[kind] = demand
        return kind

    def kind_of(self, job: int, option: Any) -> int:
        """Return the kind of an option of a job."""
        assert self.shapes is not None  # noqa: S101 - of an elastic run
        return self.shapes.kind(job, option)

    def demand_of(self, kind: int) -> Any:
        """Return the demand that is a kind; None = it is an option's."""
        return None if self.shapes is not None else self._demands[kind]

    def grants_on(
        self, free: Any, kind: int, node: int, tasks: int, first: int
    ) -> Sequence[int] | None:
        """Return what so many tasks get on a node with devices, None if they do not fit there."""
        self.deciding.draw_for(free)
        grants: Sequence[int] | None = free.grants_on(kind, node, tasks, first)
        return grants

    def closed_to(self, job: int) -> set[int]:
        """Return the nodes on which a job may not start, though others may run there."""
        groups = self.groups_of(job)
        return {node for node, group in self.free.held() if group not in groups}

    def headroom(self) -> Headroom | None:
        """Return what admission leaves besides who runs now; None = it does not limit the run."""
        if self._admits is None:
            return None
        self._follow_running()
        room = self._admits.copy()
        if self.run.capped:
            budget, drawn = self.state.power_state()
            room.spare = max(budget, 0) - drawn
            if self.deciding.colocated:  # who shares GPUs draws what one of them would
                room.floors = {job: self.state.floor_of(job) for job in room.running}
                pairs = [(job, self.state.sharing(job)) for job in room.running]
                room.mates = {
                    job: (mate, self.state.floor_alone(mate))
                    for job, there in pairs
                    for mate in there
                    if mate != job
                }
        return room

    def free_shares(self) -> FreeShares:
        """Return a copy of what is free on each node, and of what admission leaves besides."""
        assert self._shares is not None  # noqa: S101 - of an elastic run
        self._follow_running()
        free = self._shares.copy()
        free.headroom = self.headroom()
        for node, group in self.free.held():
            free.withhold(node, group)
        return free

    def _follow_running(self) -> None:
        """Let what is free be so but for the jobs that run now; a stay is another than before."""
        stays = {job: self.state.stay_number(job) for job in self.state.running()}
        for job, (stay, where, option) in [*self._held.items()]:
            if stays.get(job) != stay:
                del self._held[job]
                if self._shares is not None:
                    self._shares.give(where, option)
                if self._admits is not None:
                    self._admits.end(job)
        for job in [job for job in stays if job not in self._held]:
            where, option = self.state.where(job), None
            if self._shares is not None:
                option = self.deciding.option_of(job)
                self._shares.take(where, option)
            if self._admits is not None:
                self._admits.begin(job, where)
            self._held[job] = stays[job], where, option

    # What is impossible.

    def unfit(self, does: str, view: Any, kind: int) -> PolicyError:
        """Return the error of a job that fits nowhere now."""
        return self.no_place(does, view, self._asked(kind), self.free.free_by_node().tolist())

    def misfit(self, does: str, view: Any, where: Any, kind: int, free: Any) -> PolicyError:
        """Return the error of a place that a policy chose, and that is none."""
        asked, units = self._asked(kind), free.free_by_node().tolist()
        return self.no_such_place(does, view, where, asked, units)

    def _asked(self, kind: int) -> Any:
        """Return the demand or the option that is a kind."""
        return self.demand_of(kind) if self.shapes is None else self.shapes.option(kind)
