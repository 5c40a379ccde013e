"""`Bins`: a distribution described by the means of groups of jobs, never by a single job's value.

Sorted values are cut into neighbouring groups of at least ``min_count``; the model keeps each
group's size and mean. The extremes are coarsened by the same rule: the largest and the smallest
value that a twin can draw are the means of the last and of the first group. Where there is one
group alone, of run times or waits, the model also holds how far it spreads, in tenths: one value
for all its jobs would be far from them all.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from windtunnel.traces.synthetic.knots import largest_remainder

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Significant digits of published means.
_DIGITS = 9
#: The upper eighth of the values is put in groups four times as fine.
_TAIL = 1 / 8
_FINER = 4
#: A group of fewer has no spread: with the mean it would come too near to its values.
_CROWD = 5
#: More than the spread of any float64.
_MOST_SPREAD = 1000.0
#: Places of the normal distribution that are worked out; more values lie between them.
_PLACES = 1024


class Bins(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A distribution as neighbouring groups of sorted values.

    Attributes:
        jobs: jobs in each group, shape (bins,).
        mean: mean of each group, not falling, shape (bins,).
        atoms: numbers of the groups whose jobs all take the mean (one value shared by many).
        whole: all values were whole numbers.
        spread: standard deviation of ln(value) in the only group; 0 = not published.
    """

    jobs: list[int]
    mean: list[float]
    atoms: list[int] = msgspec.field(default_factory=list)
    whole: bool = False
    spread: float = 0.0

    def fault(self) -> str:
        """Return what is wrong with the numbers, or an empty text."""
        if not self.jobs or len(self.jobs) != len(self.mean):
            return "one mean for each group of jobs, and at least one group"
        if min(self.jobs) < 1:
            return "groups of at least one job"
        if not all(abs(value) < np.inf for value in self.mean) or sorted(self.mean) != self.mean:
            return "finite means that do not fall"
        if any(not 0 <= atom < len(self.jobs) for atom in self.atoms):
            return "atoms that are numbers of groups"
        alone = len(self.mean) == 1 and self.mean[0] > 0
        if not 0 <= self.spread <= _MOST_SPREAD * alone:
            return f"no spread, or one of 0 to {_MOST_SPREAD:g} of a group alone and above 0"
        return ""


def rounded(value: float) -> float:
    """Return a number as it is published, to nine significant digits.

    >>> rounded(2 / 3)
    0.666666667
    """
    return float(f"{value:.{_DIGITS}g}")


