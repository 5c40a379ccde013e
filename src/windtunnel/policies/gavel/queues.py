"""Allocations without an objective over shares: first come first served, AlloX, Gandiva.

Narayanan et al., OSDI'20, section 4.2 and 5; AlloX: Le et al., EuroSys'20; Gandiva: Xiao et al.,
OSDI'18. Jobs come in the order of their ids where these are numbers, else in the instance's.
A job that had all of a GPU type in the allocation before keeps it where a policy is
non-preemptive (`fifo`, `allox`). First come, first served passes over a job that waits for quota.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.optimize import LinearProgram, distinct_costs
from windtunnel.policies.gavel.closed_forms import equal_split, isolated_shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.policies.gavel.allocation import Allocation
    from windtunnel.policies.gavel.instance import Instance

#: A queued job joins a running one where their normalised speeds sum to more than this.
PACKING_GAIN = 1.5
_WHOLE = 1 - 1e-9


def fifo_perf(instance: Instance) -> np.ndarray:
    """Give each job in turn all of the fastest type with room, until one fits nowhere.

    Ties go to the first type by name. A job that is not measured on any type with room gets
    nothing and is passed over, as published: the queue ends for want of GPUs alone. Returns
    shares, shape (jobs, types).
    """
    shares, free = _kept(instance, None)
    for row in in_id_order(instance):
        admitted = _admitted(instance, row)
        if not admitted.any():
            continue
        fits = admitted & (instance.scale_factors[row] <= free)
        if not fits.any():
            break
        kind = int(np.argmax(np.where(fits, instance.throughputs[row], -1.0)))
        if instance.throughputs[row, kind] > 0:
            _give(instance, row, kind, shares, free)
    return shares


def fifo(instance: Instance, seed: int, previous: Allocation | None) -> np.ndarray:
    """Give each job in turn all of a random type with room on which it runs; running jobs stay.

    Returns shares, shape (jobs, types).
    """
    rng = random.Random(seed)  # noqa: S311 - a simulation's draws, not a secret

    shares, free = _kept(instance, previous)
    for row in in_id_order(instance):
        admitted = _admitted(instance, row)
        if shares[row].any() or not admitted.any():
            continue
        fits = admitted & (instance.throughputs[row] > 0) & (instance.scale_factors[row] <= free)
        if not fits.any():
            break
        _give(instance, row, int(rng.choice(np.flatnonzero(fits).tolist())), shares, free)
    return shares


def fifo_packed(instance: Instance) -> tuple[np.ndarray, np.ndarray]:
    """Allocate as `fifo_perf`, then let the head of the queue join the running job it suits best.

    A pair must have gangs of one size and normalised speeds that sum to more than `PACKING_GAIN`;
    a job is joined once; the first job that finds none ends it.

    Returns:
        Shares alone (jobs, types) and together (pairs, types).
    """
    alone = fifo_perf(instance)
    together = np.zeros((len(instance.pairs), len(instance.gpu_types)))
    for row in in_id_order(instance):
        admitted = _admitted(instance, row)
        if alone[row].any() or not admitted.any():
            continue
        best, gain, place = -1, PACKING_GAIN, -1
        for number in np.flatnonzero((instance.pairs == row).any(axis=1)):
            one, other = instance.pairs[number]
            running = int(other if one == row else one)
            if not alone[running].any():
                continue
            kind = int(np.argmax(alone[running]))
            score = pair_gain(instance, int(number), kind)
            if score > gain and admitted[kind]:
                best, gain, place = int(number), score, running
        if best < 0:
            break
        if instance.quotas is not None:
            instance.quotas.take([_number(instance, row)], int(np.argmax(alone[place])))
        together[best] = alone[place]
        alone[place] = 0.0
    return alone, together


def pair_gain(instance: Instance, pair: int, kind: int) -> float:
    """Return the sum of a pair's speeds on a type, each over the job's own speed there."""
    one, other = instance.pairs[pair]
    alone = instance.throughputs[[one, other], kind]
    if instance.scale_factors[one] != instance.scale_factors[other] or (alone <= 0).any():
        return 0.0
    return float((instance.pair_throughputs[pair, kind] / alone).sum())


def allox(
    instance: Instance, alpha: float, previous: Allocation | None
) -> tuple[float, np.ndarray, int]:
    """Assign jobs to places in the GPUs' queues with the smallest sum of completion times.

    The k-th job from the end of a GPU's queue delays k jobs by its run time, itself included. The
    GPUs of a type are alike, so a place is a type and a k, with room for as many jobs as the type
    has free GPUs: a transportation problem, whose vertices are whole. No place k > ceil(jobs /
    GPUs) is ever used, as an earlier one is free and cheaper. The front of each queue runs.

    Args:
        instance: the jobs, of one GPU each.
        alpha: share of the waiting jobs, the oldest, that are looked at, rounded down; at least as
            many as GPUs are free.
        previous: running jobs stay where they are.

    Returns:
        The sum of completion times in seconds since submission, shares (jobs, types), programs.

    Raises:
        SpecError: a job has a gang.
    """
    gangs = np.flatnonzero(instance.scale_factors != 1)
    if len(gangs):
        who = quote(instance.job_ids[int(gangs[0])])
        raise SpecError("scale_factor", f"allox takes jobs of one GPU; job {who} has another gang.")
    shares, free = _kept(instance, previous)
    waiting = np.flatnonzero(~shares.any(axis=1))
    number = max(int(alpha * len(waiting)), int(free.sum()))
    waiting = np.sort(
        waiting[np.argsort(-instance.time_since_start[waiting], kind="stable")][:number]
    )
    # Jobs whose types all have no GPU left wait until one is: any queue would be theirs for ever.
    waiting = waiting[(instance.throughputs[waiting][:, free >= 1] > 0).any(axis=1)]
    slots = [
        (kind, k)
        for kind, count in enumerate(free)
        for k in range(1, math.ceil(len(waiting) / count) + 1 if count >= 1 else 1)
    ]
    if not len(waiting) or not slots:
        return 0.0, shares, 0
    total, chosen = _assigned(instance, waiting, slots, free)
    for kind, count in enumerate(free):
        # The queues as long as the longest have their front at its place; the others one behind.
        queues = [
            [row for row, (t, k) in chosen.items() if (t, k) == (kind, depth)]
            for depth in range(len(waiting), 0, -1)
        ]
        fronts = [row for queue in queues for row in queue][: int(count)]
        shares[fronts, kind] = 1.0
    return total, shares, 1


def _assigned(
    instance: Instance, waiting: np.ndarray, slots: Sequence[tuple[int, int]], free: np.ndarray
) -> tuple[float, dict[int, tuple[int, int]]]:
    """Return the smallest sum of completion times and the place of each waiting job."""
    lp = LinearProgram("allox")
    speeds = instance.throughputs[waiting]
    steps = instance.steps_left[waiting]
    kinds = np.array([kind for kind, _ in slots])
    depths = np.array([k for _, k in slots])
    able = speeds[:, kinds] > 0
    who, where = np.nonzero(able)
    delays = steps[who] / speeds[who, kinds[where]] * depths[where]
    unit = float(delays.max()) or 1.0
    names = [instance.job_ids[row] for row in waiting]
    places = [f"{k} from the end on {instance.gpu_types[kind]}" for kind, k in slots]
    columns = lp.add_columns("place", range(len(who)), cost=delays / unit)
    jobs = lp.add_rows("place of job", names, lower=1.0, upper=1.0)
    gpus = lp.add_rows("GPUs at place", places, upper=np.floor(free[kinds]))
    lp.add_coefficients(jobs[who], columns, 1.0)
    lp.add_coefficients(gpus[where], columns, 1.0)
    solution = lp.solve(method="simplex", then=[distinct_costs(len(who))])
    chosen = {
        int(waiting[who[c]]): slots[where[c]]
        for c in np.flatnonzero(solution.values > 0.5)  # noqa: PLR2004
    }
    since = float(instance.time_since_start[waiting].sum())
    return solution.objective * unit + since, chosen


def gandiva(
    instance: Instance, seed: int, previous: Allocation | None
) -> tuple[np.ndarray, np.ndarray]:
    """Split the GPUs equally; where there are too few, among random pairs that suit each other.

    Pairs of the allocation before stay as long as both jobs are there and suit. The others are
    drawn at random among jobs with gangs of one size; a pair suits when both have a speed on every
    type they share GPUs on and their normalised speeds sum to at least 1.

    Returns:
        Shares alone (jobs, types) and together (pairs, types).
    """
    together = np.zeros((len(instance.pairs), len(instance.gpu_types)))
    if instance.scale_factors.sum() <= instance.num_gpus.sum():
        return isolated_shares(instance), together
    numbers = {tuple(sorted(pair)): n for n, pair in enumerate(instance.pairs.tolist())}
    place = {name: row for row, name in enumerate(instance.job_ids)}
    taken: dict[int, int] = {}
    for one, other in () if previous is None else previous.pair_shares:
        key = tuple(sorted((place.get(one, -1), place.get(other, -1))))
        if key in numbers and _suits(instance, numbers[key]):
            taken |= dict.fromkeys(key, numbers[key])
    single = [row for row in range(instance.num_jobs) if row not in taken]
    random.Random(seed).shuffle(single)  # noqa: S311 - a simulation's draws, not a secret
    while single:
        row = single.pop()
        partners = (other for other in single if tuple(sorted((row, other))) in numbers)
        for other in partners:
            number = numbers[tuple(sorted((row, other)))]
            if _suits(instance, number):
                taken |= {row: number, other: number}
                single.remove(other)
                break
    used = sorted(set(taken.values()))
    left = [row for row in range(instance.num_jobs) if row not in taken]
    gangs = instance.scale_factors[[*(instance.pairs[n, 0] for n in used), *left]]
    split = equal_split(instance.num_gpus, gangs)
    alone = np.zeros((instance.num_jobs, len(instance.gpu_types)))
    together[used] = split[: len(used)]
    alone[left] = split[len(used) :]
    return alone, together


def _suits(instance: Instance, pair: int) -> bool:
    """Return whether two jobs of one gang size may share GPUs; see `gandiva`."""
    one, other = instance.pairs[pair]
    if instance.scale_factors[one] != instance.scale_factors[other]:
        return False
    kinds = np.flatnonzero(instance.num_gpus > 0)
    if (instance.pair_throughputs[pair, kinds] <= 0).any():
        return False
    return sum(pair_gain(instance, pair, int(kind)) for kind in kinds) >= 1


def in_id_order(instance: Instance) -> list[int]:
    """Return rows by the jobs' ids where all are whole numbers, else in the instance's order."""
    ids = instance.job_ids
    if all(isinstance(job, int) for job in ids):
        return sorted(range(len(ids)), key=lambda row: ids[row])  # type: ignore[arg-type,return-value]
    return list(range(len(ids)))


def _kept(instance: Instance, previous: Allocation | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of jobs that run on, and the GPUs left, shapes (jobs, types), (types,)."""
    shares = np.zeros((instance.num_jobs, len(instance.gpu_types)))
    free = instance.num_gpus.copy()
    if instance.quotas is not None:
        instance.quotas.begin()
    if previous is None:
        return shares, free
    for row, job in enumerate(instance.job_ids):
        for kind, name in enumerate(instance.gpu_types):
            held = previous.shares.get(job, {}).get(name, 0.0)
            if held >= _WHOLE and instance.scale_factors[row] <= free[kind]:
                _give(instance, row, kind, shares, free)
                break
    return shares, free


def _admitted(instance: Instance, row: int) -> np.ndarray:
    """Return the types that quotas leave to a job after those before it, Bool array (types,)."""
    if instance.quotas is None:
        return np.ones(len(instance.gpu_types), bool)
    admitted: np.ndarray = instance.quotas.types(_number(instance, row)) & instance.runnable[row]
    return admitted


def _give(instance: Instance, row: int, kind: int, shares: np.ndarray, free: np.ndarray) -> None:
    """Give a job all of a type; ``shares`` (jobs, types) and ``free`` (types,) are changed."""
    if instance.quotas is not None:
        instance.quotas.take([_number(instance, row)], kind)
    shares[row, kind] = 1.0
    free[kind] -= instance.scale_factors[row]


def _number(instance: Instance, row: int) -> int:
    """Return a job's number in the quotas of the instance."""
    number = instance.job_ids[row]
    assert isinstance(number, int)  # noqa: S101 - quotas come with numbers alone
    return number
