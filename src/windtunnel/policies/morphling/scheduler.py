"""Morphling: GPUs, cores and plans together, promises kept, changes that pay.

Yuan et al., MLSys'25, section 4.1, whose published simulator does less
(`windtunnel.policies.morphling.artifact` is that one). `Morphling` is the paper's rules; `Priced`
adds two of ours, the price of GPU time and holding back, in item 3. At every instant:

1. *Order*: jobs older than ``ageing`` by arrival, then guaranteed jobs by arrival, then best-effort
   jobs by arrival. What cannot be launched is gone past, but nothing is launched that would delay
   the first aged job.
2. *Minimum first*: a job needs at least its floor: a guaranteed job its smallest option that keeps
   its promise (the throughput of what its user asked for), a best-effort job its smallest option.
   Where nothing fits, running jobs that hold more than their floor are shrunk, flattest first;
   best-effort jobs may lose everything to a guaranteed one. That is done for the first best-effort
   job that fits nowhere, only if it completes sooner by more seconds than the others lose.
3. *Size of a launch*: of the options that fit, the one with the least cost: seconds to completion
   plus GPU-seconds at their price, (``base`` + other waiting jobs) / GPUs of the cluster: what a
   GPU-second delays others. A job rather waits than pays more than ``patience`` times its least
   cost, and it holds back while its launch would delay the others of its class, in sum, by more
   than ``yielding`` times what it has itself waited.
4. *The rest*: what is still free goes to running jobs by steepest normalised throughput per GPU
   (per core), from point to point of the upper concave envelope, where it pays: remaining time
   after the change + penalty < remaining time now - ``margin``.
"""

from __future__ import annotations

import copy
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.policies.morphling.admission import QuotaBook
from windtunnel.policies.morphling.draft import Draft
from windtunnel.policies.morphling.growth import grow
from windtunnel.policies.morphling.ladder import FREEDOMS
from windtunnel.policies.morphling.reclaim import reclaim_for
from windtunnel.policies.morphling.rules import Rules
from windtunnel.policies.morphling.shadow import Shadow
from windtunnel.policies.quotas import unused_vcs
from windtunnel.sim.contract import Wake

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Decision
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.jobs import JobView


class Priced(Rules):
    """GPUs, cores and plans together; GPU time has a price, and jobs hold back for others.

    Args:
        margin: seconds that a change must save beyond its penalty.
        ageing: seconds after which a waiting job goes before all others.
        patience: how much more than its least cost a job may pay to be launched now.
        yielding: seconds of others' waiting that a launch may cause for each second that the job
            has waited itself; 0 = jobs never hold back.
        base: jobs that are taken to wait, besides those that do, in the price of GPU time.
        most: changes after which a job gives way no longer; it may grow up to as many times more.
        quotas: GPUs of each ``vc``: of its guaranteed jobs only those are launched whose floors
            come to no more; empty = no quotas.
    """

    name = "morphling:priced"
    elastic = True
    keeps_promises = True

    def __init__(
        self,
        *,
        margin: float = 300.0,
        ageing: float = 43200.0,
        patience: float = 1.3,
        yielding: float = 1.5,
        base: float = 5.0,
        most: float = 5,
        quotas: Mapping[str, float] | None = None,
    ) -> None:
        given = {"margin": margin, "ageing": ageing, "patience": patience}
        given |= {"yielding": yielding, "base": base, "most": most}
        for name, value in given.items():
            low = 1.0 if name == "patience" else 0.0
            if not isinstance(value, int | float) or math.isnan(value) or value < low:
                raise SpecError(f"{self.name}.{name}", f"found {value!r}; expected >= {low:g}.")
        assert self.freedom in FREEDOMS  # noqa: S101 - a class's own word
        self.margin, self.ageing = float(margin), float(ageing)
        self.patience, self.yielding = float(patience), float(yielding)
        self.base = float(base)
        self.most = int(most) if math.isfinite(most) else 10**9
        self.quotas = dict(quotas or {})
        own: dict[str, Any] = {name: getattr(self, name) for name in (*given, "freedom")}
        self.parameters = MappingProxyType(own | ({"quotas": self.quotas} if quotas else {}))

    def for_run(self, problem: Any) -> Priced:
        """Return a copy with books of its own."""
        twin = copy.copy(self)
        twin.begin(problem)
        twin.notes = tuple(unused_vcs(self.quotas, problem.jobs.vc.tolist()))
        return twin

    def begin(self, problem: Any) -> None:
        """Forget the jobs of other runs."""
        super().begin(problem)
        self._num_gpus: float = problem.quota / problem.units

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:
        """Yield launches, changes, and when to be asked again."""
        draft = Draft(now, cluster)
        book = QuotaBook(self, draft)
        line = self._line(now, list(queue), cluster)
        shadow: Shadow | None = None
        held_back: list[float] = []
        pushed = False
        waiting = _Waiting(line, cluster)
        for job in line:
            if not book.admits(job):
                waiting.leave(job)
                continue
            chosen, later = self._launch(draft, job, waiting, shadow)
            if chosen is not None:
                draft.put(job, *chosen)
                if shadow is not None:
                    shadow.note(draft.held[job.number])
                book.note(job)
                waiting.leave(job)
                continue
            held_back += later
            guaranteed = cluster.work(job).guaranteed
            pushes = shadow is None and (guaranteed or not pushed)
            pushes = pushes and not self._until_held(draft, job, waiting)
            pushed |= pushes and not guaranteed
            if pushes and reclaim_for(self, draft, job):
                book.note(job)
                waiting.leave(job)
            elif shadow is None and self.is_aged(job, now):
                shadow = Shadow.of(draft, job, self.ladder(cluster, job))
        if line and not draft.held:
            self._launch_alone(draft, line, book)
        if shadow is None:
            grow(self, draft, self.price(waiting.count))
        yield from self._decisions_of(draft)
        later_than = [at for at in held_back if at > now]
        aging = [job.submit_time + self.ageing for job in line]
        later_than += [at for at in aging if now < at < math.inf]
        if later_than:
            yield Wake(min(later_than))

    def price(self, waiting: int) -> float:
        """Return the seconds of others' waiting that a GPU-second costs, by how many wait."""
        return (self.base + waiting) / self._num_gpus

    def _decisions_of(self, draft: Draft) -> Iterable[Decision]:
        for number, held in draft.before.items():
            if draft.held.get(number) is not held:
                self.note_change(number)
        yield from draft.decisions()

    def _line(self, now: float, jobs: list[JobView], cluster: Any) -> list[JobView]:
        def rank(job: JobView) -> int:
            if self.is_aged(job, now):
                return 0
            return 1 if cluster.work(job).guaranteed else 2

        return sorted(jobs, key=rank)  # the queue is in order of arrival

    def _launch(
        self, draft: Draft, job: JobView, waiting: _Waiting, shadow: Shadow | None
    ) -> tuple[tuple[Option, Where] | None, list[float]]:
        """Return how a job is to be launched now, or None, and until when it holds back."""
        ladder = self.ladder(draft.cluster, job)
        price = self.price(waiting.count - 1)
        costs = sorted(
            (
                (draft.runtime(job, option) * (1 + price * option.num_gpus), place, option)
                for place, option in enumerate(ladder.options)
            ),
        )
        limit = costs[0][0] * self.patience
        aged = self.is_aged(job, draft.now)
        later: list[float] = []
        for cost, _, option in costs:
            if cost > limit and len(costs) > 1 and not aged:
                break
            where = draft.fit(job, option)
            if where is not None and shadow is not None:
                where = shadow.fit(draft, job, option, where)
            if where is None:
                continue
            held_until = self._until_held(draft, job, waiting, option)
            if not held_until:
                return (option, where), []
            later.append(held_until)
        return None, later

    def _until_held(
        self, draft: Draft, job: JobView, waiting: _Waiting, option: Option | None = None
    ) -> float:
        """Return until when (s) a job holds back from an option, its floor if None; 0 = no longer.

        A job without a choice of options never does.
        """
        ladder = self.ladder(draft.cluster, job)
        chooses = len(ladder.options) > 1 and not self.is_aged(job, draft.now)
        if not self.yielding or not chooses:
            return 0.0
        chosen = option or ladder.floor
        gpu_time = chosen.num_gpus * draft.runtime(job, chosen)
        delay = waiting.others(job) * gpu_time / self._num_gpus / self.yielding
        until = float(job.submit_time + delay)
        return until if until > draft.now else 0.0

    def _launch_alone(self, draft: Draft, line: list[JobView], book: QuotaBook) -> None:
        """Launch the first job that nothing runs beside, whatever it holds back for."""
        price = self.price(len(line) - 1)
        for job in line:

            def cost(option: Option, job: JobView = job) -> float:
                return draft.runtime(job, option) * (1 + price * option.num_gpus)

            options = sorted(self.ladder(draft.cluster, job).options, key=cost)
            if book.admits(job) and draft.put_first(job, options):
                book.note(job)
                return


