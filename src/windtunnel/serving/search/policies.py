"""Placement search: which models should share which groups of how many GPUs.

The policies of AlpaServe (OSDI'23, sections 4 and 6). Every search remembers the best placement it
saw; ties go to the first in a fixed order, so that any number of workers finds the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from windtunnel.checked import checked_count
from windtunnel.errors import InfeasibleError, SpecError, quote
from windtunnel.serving.overheads import Overheads, as_overheads
from windtunnel.serving.parallel import Parallel
from windtunnel.serving.placement import MEM_BUDGET, Placement
from windtunnel.serving.search.evolving import Evolution, evolve
from windtunnel.serving.search.layouts import (
    compositions,
    equal_groups,
    latency_buckets,
    plausible,
    search_configurations,
    search_layouts,
)
from windtunnel.serving.search.placing import BEAM, beam_search, grow, round_robin, uniform
from windtunnel.serving.search.problem import Problem, Scored, best_of
from windtunnel.serving.search.whole_program import replicate_on_gpus, replicate_on_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from windtunnel.serving.profile import Profile
    from windtunnel.serving.search.problem import Layout, OnDone
    from windtunnel.serving.workload import Workload

#: Names of the policies.
POLICIES = (
    "sr-greedy",
    "sr-uniform",
    "sr-ilp",
    "round-robin",
    "mp-greedy",
    "mp-search",
    "mp-search-sep",
    "mp-ilp",
    "mp-grow",
    "mp-evolve",
    "beam",
)
#: Short names.
ALIASES = {"sr": "sr-greedy"}
_EVOLUTION = Evolution()
#: Simulations spent on improving the best placement.
REFINE = 400
#: The most that may be asked for.
MOST_REFINED = 1_000_000


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        placement: the best placement seen.
        score: its score on the training workload, see `windtunnel.serving.search.problem.Scored`.
        attainment: its attainment there, without any cut.
        simulations: simulations made.
        unplaced: indices of models that have requests but no replica.
        settings: what was asked.
    """

    placement: Placement
    score: float
    attainment: float
    simulations: int
    unplaced: tuple[int, ...]
    settings: dict[str, Any] = field(default_factory=dict)


def search(
    workload: Workload,
    profile: Profile,
    gpus: int,
    policy: str = "mp-search",
    *,
    mem_budget: float = MEM_BUDGET,
    overheads: Overheads | str = "none",
    group: Parallel | int | None = None,
    beam: int = BEAM,
    evolution: Evolution = _EVOLUTION,
    refine: int = REFINE,
    workers: int = 1,
    on_done: OnDone | None = None,
) -> SearchResult:
    """Search a placement that serves a workload well.

    Args:
        workload: the requests to be good at; evaluate on others to know what it is worth.
        profile: costs and memory.
        gpus: GPUs of the cluster.
        policy: ``sr-greedy``, selective replication on single GPUs; ``sr-uniform``; ``sr-ilp``, an
            integer program that maximises the smallest throughput over rate; ``round-robin``
            on pipelines; ``mp-greedy``, greedy replication on groups of ``group``; ``mp-search``,
            the best of those over group sizes and configurations; ``mp-search-sep``, the same with
            GPUs of their own for buckets of similar latency; ``mp-ilp``, an integer program for
            the longest burst served in time, for each of those configurations; ``mp-grow``, a beam
            over unequal groups, one GPU more at a time; ``mp-evolve``, evolution from what
            mp-search tries; ``beam``, algorithm 1 on groups of ``group``. ``sr`` is sr-greedy,
            ``mp-greedy-4`` has groups of four stages, as published.
        mem_budget: bytes for weights on a GPU.
        overheads: ``none``, ``alpaserve``, or your own.
        group: of mp-greedy, beam and round-robin: a configuration, or the stages of a pipeline.
            [4 of round-robin, else 1]
        beam: placements kept by ``beam``, layouts by ``mp-grow``.
        evolution: of ``mp-evolve``.
        refine: the best placement of ``sr-greedy``, ``mp-greedy``, ``mp-search``,
            ``mp-search-sep``, ``mp-grow`` and ``mp-evolve`` is improved by single additions and
            exchanges of models, with so many simulations at most; 0 leaves it as published.
        workers: threads; the result is the same.
        on_done: called after each layout tried.

    Raises:
        SpecError: an unknown policy or model, no requests, or a number that makes no sense.
        InfeasibleError: no model fits anywhere.
    """
    policy, group = named_policy(policy, group)
    counts = {"gpus": gpus, "beam": beam, "workers": workers, "population": evolution.population}
    for name, value in counts.items():
        checked_count(name, value)
    words = f"a whole number from 0 to {MOST_REFINED:,}"
    checked_count("refine", refine, words, least=0, most=MOST_REFINED)
    if not len(workload):
        raise SpecError("workload", "there are no requests to search a placement for.")
    parallel = parallel_of(group, policy, gpus)
    everyone = tuple(range(len(workload.models)))
    problem = Problem(workload, profile, mem_budget, as_overheads(overheads), everyone)
    with ThreadPoolExecutor(workers) as pool:
        trying = _Trying(problem, pool, on_done or (lambda _: None), refine)
        try:
            found = _found(trying, _Asked(gpus, policy, parallel, beam, evolution))
        except BaseException:  # Ctrl-C above all: threads end at their next simulation
            problem.stopped[0] = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    held = {model for group in found.placement.groups for model in group.models}
    asked = set(workload.model.tolist())
    settings = {"policy": policy, "gpus": gpus, "mem_budget": mem_budget, "refine": refine}
    if policy in ("mp-greedy", "beam", "round-robin"):
        settings["group"] = list(parallel)
    if policy in ("beam", "mp-grow"):
        settings["beam"] = beam
    if policy == "mp-evolve":
        settings["evolution"] = evolution._asdict()
    return SearchResult(
        placement=found.placement,
        score=float(found.score),
        attainment=float(found.attainment),
        simulations=found.simulations,
        unplaced=tuple(sorted(asked - held)),
        settings=settings,
    )