def fit_bins(
    values: NDArray[np.float64], *, min_count: int, bins: int, spread: bool = False
) -> Bins | None:
    """Return the distribution of values in groups of at least ``min_count``.

    A value that a whole group's worth of jobs share is a group of its own. The others are cut into
    groups of equal size, about ``1 / bins`` of all, a quarter of that in the upper eighth, because
    the tail of a job log carries its GPU time. The last is halved towards the top and the first
    towards the bottom as long as each part has ``min_count``.

    Args:
        values: finite numbers, any order, shape (jobs,).
        min_count: smallest group.
        spread: tell how far a group alone spreads, if it has a crowd of values, all above 0.

    Returns:
        The distribution; None where there are fewer than ``min_count`` values.
    """
    if len(values) < min_count:
        return None
    ordered = np.sort(values)
    cuts, atoms = _cuts(ordered, min_count, max(min_count, -(-len(ordered) // bins)))
    jobs = np.diff(cuts)
    means = np.add.reduceat(ordered, cuts[:-1]) / jobs
    # A sum of equal numbers may be off by its last digit: the mean lies among the values.
    means = np.clip(means, ordered[cuts[:-1]], ordered[cuts[1:] - 1])
    has_spread = spread and len(jobs) == 1 and len(ordered) >= _CROWD and ordered[0] > 0
    return Bins(
        jobs.tolist(),
        [rounded(mean) for mean in means.tolist()],
        atoms,
        bool(np.all(ordered == np.rint(ordered))),
        round(float(np.log(ordered).std()), 1) if has_spread else 0.0,
    )


def _cuts(
    ordered: NDArray[np.float64], min_count: int, target: int
) -> tuple[NDArray[np.int64], list[int]]:
    """Return where the groups begin and end, shape (bins + 1,), and which are atoms."""
    first = np.flatnonzero(np.diff(ordered, prepend=np.nan) != 0)
    count = np.diff(first, append=len(ordered))
    many = count >= target
    pieces: list[list[int]] = []  # [begin, end, is atom]
    at = 0
    for begin, size in zip(first[many].tolist(), count[many].tolist(), strict=True):
        pieces += [[at, begin, 0]] * (begin > at)
        pieces.append([begin, begin + size, 1])
        at = begin + size
    pieces += [[at, len(ordered), 0]] * (len(ordered) > at)
    _absorb(pieces, ordered, min_count)
    cuts, atoms = [0], []
    for begin, end, is_atom in pieces:
        if is_atom:
            atoms.append(len(cuts) - 1)
            cuts.append(end)
        else:
            cuts += _parts(begin, end, len(ordered), min_count, target)
    if not pieces[-1][2]:
        while cuts[-1] - cuts[-2] >= 2 * min_count:
            cuts.insert(-1, cuts[-2] + (cuts[-1] - cuts[-2]) // 2)
    if not pieces[0][2]:
        while cuts[1] - cuts[0] >= 2 * min_count:
            cuts.insert(1, cuts[1] - (cuts[1] - cuts[0]) // 2)
            atoms = [atom + 1 for atom in atoms]
    return np.array(cuts, dtype=np.int64), atoms


def _parts(begin: int, end: int, jobs: int, min_count: int, target: int) -> list[int]:
    """Return the ends of the groups of a piece: finer where the largest values lie."""
    parts = max((end - begin) // target, 1)
    edges = [begin + number * (end - begin) // parts for number in range(parts + 1)]
    ends = []
    for low, high in pairwise(edges):
        of_tail = low >= (1 - _TAIL) * jobs
        finer = min(_FINER, max((high - low) // min_count, 1)) if of_tail else 1
        ends += [low + number * (high - low) // finer for number in range(1, finer + 1)]
    return ends


def _absorb(pieces: list[list[int]], ordered: NDArray[np.float64], min_count: int) -> None:
    """Fill up pieces of fewer than ``min_count`` values from the nearer one beside them, in place.

    Small pieces lie beside atoms, or are all there is. Where the neighbour would become too small
    itself the two are one.
    """
    index = 0
    while index < len(pieces):
        begin, end, _ = pieces[index]
        need = min_count - (end - begin)
        if need <= 0 or len(pieces) == 1:
            index += 1
            continue
        before, after = index > 0, index + 1 < len(pieces)
        if before and after:
            down = ordered[begin] - ordered[begin - 1]
            before = bool(down <= ordered[end] - ordered[end - 1])
        near = pieces[index - 1 if before else index + 1]
        if near[1] - near[0] - need >= min_count:
            place = 1 if before else 0
            moved = -need if before else need
            near[place] += moved
            pieces[index][1 - place] += moved
        else:
            near[1 if before else 0] = end if before else begin
            del pieces[index]


def draw_bins(bins: Bins, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw values whose numbers by group are exact and whose group means are the published ones.

    Within a group the values are evenly spread over its stretch, which ends half-way (in ratio) to
    its neighbours' means. The first group, the last and the atoms take their mean. A group alone
    whose spread is known lies as a lognormal distribution does.

    Returns:
        Values in random order, shape (count,).
    """
    jobs = largest_remainder(bins.jobs, count)
    mean = np.array(bins.mean)
    low, high = _stretches(mean, bins.atoms)
    index = np.repeat(np.arange(len(jobs)), jobs)
    within = np.arange(count) - np.repeat(np.cumsum(jobs) - jobs, jobs)
    u = (within + 0.5) / jobs[index]
    wide = high > low
    share = np.where(wide, (mean - low) / np.where(wide, high - low, 1.0), 0.0)[index]
    lower = low[index] + (mean - low)[index] * u / np.maximum(1.0 - share, 1e-300)
    upper = mean[index] + (high - mean)[index] * (u - (1 - share)) / np.maximum(share, 1e-300)
    values = np.where(u < 1.0 - share, lower, upper)
    sums = np.bincount(index, values, minlength=len(jobs))
    values += (mean - np.divide(sums, jobs, out=mean.copy(), where=jobs > 0))[index]
    # Evenly spread points leave their mean by a trifle: the shift must not leave the stretch.
    values = np.clip(values, low[index], high[index])
    if bins.spread and count:
        values = _lognormal(count, bins)
    if bins.whole:
        values = np.diff(np.floor(np.cumsum(values) + 0.5), prepend=0.0)
    rng.shuffle(values)
    return values


def _stretches(
    mean: NDArray[np.float64], atoms: list[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest value of each group, shape (bins,) each."""
    edges = (mean[:-1] + mean[1:]) / 2
    if mean[0] >= 0:
        edges = np.where(mean[:-1] > 0, np.sqrt(mean[:-1] * mean[1:]), edges)
    low, high = np.append(mean[0], edges), np.append(edges, mean[-1])
    # No value beyond the means of the first and the last group: each is one value.
    fixed = [*atoms, 0, len(mean) - 1]
    low[fixed] = high[fixed] = mean[fixed]
    return low, high


def _lognormal(count: int, bins: Bins) -> NDArray[np.float64]:
    """Return values of a group alone: of its mean and spread, ascending."""
    (mean,) = bins.mean
    inverse, places = NormalDist().inv_cdf, min(count, _PLACES)
    known = (np.arange(places) + 0.5) / places
    logs = np.interp(
        (np.arange(count) + 0.5) / count, known, [inverse(share) for share in known.tolist()]
    )
    if count > 1:
        logs *= bins.spread / logs.std()
    values = np.exp(logs - logs.max())
    values *= mean / values.mean()
    # All were above 0, so whole numbers from 1 on: what was below comes up, the others nearer.
    least = min(1.0, mean) if bins.whole else 0.0
    above = np.maximum(values, least) - least
    if above.any():
        values = least + above * ((mean - least) / above.mean())
    return np.asarray(values)
