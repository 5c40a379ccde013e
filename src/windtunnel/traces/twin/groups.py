"""`Groups`: how many jobs belong together (runs of a template, jobs of a batch), coarsely."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from windtunnel.traces.synthetic.knots import largest_remainder
from windtunnel.traces.twin.bins import rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Groups(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many groups there are of each size.

    Attributes:
        count: groups, shape (classes,).
        size: their mean number of jobs, rising, shape (classes,).
    """

    count: list[int]
    size: list[float]

    def fault(self) -> str:
        """Return what is wrong with the numbers, or an empty text."""
        if not self.count or len(self.count) != len(self.size):
            return "one size for each number of groups, and at least one"
        if min(self.count) < 1 or not all(1 <= size < np.inf for size in self.size):
            return "at least one group of at least one job"
        return ""


def fit_groups(sizes: NDArray[np.int64], *, min_count: int, bins: int) -> Groups | None:
    """Return how many groups there are of each size.

    A size that ``min_count`` groups have is published as it is. Rarer sizes are put together,
    neighbours first, in classes of at least ``min_count`` groups of which only the mean is
    published. Fewer than ``min_count`` groups are one class.

    Args:
        sizes: jobs of each group, >= 1, shape (groups,).
        min_count: smallest number of groups and of jobs published.

    Returns:
        The sizes; None where they have fewer than ``min_count`` jobs together.
    """
    if int(sizes.sum()) < min_count:
        return None
    if len(sizes) < min_count:
        return Groups([len(sizes)], [rounded(float(sizes.mean()))])
    value, count = np.unique(sizes, return_counts=True)
    common = count >= min_count
    classes = [[n, n * v] for n, v in zip(count[common], value[common], strict=True)]
    rare = np.sort(sizes[~np.isin(sizes, value[common])])
    if 0 < len(rare) < min_count:
        near = min(classes, key=lambda c: abs(np.log(c[1] / c[0] / rare.mean())))
        near[0] += len(rare)
        near[1] += int(rare.sum())
    elif len(rare):
        parts = np.array_split(rare, max(min(len(rare) // min_count, bins), 1))
        classes += [[len(part), int(part.sum())] for part in parts]
    classes.sort(key=lambda c: c[1] / c[0])
    return Groups([int(c[0]) for c in classes], [rounded(float(c[1] / c[0])) for c in classes])


def draw_groups(groups: Groups, jobs: int) -> NDArray[np.int64]:
    """Return sizes of groups that have ``jobs`` jobs together, in the published proportions.

    Args:
        jobs: jobs of all groups together, >= 1.

    Returns:
        Sizes, largest first; their sum is ``jobs``.
    """
    described = float(np.dot(groups.count, groups.size))
    number = max(round(sum(groups.count) * jobs / described), 1)
    parts = []
    for count, size in zip(largest_remainder(groups.count, number), groups.size, strict=True):
        total = round(int(count) * size)
        parts.append(largest_remainder(np.ones(int(count)), total) if count else np.zeros(0, int))
    sizes = np.sort(np.concatenate(parts))[::-1]
    # Rounding and another number of jobs leave a few too many or too few.
    excess = int(sizes.sum()) - jobs
    if excess < 0:
        return np.append(sizes, np.ones(-excess, dtype=np.int64))
    kept = np.diff(np.minimum(np.cumsum(sizes[::-1]), jobs), prepend=0)
    return np.sort(kept[kept > 0])[::-1]


def pack(
    blocks: NDArray[np.int64], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Lay groups into blocks of jobs: a group stays in one block wherever one has room for it.

    The largest group goes to the block with most room; what does not fit goes on in the next.

    Args:
        blocks: block of each job, sorted, shape (jobs,).
        sizes: jobs of each group, largest first, with the sum ``jobs``.

    Returns:
        Group of each job, shape (jobs,): the groups of a block are runs of neighbouring jobs.
    """
    names, jobs = np.unique(blocks, return_counts=True)
    heap = [(-int(size), place) for place, size in enumerate(jobs)]
    heapq.heapify(heap)
    laid: list[list[tuple[int, int]]] = [[] for _ in names]
    several = int((sizes > 1).sum())
    for group, size in enumerate(sizes[:several].tolist()):
        left = size
        while left:
            free, place = heapq.heappop(heap)
            part = min(left, -free)
            laid[place].append((group, part))
            left -= part
            if -free > part:
                heapq.heappush(heap, (free + part, place))
    single = several
    labels, counts = [], []
    free_by_place = {place: -free for free, place in heap}
    for place, parts in enumerate(laid):
        alone = free_by_place.get(place, 0)
        parts += [(single + number, 1) for number in range(alone)]
        single += alone
        for index in rng.permutation(len(parts)).tolist():
            labels.append(parts[index][0])
            counts.append(parts[index][1])
    return np.repeat(np.array(labels, dtype=np.int64), counts)