def named_policy(
    name: str, group: Parallel | int | None = None
) -> tuple[str, Parallel | int | None]:
    """Return a policy's full name and its groups: ``sr`` is sr-greedy, ``mp-greedy-4`` has both.

    Raises:
        SpecError: an unknown name.

    >>> named_policy("mp-greedy-4")
    ('mp-greedy', 4)
    """
    plain, _, size = name.rpartition("-")
    if plain == "mp-greedy" and size.isdecimal():
        return plain, int(size)
    name = ALIASES.get(name, name)
    if name not in POLICIES:
        raise SpecError.unknown("policy", name, (*POLICIES, *ALIASES))
    return name, group


@dataclass(frozen=True)
class _Trying:
    """Runs candidates on threads (the kernels release the lock) and keeps their order."""

    problem: Problem
    pool: ThreadPoolExecutor
    on_done: Callable[[str], None]
    refine: int

    def refined(self, found: Sequence[Scored]) -> Scored:
        """Return the best of the placements after improving each, as far as asked for."""
        if self.refine:
            found = list(
                self.pool.map(lambda one: self.problem.refine(one, self.refine), list(found))
            )
        return best_of(found)

    def layouts(self, tasks: Iterable[tuple[Problem, Layout]]) -> list[Scored]:
        """Return the greedy placement of each layout."""
        return self._all(lambda task: task[0].replicate(task[1]), list(tasks), "layout")

    def programs(self, gpus: int) -> list[Placement]:
        """Return the integer program's placement for each configuration that any model suits.

        Raises:
            InfeasibleError: there is no such configuration.
        """

        def solved(parallel: Parallel) -> Placement | InfeasibleError:
            try:
                return replicate_on_groups(self.problem, gpus, parallel)
            except InfeasibleError as error:
                return error

        found = list(self.pool.map(solved, search_configurations(gpus)))
        placements = [one for one in found if isinstance(one, Placement)]
        if not placements:
            raise next(one for one in found if isinstance(one, InfeasibleError))
        return placements

    def placements(self, placements: Iterable[Placement]) -> list[Scored]:
        """Return the score of each placement."""
        return self._all(self.problem.evaluate, list(placements), "placement")

    def _all(self, work: Callable[[Any], Scored], tasks: list[Any], step: str) -> list[Scored]:
        found = []
        for one in self.pool.map(work, tasks):
            found.append(one)
            self.on_done(step)
        return found


