"""`ShareModel`: the columns and rows that every linear policy has: shares, time and GPUs.

Jobs that no part of the model tells apart are merged into one class: averaging the rows of equal
jobs keeps feasibility and every concave symmetric objective, so the merged optimum is exact.
Pairs of jobs that gain nothing by sharing are left out: their normalised speeds sum to at most 1,
so running one after the other on the same GPUs does at least as well.

Narayanan et al., OSDI'20, sections 3.1 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.optimize import LinearProgram, distinct_costs
from windtunnel.policies.gavel.closed_forms import equal_split

if TYPE_CHECKING:
    from windtunnel.policies.gavel.allocation import Asked
    from windtunnel.policies.gavel.instance import Instance, JobId

#: A pair must beat running one after the other by more than rounding.
_GAIN = 1e-12
#: Shares of a job's time beyond the whole that are rounding.
_ROUNDING = 1e-5
#: Jobs of a class named in an error.
_NAMED = 5


@dataclass(frozen=True)
class Classes:
    """Jobs that a model does not tell apart.

    Attributes:
        of: class of each job, numbered by first appearance; shape (jobs,).
        counts: jobs of each class; shape (classes,).
        first: a job of each class; shape (classes,).
    """

    of: np.ndarray
    counts: np.ndarray
    first: np.ndarray


class Alike:
    """The names of a class' jobs, spelt only when an error needs them."""

    def __init__(self, ids: tuple[JobId, ...], classes: Classes, number: int) -> None:
        self._ids, self._classes, self._number = ids, classes, number

    def __repr__(self) -> str:
        rows = np.flatnonzero(self._classes.of == self._number)
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        return ", ".join(ascii(self._ids[row]) for row in rows[:_NAMED]) + more


