"""Pollux's policies on the simulator of all others: jobs with options instead of profiles.

They decide *how many* GPUs each job gets, by the same rules as in their published clock, on how
many nodes, and Sia of which type; where they are is the placement's to say, and what a change costs
the run's penalty. What a job has to gain is in its options: where its model is of goodput, an
option's is the best over batch sizes; else the batch is fixed, and goodput is throughput. A choice
that fits nowhere (a node has failed, cores are short) becomes the largest option below it that
fits; a job of which not even the smallest fits waits. Tiresias' jobs keep the size asked for: where
it fits nowhere others have the GPUs, in order of arrival. Arrivals that fill between two ticks get
the least that the policy gives a job: its smallest option, or what was asked for where sizes stay.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.policies.filling import ARRIVALS, Arrivals
from windtunnel.policies.morphling.draft import Draft
from windtunnel.policies.pollux.roaming import Machines
from windtunnel.sim.contract import Policy, Resize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.policies.pollux.clock import Decider
    from windtunnel.sim.contract import Decision
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.jobs import JobView


@dataclass(frozen=True)
class Asked:
    """A job as it was asked for: its number as a name, GPUs, when (s)."""

    name: str
    gpus: int
    submit: float


class OnOptions:
    """A job as the deciders see it (see `windtunnel.policies.pollux.tuned.Tuned`).

    Args:
        view: the job.
        cluster: what the policy sees.
        allowed: bitset of the nodes that it may use.

    Attributes:
        delay: s of its launch to go.
        held: GPU-seconds that it had by the last tick.
        given: GPUs that it was last given.
        launched: when it was launched between two ticks, s; -inf = never.
    """

    def __init__(self, view: JobView, cluster: Any, allowed: int) -> None:
        self.view, self.cluster, self._allowed = view, cluster, allowed
        self.delay, self.launched = 0.0, -math.inf
        self.options: Sequence[Option] = cluster.options(view)
        asked = cluster.work(view).requested.num_gpus
        self.job = Asked(str(view.number), asked, float(view.submit_time))
        self.nodes: tuple[int, ...] = ()
        self.held, self.starts, self.most_seen = 0.0, 0, 0
        self.given, self._ran = 0, 0.0
        self._table = np.zeros((2, 1))

    @property
    def restarts(self) -> int:
        """Times that it was launched anew."""
        return max(self.starts - 1, 0)

    @property
    def restart_time(self) -> float:
        """Seconds that a launch costs."""
        return float(self.cluster.work(self.view).penalty)

    @property
    def least_gpus(self) -> int:
        """GPUs of its smallest option."""
        return self.options[0].num_gpus

    def allows(self, option: Option, nodes: Sequence[int]) -> bool:
        """Return whether an option may be on some nodes."""
        mask = self._allowed & option.nodes
        return sum(mask >> node & 1 for node in nodes) >= len(option.shape)

    @property
    def most_gpus(self) -> int:
        """GPUs that it may have next: twice the most it ever had, at least its smallest option."""
        sizes = [option.num_gpus for option in self.options]
        return min(max(2 * self.most_seen, min(sizes)), max(sizes))

    def speedups(self, most: int) -> np.ndarray:
        """Return throughput by whether it is on several nodes, and by GPUs 0 to ``most``.

        With GPUs between two options it is that of the smaller.
        """
        if self._table.shape[1] <= most:
            table = np.zeros((2, most + 1))
            for option in self.options:
                if option.num_gpus <= most:
                    cell = int(len(option.shape) > 1), option.num_gpus
                    table[cell] = max(table[cell], 1 / option.iteration_time)
            self._table = np.maximum.accumulate(table, axis=1)
        return self._table[:, : most + 1]

    def saved(self, gpus: int) -> float:
        """Return the seconds that the next larger option saves, for each GPU more, to 32 bits.

        Work left is rounded in its last digits, which are no order of equal jobs.
        """
        more = [o for o in self.options if o.num_gpus > gpus]
        if not more:
            return 0.0
        here = float(self.speedups(gpus)[:, gpus].max())
        size = min(option.num_gpus for option in more)
        fastest = min(o.iteration_time for o in more if o.num_gpus == size)
        left = float(self.cluster.iterations_left(self.view))
        before = left / here if here else np.inf
        return float(np.float32((before - left * fastest) / (size - gpus)))

    def launch(self, where: Where | None, now: float) -> None:
        """Note that the job was launched between two ticks."""
        self.note(where, 0.0)
        self.given = len(self.nodes)
        self.launched = now
        self.starts += 1

    def note(self, where: Where | None, seconds: float) -> None:
        """Note where the job is, and that so many seconds have passed."""
        # What it was given at the last tick, for as long as it ran: a failure may have stopped it.
        self.held += self.given * (self.view.run_time - self._ran)
        self._ran = self.view.run_time
        nodes = tuple(node for node, gpus in where or () for _ in range(gpus))
        if nodes != self.nodes:
            self.delay = self.restart_time if nodes else 0.0
        self.delay = max(self.delay - seconds, 0.0)
        self.nodes = nodes
        self.most_seen = max(self.most_seen, len(self.nodes))


class OnOptionsPolicy(Policy):
    """Asks a decider of the published clock at its ticks.

    Args:
        made: makes the decider of a run on some nodes.
        label: the policy as it was asked for.
        interval: s a tick.
        fill: who may take free GPUs between two ticks (`windtunnel.policies.filling`); empty =
            nobody.
        resizes: jobs may get other numbers of GPUs than asked for.
    """

    elastic = True

    def __init__(
        self,
        made: Callable[[Machines], Decider],
        label: str,
        interval: float,
        *,
        fill: str = "",
        resizes: bool = True,
    ) -> None:
        self._made, self.every = made, interval
        self._fill, self.resizes = fill, resizes
        self.fills = fill == ARRIVALS
        self.name = label  # type: ignore[misc] # parameters stand in it
        self.parameters = {"interval": interval} | ({"fill": fill} if fill else {})

    def for_run(self, problem: Any) -> OnOptionsPolicy:
        """Return a copy with a decider and books of its own."""
        twin = OnOptionsPolicy(
            self._made, self.name, self.every or 0.0, fill=self._fill, resizes=self.resizes
        )
        kinds = (
            node.gpu_type or "" for node in problem.cluster.node_types for _ in range(node.count)
        )
        machines = Machines(tuple(kinds), tuple(problem.sizes.tolist()))
        twin._decider, twin._jobs, twin._last = self._made(machines), {}, 0.0
        twin._allowed = [demand.allowed for demand in problem.demands]
        twin._demand_of = problem.demand_of
        twin._arrivals = Arrivals()
        return twin

    _decider: Decider
    _allowed: list[int]
    _demand_of: np.ndarray
    _jobs: dict[int, OnOptions]
    _last: float
    _arrivals: Arrivals

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:
        """Let the decider choose anew, and place what it chose."""
        if self.fills:
            self._arrivals.note(queue)
            self._arrivals.begin_round()
        draft = Draft(now, cluster)
        views = [held.job for held in draft.held.values()] + list(queue)
        active = [self._job(view, cluster) for view in sorted(views, key=lambda v: v.number)]
        free = [int(gpus) for gpus in cluster.free_by_node]
        for job in active:
            job.note(cluster.where(job.view), now - max(self._last, job.launched))
            for node in job.nodes:
                free[node] += 1
        self._last = now
        chosen = self._decider(active, free, now, self.every or 0.0)
        self._place_all(draft, active, chosen)
        for held in draft.held.values():
            job = self._jobs[held.job.number]
            job.given = held.option.num_gpus
            job.starts += draft.changed(held)
        yield from draft.decisions()

    def fill(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:
        """Launch jobs that came since the last tick where GPUs are free, by submission."""
        self._arrivals.note(queue)
        for view in self._arrivals.waiting(queue):
            job = self._job(view, cluster)
            for option in self._least(job):
                where = cluster.place(view, option)
                if where is not None:
                    yield Resize(view, option, where)
                    self._arrivals.start(view)
                    job.launch(cluster.where(view), now)
                    break

    def _least(self, job: OnOptions) -> list[Option]:
        """Return the options of the fewest GPUs that a job is given, the fastest first."""
        least = job.least_gpus if self.resizes else job.job.gpus
        ways = [option for option in job.options if option.num_gpus == least]
        return sorted(ways, key=lambda option: option.iteration_time)

    def _job(self, view: JobView, cluster: Any) -> OnOptions:
        if view.number not in self._jobs:
            allowed = self._allowed[self._demand_of[view.number]]
            self._jobs[view.number] = OnOptions(view, cluster, allowed)
        job = self._jobs[view.number]
        job.view, job.cluster = view, cluster
        return job

    def _place_all(
        self, draft: Draft, active: list[OnOptions], chosen: Mapping[str, tuple[int, ...]]
    ) -> None:
        """Place what was chosen; where the decider did not know all, others have what it leaves."""
        limited = draft.free.headroom is not None
        moved = [job for job in active if chosen.get(job.job.name, ()) != job.nodes]
        if limited:
            self._place_in_turn(draft, moved, chosen)
        else:
            for job in moved:
                if job.nodes:
                    draft.drop(job.view)
            for job in sorted(moved, key=lambda job: -len(chosen.get(job.job.name, ()))):
                self._place(draft, job, chosen.get(job.job.name, ()))
        if limited or draft.free.withheld or not self.resizes:
            self._place_others(draft, active)

    def _place_in_turn(
        self, draft: Draft, moved: list[OnOptions], chosen: Mapping[str, tuple[int, ...]]
    ) -> None:
        """Place jobs where quotas or power limit them, which the decider knows nothing of.

        Each keeps what it has until it is given more: what others grow by is not taken from it.
        """

        def turn(job: OnOptions) -> tuple[bool, int]:
            wanted = len(chosen.get(job.job.name, ()))
            return wanted >= len(job.nodes), -wanted

        for job in sorted(moved, key=turn):
            nodes = chosen.get(job.job.name, ())
            held = draft.drop(job.view) if job.nodes else None
            self._place(draft, job, nodes)
            if held is not None and nodes and job.view.number not in draft.held:
                draft.restore(held)

    def _place_others(self, draft: Draft, active: list[OnOptions]) -> None:
        """Let jobs have, in turn, what the others leave.

        The decider does not know whom quotas or power keep out, nor which nodes are reserved for
        some, or run on until their jobs are done, nor on which nodes a size that stays finds no
        place. Who runs keeps what he has, else each gets the least.
        """
        for job in active:
            number = job.view.number
            before = draft.before.get(number)
            if number in draft.held:
                continue
            if before is not None and draft.free.may_stay(before.where, before.option, number):
                draft.restore(before)
            else:
                draft.put_first(job.view, self._least(job))

    def _place(self, draft: Draft, job: OnOptions, nodes: tuple[int, ...]) -> None:
        """Launch a job on so many GPUs, or, if it resizes, fewer; back where it was rather."""
        number, before = len(nodes), draft.before.get(job.view.number)
        shape = sorted(Counter(nodes).values(), reverse=True)
        fewest = 0 if self.resizes else number
        fitting = [o for o in job.options if fewest <= o.num_gpus <= number]
        chosen = sum(1 << node for node in set(nodes))

        def rank(option: Option) -> tuple[int, bool, bool, float]:
            elsewhere = chosen & ~option.nodes != 0
            return -option.num_gpus, elsewhere, list(option.shape) != shape, option.iteration_time

        for option in sorted(fitting, key=rank):
            stays = before is not None and option.num_gpus == before.option.num_gpus
            stays = stays and before is not None and option.nodes == before.option.nodes
            if (
                stays
                and before
                and draft.free.may_stay(before.where, before.option, before.job.number)
            ):
                draft.restore(before)  # as many GPUs elsewhere are worth no launch
                return
            where = draft.fit(job.view, option)
            if where is not None:
                draft.put(job.view, option, where)
                return