class _Asked(NamedTuple):
    """What a search was asked for; see `search`."""

    gpus: int
    policy: str
    parallel: Parallel
    beam: int
    evolution: Evolution


def _found(trying: _Trying, asked: _Asked) -> Scored:
    problem, gpus, policy = trying.problem, asked.gpus, asked.policy
    counted: dict[str, Callable[[], list[Placement]]] = {
        "sr-uniform": lambda: [uniform(problem, gpus)],
        "sr-ilp": lambda: [replicate_on_gpus(problem, gpus)],
        "mp-ilp": lambda: trying.programs(gpus),
        "round-robin": lambda: [round_robin(problem, equal_groups(gpus, asked.parallel))],
    }
    if policy in counted:
        return best_of(trying.placements(counted[policy]()))
    if policy == "beam":
        layout = equal_groups(gpus, asked.parallel)
        return beam_search(problem, layout, asked.beam, trying.placements)
    if policy == "mp-grow":
        return trying.refined([grow(problem, gpus, asked.beam, trying.layouts)])
    layouts = search_layouts(gpus)
    if policy in ("sr-greedy", "mp-greedy"):
        layouts = [equal_groups(gpus, asked.parallel)]
    together = trying.layouts((problem, layout) for layout in layouts)
    if policy == "mp-evolve":
        return trying.refined([evolve(problem, together, asked.evolution, trying.placements)])
    if policy == "mp-search-sep":
        return trying.refined(_separated(trying, gpus, best_of(together)))
    return trying.refined([best_of(together)])


def _separated(trying: _Trying, gpus: int, together: Scored) -> list[Scored]:
    """Return the unbucketed placement and, if any, the best union of buckets solved alone."""
    problem = trying.problem
    names = problem.workload.models
    latencies = [_any_latency(problem.profile, name) for name in names]
    buckets = latency_buckets(latencies)
    if len(buckets) < 2 or len(buckets) > gpus:  # noqa: PLR2004 - one bucket is the same search
        return [together]
    counts = [int(problem.restricted(bucket).workload.arrival.size) for bucket in buckets]
    means = [sum(latencies[model] for model in bucket) / len(bucket) for bucket in buckets]
    ways = plausible(compositions(gpus, len(buckets)), counts, means)
    alone = [problem.restricted(bucket) for bucket in buckets]
    keys = sorted({(index, part) for way in ways for index, part in enumerate(way)})
    tasks = [(key, layout) for key in keys for layout in search_layouts(key[1])]
    scored = trying.layouts((alone[key[0]], layout) for key, layout in tasks)
    solved: dict[tuple[int, int], list[Scored]] = {key: [] for key in keys}
    for (key, _), one in zip(tasks, scored, strict=True):
        solved[key].append(one)
    best = {key: max(found, key=lambda one: one.score) for key, found in solved.items()}
    unions = [
        Placement(
            tuple(g for index, part in enumerate(way) for g in best[index, part].placement.groups)
        )
        for way in ways
    ]
    union = best_of(trying.placements(unions))
    made = union.simulations + sum(one.simulations for one in scored)
    return [together, union._replace(simulations=made)]


def _any_latency(profile: Profile, name: str) -> float:
    """Return a model's latency on one GPU, or on as few as it was profiled on."""
    smallest = min(profile.configurations(name), key=lambda parallel: (parallel.gpus, parallel))
    return float(profile.stages(name, smallest).latency.sum())


def parallel_of(group: Parallel | int | Sequence[int] | None, policy: str, gpus: int) -> Parallel:
    """Return the configuration of the groups of policies that take one.

    Raises:
        SpecError: it has more GPUs than there are, or several data-parallel parts.
    """
    if policy == "sr-greedy":
        return Parallel()
    if group is None:
        chosen = Parallel(1, 1, min(4, gpus) if policy == "round-robin" else 1)
    elif isinstance(group, int):
        chosen = Parallel(1, 1, group)
    else:
        chosen = Parallel(*group)
    if not 1 <= chosen.gpus <= gpus or chosen.dp != 1:
        raise SpecError("group", f"found {quote(group)}; expected 1 to {gpus} GPUs, dp = 1.")
    return chosen