@dataclass(frozen=True)
class ShareModel:
    """A linear program over shares, to which a policy adds its objective.

    A column of a job class is the share of *each* of its jobs on one GPU type; a column of a pair
    of classes is the time of *all* pairs of their jobs together.

    Attributes:
        lp: the program, with its capacity and time rows.
        instance: what it is about.
        classes: the jobs' classes.
        single: columns of the classes alone: class, type, column; shape (singles, 3).
        paired: columns of the pairs of classes: pair, type, column; shape (paireds, 3).
        pair_classes: classes of each pair of classes; shape (class pairs, 2).
        pair_of: pair of classes of each of the instance's pairs, -1 = left out; shape (pairs,).
        entries: steps per second of one job of a class for each unit of a column: class, column;
            shape (entries, 2).
        speeds: those steps per second; shape (entries,).
    """

    lp: LinearProgram
    instance: Instance
    classes: Classes
    single: np.ndarray
    paired: np.ndarray
    pair_classes: np.ndarray
    pair_of: np.ndarray
    entries: np.ndarray
    speeds: np.ndarray

    def labels(self) -> list[Alike]:
        """Return what to call each class in errors: its jobs."""
        return _names(self.instance, self.classes)

    def per_class(self, values: np.ndarray) -> np.ndarray:
        """Return a per-job array at the first job of each class."""
        picked: np.ndarray = values[self.classes.first]
        return picked

    def throughput_costs(self, weights: np.ndarray) -> np.ndarray:
        """Return costs whose sum over columns is ``weights @ throughput``, all jobs counted.

        Args:
            weights: of one job of each class, shape (classes,).
        """
        costs = np.zeros(self.lp.num_columns)
        of, columns = self.entries.T
        np.add.at(costs, columns, self.speeds * (weights * self.classes.counts)[of])
        return costs

    def tie_breaks(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return the further objectives that make an optimum the only one.

        First the most ``weights @ throughput``, so that no GPU is idle that could help; then the
        fewest GPUs, each column weighted a little differently.
        """
        spread = np.zeros(self.lp.num_columns)
        columns = np.concatenate([self.single[:, 2], self.paired[:, 2]])
        spread[columns] = -distinct_costs(len(columns))
        return [self.throughput_costs(weights), spread]

    def shares(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a solution as shares of jobs, (jobs, types), and of pairs, (pairs, types)."""
        num_types = len(self.instance.gpu_types)
        alone = np.zeros((len(self.classes.counts), num_types))
        alone[self.single[:, 0], self.single[:, 1]] = values[self.single[:, 2]]
        together = np.zeros((len(self.pair_classes) + 1, num_types))  # the last: pairs left out
        together[self.paired[:, 0], self.paired[:, 1]] = values[self.paired[:, 2]]
        sizes = np.bincount(self.pair_of[self.pair_of >= 0], minlength=len(self.pair_classes))
        together[:-1] /= np.maximum(sizes, 1)[:, None]
        return within_limits(
            self.instance,
            np.maximum(alone[self.classes.of], 0.0),
            np.maximum(together[self.pair_of], 0.0),
        )

    def topped_up(self, values: np.ndarray, need: np.ndarray) -> np.ndarray:
        """Return a solution in which rounding leaves no job below its need.

        A need far below the solver's tolerance can come out as no share at all. Mixing in just
        enough of the equal split costs the others as little.

        Args:
            values: a solution, shape (columns,).
            need: steps per second that each class' jobs must have, shape (classes,).
        """
        gangs = self.instance.scale_factors
        equal = equal_split(self.instance.num_gpus, gangs)[self.classes.first]
        split = np.zeros_like(values)
        split[self.single[:, 2]] = equal[self.single[:, 0], self.single[:, 1]]
        missing = need - self.class_throughputs(values)
        short = missing > 0
        part = (missing[short] / self.class_throughputs(split)[short]).max(initial=0.0)
        return np.asarray(values + min(part, 1.0) * (split - values))

    def class_throughputs(self, values: np.ndarray) -> np.ndarray:
        """Return steps per second of one job of each class, shape (classes,)."""
        of, columns = self.entries.T
        return np.bincount(of, self.speeds * values[columns], minlength=len(self.classes.counts))


class Solved(NamedTuple):
    """What a policy's program comes to.

    Attributes:
        objective: the value reached.
        model: the shares.
        values: a solution's values, shape (columns,).
        iterations: how often it was solved.
        need: steps per second of each class's jobs that the objective asks for, shape (classes,);
            None = it asks for none.
        levels: normalised throughput at which each job froze, shape (jobs,); of water filling.
    """

    objective: float
    model: ShareModel
    values: np.ndarray
    iterations: int = 1
    need: np.ndarray | None = None
    levels: np.ndarray | None = None


def share_model(
    asked: Asked, instance: Instance, usable: np.ndarray, traits: tuple[np.ndarray, ...] = ()
) -> ShareModel:
    """Build the shares of an instance, to be maximised over.

    Args:
        asked: whether pairs count and equal jobs are merged.
        instance: the jobs and GPUs; speeds are those that the policy believes.
        usable: where a job may have a share, shape (jobs, types).
        traits: what the policy reads of a job besides speeds and gang, one array of shape
            (jobs,) each: jobs that differ in one are not merged.
    """
    packed, merge = asked.packed, asked.merge
    mask = usable & (instance.num_gpus > 0)
    useful = np.zeros((len(instance.pairs), 0), bool)
    if packed:
        useful = _useful_pairs(instance) & asked.fitting(instance)[instance.pairs[:, 0]]
    kept = np.asarray(useful.any(axis=1))
    classes = _classes(instance, (*traits, *mask.T), merge=merge)
    pair_classes, pair_of, first_pair = _class_pairs(instance, classes, kept)
    if merge and not _interchangeable(instance, classes, pair_classes, pair_of):
        classes = _classes(instance, (), merge=False)
        pair_classes, pair_of, first_pair = _class_pairs(instance, classes, kept)
    lp = LinearProgram(asked.policy, maximize=True)
    ids, types = instance.job_ids, instance.gpu_types
    rows = np.argwhere(mask[classes.first])
    columns = lp.add_columns("share of job", _Labels(rows, classes.first, ids, types))
    single = np.column_stack([rows, columns])
    pair_rows = np.argwhere(useful[first_pair]) if packed else np.empty((0, 2), int)
    columns = lp.add_columns("share of pair", _Labels(pair_rows, first_pair, instance.pairs, types))
    paired = np.column_stack([pair_rows, columns])
    entries, speeds = _entries(
        instance,
        classes,
        single=single,
        paired=paired,
        pair_classes=pair_classes,
        first_pair=first_pair,
    )
    _add_limits(lp, instance, classes, single=single, paired=paired, pair_classes=pair_classes)
    return ShareModel(lp, instance, classes, single, paired, pair_classes, pair_of, entries, speeds)


class _Labels:
    """Names of columns, spelt only when an error needs one."""

    def __init__(self, rows: np.ndarray, of: np.ndarray, names: object, types: object) -> None:
        self._rows, self._of, self._names, self._types = rows, of, names, types

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: int) -> str:
        row, kind = self._rows[at]
        return f"{self._names[self._of[row]]} on {self._types[kind]}"  # type: ignore[index]