class _Waiting:
    """How many jobs wait still, in all and guaranteed ones."""

    def __init__(self, line: list[JobView], cluster: Any) -> None:
        self._guaranteed = {job.number for job in line if cluster.work(job).guaranteed}
        self._all = {job.number for job in line}

    @property
    def count(self) -> int:
        """Jobs that wait."""
        return len(self._all)

    def leave(self, job: JobView) -> None:
        """Count a job no longer: it is launched, or may not be."""
        self._all.discard(job.number)
        self._guaranteed.discard(job.number)

    def others(self, job: JobView) -> int:
        """Return how many others a job holds back for: a guaranteed one for guaranteed ones."""
        group = self._guaranteed if job.number in self._guaranteed else self._all
        return len(group - {job.number})


class Morphling(Priced):
    """The paper's rules alone: of the options that fit the one that is done soonest, at once.

    Args:
        margin: seconds that a change must save beyond its penalty.
        ageing: seconds after which a waiting job goes before all others.
        most: changes after which a job gives way no longer; it may grow up to as many times more.
        quotas: GPUs of each ``vc``, as for `Priced`.
    """

    name = "morphling"

    def __init__(
        self,
        *,
        margin: float = 300.0,
        ageing: float = 43200.0,
        most: float = 5,
        quotas: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(
            margin=margin,
            ageing=ageing,
            patience=math.inf,
            yielding=0.0,
            base=0.0,
            most=most,
            quotas=quotas,
        )
        own = {"margin", "ageing", "most", "freedom", "quotas"}
        kept = {name: value for name, value in self.parameters.items() if name in own}
        self.parameters = MappingProxyType(kept)

    def price(self, waiting: int) -> float:
        """Return 0: GPU time costs nothing."""
        del waiting
        return 0.0


class PlansOnly(Priced):
    """Ablation -E: execution plans change, GPUs stay as asked for."""

    name = "morphling:plans"
    freedom = "plans"
    resizes = False


class ResourcesOnly(Priced):
    """Ablation -R: GPUs and cores change, the execution plan stays as asked for."""

    name = "morphling:resources"
    freedom = "resources"


class Neither(Priced):
    """Ablation -N: jobs run as asked for; the order and the promises remain."""

    name = "morphling:neither"
    freedom = "neither"
    resizes = False
