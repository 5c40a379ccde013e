"""Who submitted a job, what it repeats, and how it ended: the modelled columns of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.synthetic.knots import largest_remainder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.workload_facts import WorkloadFacts

#: Virtual clusters: pretraining has its reserved nodes, users share the others.
PRETRAIN_VC = "pretrain"
SHARED_VCS = ("llm", "vision", "platform")

#: Variants of a template: one for each four octaves of run time, with an octave of noise.
_VARIANTS = 6
_VARIANT_OCTAVES = 4.0
_NOISE_OCTAVES = 1.0
#: Powers of GPU time by which the odds of a final state may rise, and how finely they are searched.
_TILTS = (-3.0, 4.0)
_BISECTIONS = 18

#: Cores of a CPU job and how often (modelled; not published).
_CPU_JOB_CORES = (1, 2, 4, 8, 16, 32)
_CPU_JOB_WEIGHTS = (0.35, 0.2, 0.2, 0.15, 0.07, 0.03)


def cpu_job_cores(jobs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the cores of jobs without a GPU, shape (jobs,)."""
    return rng.choice(np.array(_CPU_JOB_CORES), size=jobs, p=_CPU_JOB_WEIGHTS)


def job_ids(stem: str, count: int) -> pa.Array:
    """Return ``stem`` and a number from 1, of as many digits as the last one, for each job."""
    numbers = pa.array(np.arange(1, count + 1)).cast(pa.string())
    return pc.binary_join_element_wise(stem, pc.utf8_lpad(numbers, len(str(count)), "0"), "")


def users(
    facts: WorkloadFacts, jobs: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], list[str]]:
    """Return each job's user as an index, shape (jobs,), and the users' names.

    The k-th user's share of the jobs falls as k to the power of minus the model's exponent.
    """
    rank = np.arange(1, facts.model.users + 1, dtype=np.float64)
    cumulative = np.cumsum(rank**-facts.model.user_exponent)
    index = np.searchsorted(cumulative, rng.random(jobs) * cumulative[-1], side="right")
    names = [f"u{number:04d}" for number in rng.permutation(10_000)[: facts.model.users]]
    return np.minimum(index, facts.model.users - 1), names


def virtual_clusters(user: NDArray[np.int64], pretrain: NDArray[np.bool_]) -> pa.Array:
    """Return each job's virtual cluster: pretraining's own, else one fixed by the user."""
    names = pa.array([PRETRAIN_VC, *SHARED_VCS])
    return names.take(pa.array(np.where(pretrain, 0, 1 + user % len(SHARED_VCS))))


def templates(
    kinds: list[str],
    kind: NDArray[np.int64],
    user: NDArray[np.int64],
    user_names: list[str],
    *,
    gpus: NDArray[np.int64],
    duration: NDArray[np.int64],
    rng: np.random.Generator,
) -> pa.Array:
    """Return each job's recurrence key: type, user, GPUs and one of a few variants.

    What recurs runs about as long as before: the variant is the run time's magnitude, blurred.

    Args:
        kind: index of each job's type, shape (jobs,).
        user: index of each job's user, shape (jobs,).
        gpus: GPUs of each job, shape (jobs,).
        duration: run time of each job, s, >= 1, shape (jobs,).
    """
    octaves = np.log2(duration) + rng.normal(0.0, _NOISE_OCTAVES, len(kind))
    variant = np.clip(np.floor(octaves / _VARIANT_OCTAVES), 0, _VARIANTS - 1).astype(np.int64)
    top = int(gpus.max(initial=0)) + 1
    code = ((kind * len(user_names) + user) * top + gpus) * _VARIANTS + variant
    unique, inverse = np.unique(code, return_inverse=True)
    names = []
    for value in unique.tolist():
        rest, v = divmod(value, _VARIANTS)
        rest, g = divmod(rest, top)
        k, u = divmod(rest, len(user_names))
        names.append(f"{kinds[k].lower()}-{user_names[u]}-{g}g-{v}")
    return pa.array(names, pa.string()).take(pa.array(inverse))


def statuses(
    shares: dict[str, float],
    by_weight: dict[str, float] | None,
    weight: NDArray[np.float64],
    rng: np.random.Generator,
) -> pa.Array:
    """Return each job's final state.

    The numbers of jobs are exact (largest remainder). Where shares by weight are given, each state
    but the most frequent is drawn with odds that rise with a power of the weight, the power being
    the one that brings the state's share of the weight nearest; a single exchange then makes up for
    the last large job that fell on the wrong side.

    Args:
        shares: share of the jobs by state; normalised.
        by_weight: share of the weight (GPU time) by state, or None to draw without regard to it.
        weight: weight of each job, shape (jobs,).
    """
    names = sorted(shares, key=lambda name: (shares[name], name))
    counts = largest_remainder([shares[name] for name in names], len(weight))
    state = np.full(len(weight), len(names) - 1, dtype=np.int64)
    left = np.arange(len(weight))
    gumbel = rng.gumbel(size=len(weight))
    logs = np.log1p(weight)
    everything = max(float(weight.sum()), 1.0)
    for code, (name, count) in enumerate(zip(names[:-1], counts[:-1].tolist(), strict=True)):
        if count == 0:
            continue
        low, high = _TILTS if by_weight else (0.0, 0.0)
        wanted = by_weight[name] * everything if by_weight else 0.0
        best, miss = np.arange(count), np.inf
        for _ in range(_BISECTIONS if by_weight else 1):
            tilt = (low + high) / 2.0
            key = tilt * logs[left] + gumbel[left]
            chosen = np.argpartition(-key, count - 1)[:count]
            reached = float(weight[left[chosen]].sum())
            if abs(reached - wanted) < miss:
                best, miss = chosen, abs(reached - wanted)
            low, high = (tilt, high) if reached < wanted else (low, tilt)
        if by_weight:
            best = _exchange_one(weight[left], best, wanted)
        state[left[best]] = code
        left = np.delete(left, best)
    return pa.array(names).take(pa.array(state))


def _exchange_one(
    weight: NDArray[np.float64], chosen: NDArray[np.int64], wanted: float
) -> NDArray[np.int64]:
    """Return the chosen jobs with the one replaced that brings their weight nearest to ``wanted``.

    Args:
        weight: weight of every job, shape (jobs,).
        chosen: indices of the chosen jobs, shape (chosen,).
    """
    others = np.delete(np.arange(len(weight)), chosen)
    lacking = wanted - float(weight[chosen].sum())
    if len(others) == 0 or lacking == 0.0:
        return chosen
    others = others[np.argsort(weight[others], kind="stable")]
    ideal = weight[chosen] + lacking
    at = np.clip(np.searchsorted(weight[others], ideal), 0, len(others) - 1)
    miss = np.abs(weight[others[at]] - ideal)
    leaving = int(miss.argmin())
    if miss[leaving] >= abs(lacking):
        return chosen
    replaced = chosen.copy()
    replaced[leaving] = others[at[leaving]]
    return replaced