def _names(instance: Instance, classes: Classes) -> list[Alike]:
    return [Alike(instance.job_ids, classes, number) for number in range(len(classes.counts))]


def _useful_pairs(instance: Instance) -> np.ndarray:
    """Return where a pair is worth a column, shape (pairs, types).

    Raises:
        SpecError: two jobs of different gangs have a speed together.
    """
    one, other = instance.pairs.T
    together = instance.pair_throughputs
    uneven = instance.scale_factors[one] != instance.scale_factors[other]
    wrong = np.flatnonzero(uneven & (together > 0).any(axis=(1, 2)))
    if len(wrong):
        names = [quote(instance.job_ids[row]) for row in instance.pairs[wrong[0]]]
        raise SpecError("instance.pairs", f"jobs {' and '.join(names)} have gangs of two sizes.")
    alone = np.stack([instance.throughputs[one], instance.throughputs[other]], axis=2)
    # A speed together without one alone is worth keeping: it counts as infinitely good.
    ratio = np.where(together > 0, together / np.where(alone > 0, alone, np.nan), 0.0)
    normalised = np.nan_to_num(ratio, nan=np.inf).sum(axis=2)
    useful = (normalised > 1 + _GAIN) & (instance.num_gpus > 0) & ~uneven[:, None]
    return np.asarray(useful)


