"""One cluster for both halves: groups of models of fixed latency, and replicas of language models.

A language model's replica has its GPUs to itself, as its engine takes all of their memory, so that
nothing but the number of GPUs ties the parts of a fleet together: each part is searched for every
number that it may get, and the best shares are found exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from windtunnel.checked import checked_count
from windtunnel.errors import InfeasibleError, SpecError, quote
from windtunnel.serving.llm_simulate import simulate_llm
from windtunnel.serving.search.policies import SearchResult, search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.serving.llm_model import LlmModel
    from windtunnel.serving.llm_outcome import LlmOutcome
    from windtunnel.serving.profile import Profile
    from windtunnel.serving.request_traces import RequestTrace
    from windtunnel.serving.search.problem import OnDone
    from windtunnel.serving.workload import Workload

#: A second of latency is worth so much attainment, as in the placement search.
_A_SECOND = 1e-4


@dataclass(frozen=True)
class LlmService:
    """A language model that shares a cluster with others.

    Attributes:
        name: what it is called.
        requests: to serve.
        model: of a replica; pools that lie apart grow together.
        degrees: of tensor parallelism that may be chosen; empty = the model's own.
        dispatch: as in `windtunnel.serving.simulate_llm`.
        ttft, tpot, e2e: SLOs, s; a request is in time within all three.
    """

    name: str
    requests: RequestTrace
    model: LlmModel
    degrees: tuple[int, ...] = ()
    dispatch: str = "least_loaded"
    ttft: float = math.inf
    tpot: float = math.inf
    e2e: float = math.inf

    def models(self) -> list[LlmModel]:
        """Return the model at each degree."""
        return [self.model.at_degree(degree) for degree in self.degrees] or [self.model]


@dataclass(frozen=True)
class LlmReplicas:
    """The replicas of a language model in a fleet.

    Attributes:
        service: whose they are.
        model: of each, at the degree chosen.
        replicas: how many; 0 where it got no GPUs.
        gpus: of them all.
        attainment: share of its requests within the SLOs.
        outcome: of its requests; None without replicas.
    """

    service: LlmService
    model: LlmModel
    replicas: int
    gpus: int
    attainment: float
    outcome: LlmOutcome | None


@dataclass(frozen=True)
class Fleet:
    """How a cluster is shared out.

    Attributes:
        gpus: of the cluster; some may be left over.
        llms: the language models, in the order given.
        placed: the groups of the other models; None where there are none, or without GPUs.
        placed_gpus: those that they were searched on.
        attainment: share of all requests that are in time.
    """

    gpus: int
    llms: tuple[LlmReplicas, ...]
    placed: SearchResult | None
    placed_gpus: int
    attainment: float


class _Part(NamedTuple):
    """A part of the fleet on some GPUs; ``worth`` counts requests in time, less for latency."""

    worth: float
    good: float
    found: LlmReplicas | SearchResult | None

    @property
    def fits(self) -> bool:
        """Whether any model is placed."""
        if isinstance(self.found, LlmReplicas):
            return self.found.replicas > 0
        return self.found is not None


def search_fleet(
    gpus: int,
    llms: Sequence[LlmService],
    workload: Workload | None = None,
    profile: Profile | None = None,
    policy: str = "mp-search",
    *,
    on_done: OnDone | None = None,
    **asked: Any,
) -> Fleet:
    """Share out a cluster among language models and AlpaServe's groups of other models.

    What is maximised is the number of requests in time, all counted alike, less 10^-4 for each
    second of latency, as in `policies.search`; of equals, later parts get fewer
    GPUs. A part whose requests are all in time gets no more, and all replicas of a language model
    are alike.

    Args:
        gpus: of the cluster.
        llms: the language models.
        workload: requests for models of fixed latency, whose groups ``policy`` places; None = none.
        profile: of those models.
        policy: of `windtunnel.serving.search.policies.search`.
        on_done: called after each number of GPUs that a part was tried with.
        asked: the other arguments of that search.

    Raises:
        SpecError: there is nothing to place, two language models have one name, or a value is
            wrong.
        InfeasibleError: no part fits into the cluster.
    """
    checked_count("gpus", gpus)
    names = [one.name for one in llms]
    if len(set(names)) < len(names):
        raise SpecError("llms", f"found {quote(names)}; expected each name once.")
    done = on_done or (lambda _: None)
    parts = [_of_llm(one, gpus, done) for one in llms]
    count = sum(len(one.requests) for one in llms)
    if workload is not None:
        if profile is None:
            raise SpecError("profile", "is missing; a workload needs one.")
        find = partial(search, workload, profile, policy=policy, **asked)
        parts.append(_of_groups(workload, gpus, find, done))
        count += len(workload)
    if not count:
        raise SpecError("llms", "there are no requests to place models for.")
    shares = _best_shares([[one.worth for one in part] for part in parts], gpus)
    chosen = [part[share] for part, share in zip(parts, shares, strict=True)]
    if not any(one.fits for one in chosen):
        raise InfeasibleError("fleet", f"no model fits into {gpus} GPUs")
    placed = chosen[-1].found if workload is not None else None
    return Fleet(
        gpus=gpus,
        llms=tuple(one.found for one in chosen if isinstance(one.found, LlmReplicas)),
        placed=placed if isinstance(placed, SearchResult) else None,
        placed_gpus=shares[-1] if workload is not None else 0,
        attainment=sum(one.good for one in chosen) / count,
    )


def _of_llm(service: LlmService, gpus: int, done: OnDone) -> list[_Part]:
    """Return the best replicas of a language model on 0, 1, .. GPUs, at most those asked for."""
    nothing = LlmReplicas(service, service.model, 0, 0, 0.0, None)
    best = [_Part(0.0, 0.0, nothing)] * (gpus + 1)
    for model in service.models():
        each = model.gpus_together
        for replicas in range(1, gpus // each + 1):
            run = simulate_llm(service.requests, model, replicas, service.dispatch)
            done("replicas")
            good = run.attained(service.ttft, service.tpot, service.e2e)
            worth = float(good.sum()) - _A_SECOND * float(np.nansum(run.e2e))
            share = replicas * each
            found = LlmReplicas(service, model, replicas, share, float(good.mean()), run)
            if worth > best[share].worth:
                best[share] = _Part(worth, float(good.sum()), found)
            if good.all():
                break
    return _no_worse_with_more(best)


def _of_groups(
    workload: Workload, gpus: int, find: Callable[[int], SearchResult], done: OnDone
) -> list[_Part]:
    """Return the best groups of the models of fixed latency on 0, 1, .. GPUs."""
    best = [_Part(0.0, 0.0, None)]
    for share in range(1, gpus + 1):
        try:
            found = find(share)
        except InfeasibleError:
            best.append(_Part(0.0, 0.0, None))
            continue
        finally:
            done("gpus")
        part = _Part(found.score * len(workload), found.attainment * len(workload), found)
        best.append(part)
        if found.attainment == 1:
            break
    return _no_worse_with_more(best + [best[-1]] * (gpus + 1 - len(best)))


def _no_worse_with_more(parts: list[_Part]) -> list[_Part]:
    """Return the parts, each no worse than those on fewer GPUs."""
    best = [parts[0]]
    for part in parts[1:]:
        best.append(part if part.worth > best[-1].worth else best[-1])
    return best


def _best_shares(worths: list[list[float]], gpus: int) -> list[int]:
    """Return the GPUs of each part, with the largest sum of worths and at most ``gpus`` in all.

    >>> _best_shares([[0, 5, 6, 6], [0, 0, 4, 10]], 3)
    [0, 3]
    >>> _best_shares([[0, 5, 6, 6], [0, 0, 5, 9]], 3)
    [1, 2]
    """
    total = np.zeros(gpus + 1)
    choices = []
    for worth in worths:
        # Row g: what is left for the parts before where this one has 0, 1, .. g GPUs.
        sums = [total[g::-1] + np.asarray(worth[: g + 1]) for g in range(gpus + 1)]
        choices.append([int(row.argmax()) for row in sums])
        total = np.array([row.max() for row in sums])
    left, shares = gpus, []
    for choice in reversed(choices):
        shares.append(choice[left])
        left -= choice[left]
    return shares[::-1]