def _classes(instance: Instance, traits: tuple[np.ndarray, ...], *, merge: bool) -> Classes:
    count = instance.num_jobs
    if not merge or count == 0:
        return Classes(np.arange(count), np.ones(count, int), np.arange(count))
    keys = np.column_stack([instance.throughputs, instance.scale_factors, *traits])
    _, first, inverse, counts = np.unique(
        keys, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    number = np.empty(len(order), int)
    number[order] = np.arange(len(order))
    return Classes(number[inverse.ravel()], counts[order], first[order])


def _class_pairs(
    instance: Instance, classes: Classes, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return classes of each class pair (pairs, 2), class pair of each pair, a pair of each."""
    pair_of = np.full(len(instance.pairs), -1)
    of = np.sort(classes.of[instance.pairs[kept]], axis=1)
    found, first, inverse = np.unique(of, axis=0, return_index=True, return_inverse=True)
    pair_of[kept] = inverse.ravel()
    return found.reshape(-1, 2), pair_of, np.flatnonzero(kept)[first]


def _ordered_speeds(instance: Instance, classes: Classes, rows: np.ndarray) -> np.ndarray:
    """Return the speeds of pairs, the job of the lower class first; shape (rows, types, 2)."""
    of = classes.of[instance.pairs[rows]]
    speeds = instance.pair_throughputs[rows]
    swapped: np.ndarray = np.where((of[:, 0] > of[:, 1])[:, None, None], speeds[:, :, ::-1], speeds)
    return swapped


def _interchangeable(
    instance: Instance, classes: Classes, pair_classes: np.ndarray, pair_of: np.ndarray
) -> bool:
    """Return whether pairs of the same classes are all there and all equal, so may be merged."""
    rows = np.flatnonzero(pair_of >= 0)
    if not len(rows):
        return True
    speeds = _ordered_speeds(instance, classes, rows)
    firsts = np.unique(pair_of[rows], return_index=True)[1]
    same = np.array_equal(speeds, speeds[firsts][pair_of[rows]])
    one, other = classes.counts[pair_classes].T
    inner = pair_classes[:, 0] == pair_classes[:, 1]
    whole = np.where(inner, one * (one - 1) // 2, one * other)
    twins = speeds[firsts][inner]
    return bool(
        same
        and np.array_equal(np.bincount(pair_of[rows]), whole)
        and np.array_equal(twins[:, :, 0], twins[:, :, 1])
    )


def _entries(
    instance: Instance,
    classes: Classes,
    *,
    single: np.ndarray,
    paired: np.ndarray,
    pair_classes: np.ndarray,
    first_pair: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return steps per second of one job of a class for each unit of a column."""
    of, kind, column = single.T
    places = [np.column_stack([of, column])]
    speeds = [instance.throughputs[classes.first[of], kind]]
    pair, kind, column = paired.T
    gained = _ordered_speeds(instance, classes, first_pair[pair])[np.arange(len(pair)), kind]
    inner = pair_classes[pair, 0] == pair_classes[pair, 1]
    for member in (0, 1):
        who = pair_classes[pair, member]
        share = gained[:, member] / classes.counts[who]
        # A pair within a class serves two of its jobs; one entry holds both.
        keep = ~inner | (member == 0)
        places.append(np.column_stack([who, column])[keep])
        speeds.append(np.where(inner, 2 * share, share)[keep])
    return np.concatenate(places), np.concatenate(speeds)


def _add_limits(
    lp: LinearProgram,
    instance: Instance,
    classes: Classes,
    *,
    single: np.ndarray,
    paired: np.ndarray,
    pair_classes: np.ndarray,
) -> None:
    """Add the rows: GPUs of a type, and the time of a job."""
    gpus = lp.add_rows("GPUs of type", instance.gpu_types, upper=instance.num_gpus)
    time = lp.add_rows("time of job", _names(instance, classes), upper=1.0)
    gang = instance.scale_factors[classes.first]
    of, kind, column = single.T
    lp.add_coefficients(gpus[kind], column, gang[of] * classes.counts[of])
    lp.add_coefficients(time[of], column, 1.0)
    pair, kind, column = paired.T
    one, other = pair_classes[pair].T
    lp.add_coefficients(gpus[kind], column, gang[one])
    inner = one == other
    lp.add_coefficients(time[one], column, np.where(inner, 2.0, 1.0) / classes.counts[one])
    lp.add_coefficients(time[other[~inner]], column[~inner], 1.0 / classes.counts[other[~inner]])


def within_limits(
    instance: Instance, alone: np.ndarray, together: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return shares that use no more than each job's time, where the solver's rounding did.

    A solver keeps each row of its own, scaled program within its tolerance; in shares that can be
    a few millionths. What is beyond that is no rounding and is left as it is, to be seen.

    Args:
        instance: what was decided on.
        alone: shares of the jobs on their own, shape (jobs, types).
        together: shares of the instance's pairs, shape (pairs, types).
    """
    time = alone.sum(axis=1)
    if len(together):
        for member in (0, 1):
            np.add.at(time, instance.pairs[:, member], together.sum(axis=1))
    if time.max(initial=0.0) <= 1:
        return alone, together
    over = np.where(time <= 1 + _ROUNDING, np.maximum(time, 1.0), 1.0)
    shared = np.maximum(over[instance.pairs[:, 0]], over[instance.pairs[:, 1]])
    return alone / over[:, None], together / shared[:, None]
